"""What a task reads is cut into runs, in the same way however it comes in blocks."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from service.runtime.record_runs import Run, gathered, runs, whole


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


def outline(found: list[Run]) -> list[tuple[str, int, list[int]]]:
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
    assert outline(list(runs([block(*each) for each in blocks], rows=3))) == expected


@pytest.mark.parametrize("cuts", [(1, 2), (3,), (1, 4), (2, 3, 5), (6,)])
def test_where_a_run_ends_does_not_depend_on_the_blocks(cuts) -> None:
    records = a(1, 2, 3, 4, 5, 6, 7)
    bounds = [0, *cuts, len(records)]
    blocks = [block(*records[first:last], size=4) for first, last in pairwise(bounds)]
    expected = [("t", 0, [1, 2, 3]), ("t", 0, [4, 5, 6]), ("t", 0, [7])]
    assert outline(list(runs(blocks, rows=5, largest=12))) == expected
    assert outline(list(runs(blocks, rows=5, largest=9))) == expected


def test_a_record_that_is_larger_than_a_run_ends_one() -> None:
    blocks = [block(*a(1), size=1), block(*a(2), size=99), block(*a(3, 4), size=1)]
    assert outline(list(runs(blocks, rows=9, largest=10))) == [("t", 0, [1, 2]), ("t", 0, [3, 4])]


@pytest.mark.parametrize(("rows", "largest"), [(3, 99), (9, 3)])
def test_a_run_that_is_full_is_given_before_the_next_block_is_asked_for(rows: int, largest: int) -> None:
    asked = []

    def blocks() -> Iterator[pa.Table]:
        for offsets in ((1, 2, 3), (4, 5, 6)):
            asked.append(offsets)
            yield block(*a(*offsets))

    found = gathered(runs(blocks(), rows=rows, largest=largest), rows=rows, largest=largest)
    assert outline(next(found)) == [("t", 0, [1, 2, 3])]
    assert asked == [(1, 2, 3)]


def test_nothing_is_held_of_a_run_while_the_next_block_is_waited_for() -> None:
    given: list[weakref.ref[np.ndarray]] = []

    def blocks() -> Iterator[pa.Table]:
        for offset in range(4):
            assert [each for each in given if each() is not None] == [], offset
            values = np.arange(3, dtype=np.uint8)
            given.append(weakref.ref(values))
            ends = pa.py_buffer(np.array([0, 1, 2, 3], np.int32))
            texts = pa.Array.from_buffers(pa.binary(), 3, [None, ends, pa.py_buffer(values)])
            del values
            yield block(*a(*range(3 * offset, 3 * offset + 3))).set_column(0, "value", texts)
            del texts

    groups = 0
    for group in gathered(runs(blocks(), rows=3), rows=3):
        groups += 1
        del group
    assert groups == 4


def test_small_runs_are_put_together() -> None:
    found = list(runs([block(*a(1, 2), *b(1), *c(1, 2, 3))], rows=9))
    assert [len(group) for group in gathered(found, rows=3)] == [2, 1]


GROUPS = [
    # Runs of two blocks share a group up to so many records.
    ([a(1), b(1), c(1)], 7, 99, [["t0", "t1", "u1"]]),
    ([a(1, 2, 3), b(1, 2)], 4, 99, [["t0"], ["t1"]]),
    # Of a block that has half as many, the next one is not waited for.
    ([a(1) + b(1), c(1)], 4, 99, [["t0", "t1"], ["u1"]]),
    ([a(1) + b(1) + c(1), a(2)], 6, 99, [["t0", "t1", "u1"], ["t0"]]),
    # Nor are there more bytes than in a long run.
    ([a(1) + b(1) + c(1)], 9, 2, [["t0", "t1"], ["u1"]]),
]


@pytest.mark.parametrize(("blocks", "rows", "largest", "expected"), GROUPS)
def test_a_group_has_so_many_records_and_bytes_and_ends_with_a_block_that_has_enough(blocks, rows, largest, expected):
    found = gathered(runs([block(*each) for each in blocks], rows=rows), rows, largest)
    assert [[f"{run.topic}{run.partition}" for run in group] for group in found] == expected


WHOLES = [([a(1, 2, 3) + b(1) + c(1)], 0), ([a(1) + b(1), c(1)], 1), ([a(1), a(2) + b(1)], 1)]


@pytest.mark.parametrize(("blocks", "copied"), WHOLES)
def test_the_records_of_a_group_are_copied_only_if_they_are_of_several_blocks(blocks, copied) -> None:
    made = [block(*each) for each in blocks]
    (group,) = gathered(runs(made, rows=9), rows=90)
    joined = whole(group)
    assert joined.to_pylist() == pa.concat_tables(made).to_pylist()
    shared = joined["value"].chunk(0).buffers()[2].address == made[0]["value"].chunk(0).buffers()[2].address
    assert shared is not bool(copied)


def test_the_records_of_a_part_of_a_block_are_not_copied() -> None:
    made = block(*a(1, 2, 3), *b(1), *c(1))
    _, *others = runs([made], rows=9)
    assert whole(others).to_pylist() == made.slice(3).to_pylist()
    assert whole(others)["value"].chunk(0).buffers()[2].address == made["value"].chunk(0).buffers()[2].address
