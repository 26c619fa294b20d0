"""A sink's key that the query does not prove."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa

from operators.rows.materialize import Materialize
from tests.operators.properties import Batch, Change, Row, Run, holds_restart, holds_undo

SCHEMA = pa.schema([("c0", pa.string()), ("c1", pa.int64())])
KERNEL = Materialize(output=SCHEMA, key=(0,))


def came(run: Run, *changes: tuple[str, int, int], now: int = 0) -> list[tuple[object, ...]]:
    table = run(Batch([Change((a, b), weight) for a, b, weight in changes], now))
    return list(zip(*(c.to_pylist() for c in table.columns), strict=True))


def random_batches(seed: int, count: int) -> list[Batch]:
    """Rows of few keys that come and go; none goes more often than it came."""
    rng = random.Random(seed)
    there: Counter[tuple[str, int]] = Counter()
    batches = []
    for number in range(count):
        changes = []
        for _ in range(rng.choice([0, 1, 4, 12])):
            if there and rng.random() < 0.45:
                row = rng.choice(sorted(there.elements()))
                there -= Counter([row])
                changes.append(Change(row, -1))
            else:
                row = (rng.choice("abc"), rng.randrange(4))
                there[row] += 1
                changes.append(Change(row, 1))
        batches.append(Batch(changes, now=1000 * number))
    return batches


def test_a_swap_in_two_batches_leaves_each_key_its_row():
    run = Run((KERNEL,))
    came(run, ("ann", 1, 1), ("bob", 2, 1))
    assert came(run, ("ann", 1, -1), ("bob", 1, 1), now=1) == [("ann", 1, -1), ("bob", 2, -1), ("bob", 1, 1)]
    assert came(run, ("bob", 2, -1), ("ann", 2, 1), now=2) == [("ann", 2, 1)]
    assert run.applied == Counter([("ann", 2), ("bob", 1)])


def test_the_row_before_comes_back_when_the_shown_one_goes():
    run = Run((KERNEL,))
    came(run, ("a", 1, 1))
    assert came(run, ("a", 2, 1), now=1) == [("a", 1, -1), ("a", 2, 1)]
    assert came(run, ("a", 2, -1), now=2) == [("a", 2, -1), ("a", 1, 1)]
    assert came(run, ("a", 1, -1), now=3) == [("a", 1, -1)]


def test_a_row_that_is_not_shown_goes_unseen():
    run = Run((KERNEL,))
    came(run, ("a", 1, 1))
    came(run, ("a", 2, 1), now=1)
    assert came(run, ("a", 1, -1), now=2) == []


def test_a_row_that_is_there_twice_goes_with_its_last_copy():
    run = Run((KERNEL,))
    came(run, ("a", 1, 2))
    assert came(run, ("a", 1, -1)) == []
    assert came(run, ("a", 1, -1)) == [("a", 1, -1)]


def test_a_row_that_was_written_again_says_so():
    run = Run((KERNEL,))
    came(run, ("a", 1, 1))
    assert came(run, ("a", 1, 0)) == [("a", 1, 0)]


def test_what_was_never_there_is_dropped_and_counted():
    run = Run((KERNEL,))
    assert came(run, ("a", 1, -1)) == []
    assert (run.unmatched_retractions, run.state_rows()) == (1, 0)


def test_there_is_one_row_for_every_key_that_has_any():
    there: Counter[Row] = Counter()
    run = Run((KERNEL,))
    for batch in random_batches(1, 60):
        run(batch)
        for change in batch.changes:
            there[change.row] += change.weight
        there = +there
        assert set(run.applied.values()) <= {1}
        assert set(run.applied) <= set(there)
        assert Counter(row[0] for row in run.applied) == Counter({row[0] for row in there})


def test_taking_everything_back_leaves_nothing():
    holds_undo((KERNEL,), random_batches(2, 30))


def test_a_restart_changes_nothing():
    holds_restart((KERNEL,), random_batches(3, 30))
