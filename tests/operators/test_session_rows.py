"""The table function SESSION by itself: each row with its session."""

from __future__ import annotations

from datetime import datetime

import pytest

from operators.time import END_OF_TIME
from operators.windows.session_partial import SessionPartial
from operators.windows.session_rows import SessionRows
from tests.operators.properties import Batch, Change, Run, holds_cut, holds_oracle, holds_restart
from tests.operators.test_session_aggregate import GAP, INPUT, arrivals, at, cut, retracted, steps


def rows_with_sessions(keys=(0,), **options):
    return (SessionRows(partial=SessionPartial(input=INPUT, time=2, gap=GAP, keys=keys, aggregates=(), **options)),)


def oracle(key="c0"):
    def query(batch: Batch) -> str:
        before = f"LAG(epoch_ms(c2)) OVER (PARTITION BY {key} ORDER BY c2)"
        return (
            f"SELECT c0, c1, c2, first, last + INTERVAL {GAP} MILLISECOND, last + INTERVAL {GAP - 1} MILLISECOND FROM"
            f" (SELECT *, MIN(c2) OVER session AS first, MAX(c2) OVER session AS last FROM"
            f" (SELECT *, SUM(fresh) OVER (PARTITION BY {key} ORDER BY c2 RANGE UNBOUNDED PRECEDING) AS nth FROM"
            f" (SELECT *, CASE WHEN epoch_ms(c2) - {before} <= {GAP} THEN 0 ELSE 1 END AS fresh FROM t0))"
            f" WINDOW session AS (PARTITION BY {key}, nth))"
            f" WHERE epoch_ms(last) + {GAP - 1} <= {batch.watermark}"
        )

    return query


@pytest.mark.parametrize(("keys", "key"), [((0,), "c0"), ((), "true")], ids=["by key", "of the whole stream"])
def test_rows_equal_a_batch_query(keys, key):
    run = holds_oracle(rows_with_sessions(keys), cut(arrivals(1, 150), steps(1)), oracle(key))
    assert (run.late_count, run.state_rows()) == (0, 0)


def test_rows_do_not_depend_on_how_the_log_is_cut():
    cuts = [lambda c, n=n: cut(c, iter(lambda: n, 0)) for n in (1, 17, 1000)]
    holds_cut(rows_with_sessions(), arrivals(3, 80), cuts)


@pytest.mark.parametrize("append", [True, False], ids=["rows are only added", "rows may be retracted"])
def test_rows_survive_a_restart_bit_by_bit(append):
    holds_restart(rows_with_sessions(append=append), cut(arrivals(4, 100), steps(4)))


@pytest.mark.parametrize("seed", [11, 12])
def test_of_retracted_rows_those_that_are_left_come_out(seed):
    batches = [Batch(b.changes, watermark=b.watermark - 200) for b in cut(retracted(seed, 150), steps(seed))[:-1]]
    run = holds_oracle(rows_with_sessions(append=False), [*batches, Batch([], watermark=END_OF_TIME)], oracle())
    assert (run.late_count, run.unmatched_retractions, run.state_rows()) == (0, 0, 0)


def test_when_every_row_is_retracted_no_rows_are_kept():
    changes = arrivals(21, 40)
    run = Run(rows_with_sessions(append=False))
    run(Batch(changes))
    run(Batch([Change(c.row, -1) for c in reversed(changes)]))
    assert [run.states[0][name].rows_seen() for name in ("sessions", "rows")] == [0, 0]


def test_the_rows_of_a_session_leave_the_state_with_it():
    run = Run(rows_with_sessions())
    for time in (0, 5, 20, 200):
        run(Batch([Change(("a", time, at(time)))], watermark=0))
    assert run.states[0]["rows"].rows_seen() == 4
    run(Batch([], watermark=100))
    assert [row[1] for row, _ in run.log] == [0, 5, 20]
    assert [run.states[0][name].rows_seen() for name in ("sessions", "rows")] == [1, 1]


def test_a_late_row_is_handed_back_and_not_kept():
    run = Run(rows_with_sessions())
    run(Batch([Change(("a", 1, at(0))), Change(("b", 1, at(35)))], watermark=40))
    run(Batch([Change(("a", 2, at(5))), Change(("b", 3, at(25)))], watermark=40))
    assert (run.late, run.late_count) == ([("a", 2, at(5))], 1)
    run(Batch([], watermark=END_OF_TIME))
    assert [row[:2] for row, _ in run.log] == [("a", 1), ("b", 1), ("b", 3)]
    assert run.state_rows() == 0


def test_the_bounds_are_of_the_wall_clock_and_the_time_is_an_instant():
    run = Run(rows_with_sessions(zone="Europe/Berlin"))
    # The clock goes back at 01:00 UTC: the session lasts over the hour that comes twice.
    run(Batch([Change(("a", 1, datetime(2024, 10, 27, 0, 59, 59, 999000)))], watermark=END_OF_TIME))
    start, end, time = run.log[0][0][3:]
    assert start == datetime(2024, 10, 27, 2, 59, 59, 999000)
    assert end == datetime(2024, 10, 27, 2, 0, 0, 11000)
    assert time == datetime(2024, 10, 27, 1, 0, 0, 10000)


def test_a_row_without_a_time_is_dead():
    run = Run(rows_with_sessions())
    run(Batch([Change(("a", 1, None)), Change(("a", 2, at(4)))], watermark=END_OF_TIME))
    assert [row[1] for row, _ in run.log] == [2]
