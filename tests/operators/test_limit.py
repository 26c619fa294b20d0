"""LIMIT, its partial step, and ORDER BY time."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from operators.ranking.limit import LimitOperator
from operators.ranking.ranking import OrderBy, RankFunction, Ranking
from operators.ranking.time_sort import TimeSortOperator
from operators.ranking.top_n import TopNOperator
from operators.ranking.top_n_partial import TopNPartialOperator
from operators.time import END_OF_TIME
from tests.operators.properties import Batch, Change, Run, every, holds_cut, holds_oracle, holds_restart

NUMBERS = pa.schema([("c0", pa.int64()), ("c1", pa.int64())])


def numbers(seed: int, count: int) -> list[Change]:
    rng = random.Random(seed)
    return [Change((rng.choice([None, 1, 2, 3]), i)) for i in range(count)]


def batches(changes: list[Change], size: int = 7) -> list[Batch]:
    return every(size)(changes)


@pytest.mark.parametrize(("first", "last"), [(1, 5), (4, 20), (15, 16), (1, 0), (1, 1000)])
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_a_limit_is_the_first_rows_that_arrive(first: int, last: int, size: int):
    run = Run((LimitOperator(output=NUMBERS, first=first, last=last),), restart=True)
    for batch in every(size)(numbers(1, 40)):
        run(batch)
    assert [row[1] for row, _ in run.log] == list(range(40))[first - 1 : max(last, 0)]
    assert run.state_rows() == 0


RANKINGS = [
    Ranking(partition=(), order=(OrderBy(column=0),), last=3, shown=True),
    Ranking(partition=(), order=(OrderBy(column=0, descending=True),), last=2, latest_first=True),
    Ranking(partition=(), order=(OrderBy(column=0),), last=2, function=RankFunction.RANK),
    Ranking(partition=(), order=(), last=4),
]


@pytest.mark.parametrize("ranking", RANKINGS)
def test_what_a_partial_step_leaves_out_changes_no_answer(ranking: Ranking):
    whole, after = (
        Run((TopNOperator(input=NUMBERS, ranking=ranking),)),
        Run((TopNPartialOperator(output=NUMBERS, ranking=ranking), TopNOperator(input=NUMBERS, ranking=ranking))),
    )
    for batch in batches(numbers(2, 60)):
        whole(batch)
        after(batch)
        assert after.log == whole.log


STAMPED = pa.schema([("c0", pa.timestamp("us")), ("c1", pa.int64()), ("c2", pa.int64())])
BY_TIME = TimeSortOperator(output=STAMPED, order=(OrderBy(column=0), OrderBy(column=1, descending=True)))
DELAY = 10


def at(ms: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(milliseconds=ms)


def timed(seed: int, count: int) -> list[Change]:
    rng = random.Random(seed)
    return [
        Change((at(max(0, i + rng.randrange(DELAY) - DELAY) // 2 * 2), rng.choice([None, 1, 2]), i))
        for i in range(count)
    ]


def highest(changes) -> int:
    times = [int((c.row[0] - at(0)) / timedelta(milliseconds=1)) for c in changes]
    return max(times) - DELAY


def test_rows_come_out_in_the_order_of_time_once_the_watermark_has_reached_it():
    cut = every(6, highest)
    holds_oracle((BY_TIME,), cut(timed(1, 80)), lambda b: f"SELECT * FROM t0 WHERE epoch_ms(c0) <= {b.watermark}", True)
    run = Run((BY_TIME,))
    for batch in cut(timed(2, 80)):
        run(batch)
    keys = [(row[0], row[1] is not None, -(row[1] or 0), row[2]) for row, _ in run.log]
    assert keys == sorted(keys)
    assert len(keys) == 80
    assert run.state_rows() == 0


def test_sorting_does_not_depend_on_how_the_log_is_cut():
    holds_cut((BY_TIME,), timed(3, 60), [every(3, highest), every(11, highest), every(1000, highest)])


def test_sorting_survives_a_restart_bit_by_bit():
    holds_restart((BY_TIME,), every(5, highest)(timed(4, 60)))


def test_a_row_behind_the_watermark_is_late():
    run = Run((BY_TIME,))
    run(Batch([Change((at(5), 1, 1))], watermark=5))
    run(Batch([Change((at(5), 1, 2)), Change((at(6), 1, 3))], watermark=END_OF_TIME))
    assert [row[2] for row, _ in run.log] == [1, 3]
    assert [row[2] for row in run.late] == [2]


def test_in_processing_time_a_batch_is_sorted_by_the_rest_at_once():
    order = (OrderBy(column=0), OrderBy(column=1))
    run = Run((TimeSortOperator(output=STAMPED, order=order, processing=True),))
    run(Batch([Change((at(5), 2, 1)), Change((at(5), 1, 2))]))
    run(Batch([Change((at(6), 0, 3))]))
    assert [row[2] for row, _ in run.log] == [2, 1, 3]
