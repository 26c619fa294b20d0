"""Rows that may be retracted, on their way to OVER windows."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from operators.over.settle import SettleOperator
from operators.time import END_OF_TIME
from tests.operators import test_over as over
from tests.operators.properties import Batch, Change, Run, holds_oracle

KERNEL = SettleOperator(output=over.NUMBERED, partition=(0,), time=2)


def settled(batch: Batch) -> str:
    return f"SELECT * FROM t0 WHERE epoch_ms(c2) <= {batch.watermark}"


def arrivals(seed: int, count: int) -> list[Change]:
    """Rows out of order by less than the delay, of which some go again, and come again, ahead of the watermark."""
    rng = random.Random(seed)
    log: list[Change] = []
    there: list[Change] = []
    newest = over.EPOCH
    for change in over.arrivals(seed, count):
        log.append(change)
        there.append(change)
        newest = max(newest, change.row[2])
        open_ = [c for c in there if c.row[2] > newest - timedelta(milliseconds=over.DELAY)]
        if open_ and rng.random() < 0.4:
            gone = rng.choice(open_)
            there.remove(gone)
            log.append(Change(gone.row, -1))
            if rng.random() < 0.5:
                log.append(gone)
                there.append(gone)
    return log


def test_rows_come_out_as_often_as_they_are_there_when_the_watermark_reaches_them():
    run = holds_oracle((KERNEL,), over.cut(arrivals(1, 150), over.steps(1)), settled, restart=True)
    assert run.late_count == 0


@pytest.mark.parametrize(
    ("calls", "complete"),
    [*((calls, "true") for calls in over.CALLS.values()), *over.AHEAD.values()],
    ids=[*over.CALLS, *over.AHEAD],
)
def test_windows_over_retracted_rows_in_time_equal_a_batch_query(calls, complete):
    kernels = (KERNEL, over.over(calls, schema=over.NUMBERED))
    batches = over.cut(arrivals(2, 100), over.steps(2))
    run = holds_oracle(kernels, batches, over.oracle(calls, complete=complete), restart=True)
    assert run.late_count == 0


def row(number: int, time: int, weight: int = 1) -> Change:
    return Change(("a", number, over.at(time), None, number, True), weight)


def numbers(run: Run) -> list[tuple[int, int]]:
    return [(r[1], weight) for r, weight in run.log]


def test_a_row_that_is_retracted_before_its_time_is_as_if_it_had_not_come():
    run = Run((KERNEL,))
    run(Batch([row(1, 10), row(2, 20), row(2, 20)], watermark=5))
    run(Batch([row(1, 10, -1), row(2, 20, -1), row(3, 20)], watermark=30))
    assert numbers(run) == [(2, 1), (3, 1)]
    assert run.late_count == run.unmatched_retractions == 0


def test_a_retraction_behind_the_watermark_is_late_and_a_new_row_is_handed_on():
    run = Run((KERNEL,))
    run(Batch([row(1, 10)], watermark=30))
    run(Batch([row(1, 10, -1), row(4, 12), row(5, 13), row(5, 13, -1)], watermark=30))
    assert numbers(run) == [(1, 1), (4, 1)]
    assert run.late == [row(1, 10).row]
    assert run.late_count == 1


def test_a_retraction_of_a_row_that_never_came_is_counted():
    run = Run((KERNEL,))
    run(Batch([row(1, 10, -1)], watermark=5))
    run(Batch([], watermark=END_OF_TIME))
    assert run.unmatched_retractions == 1
    assert run.log == []
