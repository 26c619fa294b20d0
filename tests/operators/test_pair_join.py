"""The join that puts the two halves of rows together, in whatever order they come."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest

from operators.joins.pair_join import PairJoinOperator
from operators.names import WEIGHT
from tests.operators.properties import Batch, Change, Run

LEFT = pa.schema([("c0", pa.string()), ("c1", pa.string()), ("c2", pa.int64()), ("c3", pa.bool_())])
RIGHT = pa.schema([("c0", pa.int64()), ("c1", pa.float64()), ("c2", pa.string())])
KERNEL = PairJoinOperator(left=LEFT, right=RIGHT, left_keys=(1, 2), right_keys=(2, 0))
"""Joined by a name and a number, which stand at other places on either side."""

ORACLE = "SELECT l.*, r.* FROM t0 l JOIN t1 r ON l.c1 IS NOT DISTINCT FROM r.c2 AND l.c2 = r.c0"


def key_of(change: Change) -> tuple[str | None, int]:
    """The name and the number of a half."""
    return (change.row[1], change.row[2]) if change.port == 0 else (change.row[2], change.row[0])


def half(port: int, name: str | None, number: int) -> Change:
    """Some half of a row, of either side."""
    return Change(("x", name, number, True) if port == 0 else (number, 0.5, name), port=port)


def halves(seed: int, count: int = 60) -> list[Change]:
    """Rows whose halves come apart, up to twenty others between them; names and all values may be NULL."""
    rng = random.Random(seed)
    parts: list[tuple[float, Change]] = []
    for number in range(count):
        name = rng.choice(["a", "", None])
        left = (rng.choice(["x", None]), name, number, rng.choice([None, True, False]))
        right = (number, rng.choice([None, number / 4]), name)
        parts += [
            (number + rng.random() * 20, Change(left, port=0)),
            (number + rng.random() * 20, Change(right, port=1)),
        ]
    return [change for _, change in sorted(parts, key=lambda part: part[0])]


def halves_missing(batches: Sequence[Batch]) -> int:
    """How many rows have one half only."""
    came = Counter(key_of(change) for batch in batches for change in batch.changes)
    return sum(count == 1 for count in came.values())


def test_a_row_comes_out_once_with_both_halves_and_nothing_is_kept_of_it():
    run = Run((KERNEL,))
    left, right = ("x", None, 7, True), (7, None, None)
    run(Batch([Change(left, port=0)]))
    assert (run.log, run.state_rows()) == ([], 1)
    run(Batch([Change(right, port=1)]))
    assert run.log == [(("x", None, 7, True, 7, None, None), 1)]


def test_both_halves_may_come_in_one_batch():
    run = Run((KERNEL,))
    run(Batch([Change(("x", "a", 7, None), port=0), Change((7, 0.5, "a"), port=1)]))
    assert run.log == [(("x", "a", 7, None, 7, 0.5, "a"), 1)]
    assert run.state_rows() == 0


def test_without_rows_nothing_comes_out():
    assert Run((KERNEL,))(Batch([])).column_names == [*KERNEL.output.names, WEIGHT]


@pytest.mark.parametrize(("left", "right"), [((), ()), ((1, 2), (2,))], ids=["no key", "keys of different length"])
def test_both_sides_need_the_same_key(left: tuple[int, ...], right: tuple[int, ...]):
    with pytest.raises(ValueError, match="both sides have the same key"):
        PairJoinOperator(left=LEFT, right=RIGHT, left_keys=left, right_keys=right)
