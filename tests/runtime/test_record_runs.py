"""What a task reads is cut into runs, in the same way however it comes in blocks."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest

from service.runtime.record_runs import Run, gathered, runs


def block(*records: tuple[str, int, int], size: int = 1) -> pa.Table:
    """Records as (topic, partition, offset), with values of `size` bytes."""
    return pa.table(
        {
            "value": pa.array([b"x" * size] * len(records), pa.binary()),
            "topic": pa.array([topic for topic, _, _ in records]),
            "partition": pa.array([partition for _, partition, _ in records], pa.int32()),
            "offset": pa.array([offset for _, _, offset in records], pa.int64()),
        }
    )


def a(*offsets: int) -> list[tuple[str, int, int]]:
    return [("t", 0, offset) for offset in offsets]


def b(*offsets: int) -> list[tuple[str, int, int]]:
    return [("t", 1, offset) for offset in offsets]


def c(*offsets: int) -> list[tuple[str, int, int]]:
    return [("u", 1, offset) for offset in offsets]


def told(found: list[Run]) -> list[tuple[str, int, list[int]]]:
    return [(run.topic, run.partition, run.records["offset"].to_pylist()) for run in found]


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([a(1, 2)], [("t", 0, [1, 2])]),
        ([a(1, 2, 3, 4)], [("t", 0, [1, 2, 3]), ("t", 0, [4])]),
        ([a(1, 2), a(3, 4), a(5)], [("t", 0, [1, 2, 3]), ("t", 0, [4, 5])]),
        ([[], a(1), []], [("t", 0, [1])]),
        ([a(1, 2) + b(1), b(2, 3, 4)], [("t", 0, [1, 2]), ("t", 1, [1, 2, 3]), ("t", 1, [4])]),
        ([b(1) + c(1)], [("t", 1, [1]), ("u", 1, [1])]),
        ([a(1) + b(2) + c(3)], [("t", 0, [1]), ("t", 1, [2]), ("u", 1, [3])]),
    ],
)
def test_runs_are_of_one_partition_and_of_so_many_records(blocks, expected) -> None:
    assert told(list(runs([block(*each) for each in blocks], rows=3))) == expected


@pytest.mark.parametrize("cuts", [(1, 2), (3,), (1, 4), (2, 3, 5), (6,)])
def test_where_a_run_ends_does_not_depend_on_the_blocks(cuts) -> None:
    records = a(1, 2, 3, 4, 5, 6, 7)
    bounds = [0, *cuts, len(records)]
    blocks = [block(*records[first:last], size=4) for first, last in pairwise(bounds)]
    expected = [("t", 0, [1, 2, 3]), ("t", 0, [4, 5, 6]), ("t", 0, [7])]
    assert told(list(runs(blocks, rows=5, largest=15))) == expected


def test_a_record_that_is_larger_than_a_run_is_a_run_of_its_own() -> None:
    blocks = [block(*a(1), size=1), block(*a(2), size=99), block(*a(3, 4), size=1)]
    assert told(list(runs(blocks, rows=9, largest=10))) == [("t", 0, [1]), ("t", 0, [2]), ("t", 0, [3, 4])]


def test_small_runs_are_put_together() -> None:
    found = list(runs([block(*a(1, 2), *b(1), *c(1, 2, 3))], rows=9))
    assert [len(group) for group in gathered(found, rows=3)] == [2, 1]
