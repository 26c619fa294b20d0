"""INTERSECT and EXCEPT, with and without ALL."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from operators.rows.set_operation import SetKind, SetOperationOperator
from tests.operators.properties import Batch, Change, Run, every, holds_cut, holds_oracle, holds_restart, holds_undo
from tests.operators.shared_hashes import share_hashes

ROWS = pa.schema([("c0", pa.int64()), ("c1", pa.string())])


def operation(kind: SetKind, **options):
    return SetOperationOperator(output=ROWS, kind=kind, **options)


def log(seed: int, count: int) -> list[Change]:
    """Rows of both sides that come several times and are retracted."""
    rng = random.Random(seed)
    there: list[Change] = []
    changes: list[Change] = []
    for _ in range(count):
        if there and rng.random() < 0.35:
            gone = there.pop(rng.randrange(len(there)))
            changes.append(Change(gone.row, -1, gone.port))
            continue
        there.append(Change((rng.choice([None, 1, 2]), rng.choice("xy")), 1, rng.randrange(2)))
        changes.append(there[-1])
    return changes


@pytest.mark.parametrize("kind", SetKind)
@pytest.mark.parametrize("restart", [False, True])
def test_it_equals_a_batch_query(kind, restart):
    batches = every(3)(log(1, 90))
    holds_oracle((operation(kind),), batches, f"SELECT * FROM t0 {kind.value} SELECT * FROM t1", restart)


@pytest.mark.parametrize("kind", SetKind)
def test_it_does_not_depend_on_how_the_log_is_cut(kind):
    holds_cut((operation(kind),), log(2, 60), [every(2), every(7), every(100)])


@pytest.mark.parametrize("kind", SetKind)
def test_all_that_is_retracted_leaves_nothing_behind(kind):
    holds_undo((operation(kind),), every(5)(log(3, 60)))


def test_a_restart_changes_nothing_bit_by_bit():
    holds_restart((operation(SetKind.EXCEPT_ALL),), every(4)(log(4, 60)))


def test_rows_that_share_a_hash_are_kept_apart(monkeypatch):
    share_hashes(monkeypatch)
    holds_oracle((operation(SetKind.INTERSECT_ALL),), every(3)(log(5, 60)), "SELECT * FROM t0 INTERSECT ALL FROM t1")


def test_a_row_of_the_right_takes_one_copy_away_with_all_and_every_copy_without():
    left, right = [Change((1, "x"))] * 3, [Change((1, "x"), 1, 1)]
    for kind, copies in (
        (SetKind.EXCEPT_ALL, 2),
        (SetKind.EXCEPT, 0),
        (SetKind.INTERSECT_ALL, 1),
        (SetKind.INTERSECT, 1),
    ):
        run = Run((operation(kind),))
        run(Batch([*left, *right]))
        assert sum(run.applied.values()) == copies


def test_a_row_that_was_not_written_for_its_time_to_live_is_forgotten():
    run = Run((operation(SetKind.INTERSECT, ttl=100),))
    run(Batch([Change((1, "x"))], now=1000))
    run(Batch([Change((1, "x"), 1, 1)], now=1100))
    assert run.log == []
    assert run.state_rows() == 1


def test_a_retraction_of_what_is_not_there_is_dropped_and_counted():
    run = Run((operation(SetKind.EXCEPT),))
    run(Batch([Change((1, "x"), -1, 1)]))
    assert run.unmatched_retractions == 1
    assert run.state_rows() == 0
