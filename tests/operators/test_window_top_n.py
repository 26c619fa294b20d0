"""The top N rows of each window, once it closes."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from operators.over.settle import SettleOperator
from operators.ranking.ranking import OrderBy, RankFunction, Ranking
from operators.ranking.window_top_n import WindowTopNOperator
from operators.time import END_OF_TIME
from tests.operators.properties import Batch, Change, Run, holds_oracle, holds_restart

EPOCH = datetime(1970, 1, 1)
STAMP = pa.timestamp("us")
SCHEMA = pa.schema(
    [("c0", pa.string()), ("c1", pa.int64()), ("c2", STAMP), ("c3", STAMP), ("c4", STAMP), ("c5", pa.int64())]
)
"""A key, a value, window_start, window_end and window_time, and the number of the row as it arrives."""

SIZE, DELAY = 20, 15
ORDER = (OrderBy(column=1, descending=True, nulls_first=False),)

RANKINGS = {
    "top 2 by key": Ranking(partition=(2, 3, 0), order=ORDER, last=2, shown=True),
    "top 3": Ranking(partition=(2, 3), order=ORDER, last=3),
    "second by key": Ranking(partition=(2, 3, 0), order=ORDER, first=2, last=2),
    "last by key": Ranking(partition=(2, 3, 0), order=ORDER, last=1, latest_first=True),
    "ranks": Ranking(partition=(2, 3), order=ORDER, last=2, function=RankFunction.RANK, shown=True),
    "every row": Ranking(partition=(2, 3), order=ORDER, last=2**62, shown=True),
    "buckets": Ranking(partition=(2, 3), order=ORDER, last=2**62, function=RankFunction.NTILE, buckets=3, shown=True),
    "part behind": Ranking(partition=(2, 3), order=ORDER, last=2**62, function=RankFunction.PERCENT_RANK, shown=True),
    "part within": Ranking(partition=(2, 3, 0), order=ORDER, last=2**62, function=RankFunction.CUME_DIST, shown=True),
}
KEYED, ALL, VALUE = "PARTITION BY c2, c3, c0", "PARTITION BY c2, c3", "c1 DESC NULLS LAST"
ORACLES = {
    "top 2 by key": f"SELECT *, row_number() OVER ({KEYED} ORDER BY {VALUE}, c5) AS n FROM closed QUALIFY n <= 2",
    "top 3": f"SELECT * FROM closed QUALIFY row_number() OVER ({ALL} ORDER BY {VALUE}, c5) <= 3",
    "second by key": f"SELECT * FROM closed QUALIFY row_number() OVER ({KEYED} ORDER BY {VALUE}, c5) = 2",
    "last by key": f"SELECT * FROM closed QUALIFY row_number() OVER ({KEYED} ORDER BY {VALUE}, c5 DESC) = 1",
    "ranks": f"SELECT *, rank() OVER ({ALL} ORDER BY {VALUE}) AS n FROM closed QUALIFY n <= 2",
    "every row": f"SELECT *, row_number() OVER ({ALL} ORDER BY {VALUE}, c5) AS n FROM closed",
    "buckets": f"SELECT *, ntile(3) OVER ({ALL} ORDER BY {VALUE}, c5) AS n FROM closed",
    "part behind": f"SELECT *, percent_rank() OVER ({ALL} ORDER BY {VALUE}) AS n FROM closed",
    "part within": f"SELECT *, cume_dist() OVER ({KEYED} ORDER BY {VALUE}) AS n FROM closed",
}


def at(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def row(key, value, time: int, number: int) -> Change:
    start = time // SIZE * SIZE
    return Change((key, value, at(start), at(start + SIZE), at(start + SIZE - 1), number))


def kernel(name: str, **options) -> WindowTopNOperator:
    return WindowTopNOperator(input=SCHEMA, ranking=RANKINGS[name], time=4, **options)


def arrivals(seed: int, count: int) -> list[tuple[int, Change]]:
    """Rows whose times rise, out of order by less than the delay."""
    rng = random.Random(seed)
    times = [max(0, i + rng.randrange(DELAY) - DELAY) for i in range(count)]
    return [(time, row(rng.choice(["a", None]), rng.choice([None, 1, 2, 3]), time, i)) for i, time in enumerate(times)]


def cut(rows: list[tuple[int, Change]], size: int) -> list[Batch]:
    batches = []
    for start in range(0, len(rows), size):
        highest = max(time for time, _ in rows[: start + size])
        batches.append(Batch([change for _, change in rows[start : start + size]], watermark=highest - DELAY))
    return [*batches, Batch([], watermark=END_OF_TIME)]


@pytest.mark.parametrize("name", RANKINGS)
def test_windows_equal_a_batch_query_once_they_have_closed(name):
    def query(batch: Batch) -> str:
        closed = f"(SELECT * FROM t0 WHERE epoch_ms(c4) <= {batch.watermark})"
        return ORACLES[name].replace("FROM closed", f"FROM {closed}")

    run = holds_oracle((kernel(name),), cut(arrivals(1, 160), 7), query, restart=True)
    assert run.late == []


@pytest.mark.parametrize("name", RANKINGS)
def test_windows_do_not_depend_on_how_the_log_is_cut(name):
    rows = arrivals(2, 100)
    results = []
    for size in (1, 9, 1000):
        run = Run((kernel(name),))
        for batch in cut(rows, size):
            run(batch)
        results.append(run.applied)
    assert results[0] == results[1] == results[2]


def test_windows_survive_a_restart_bit_by_bit():
    holds_restart((kernel("top 2 by key"),), cut(arrivals(3, 120), 5))


def test_state_holds_no_more_than_the_tops_of_a_few_batches():
    run = Run((kernel("top 2 by key"),))
    for number in range(400):
        run(Batch([row(key, value, 5, number) for key in "ab" for value in range(20)], watermark=0))
        assert run.state_rows() <= 4 * 4 * 20
    run(Batch([], watermark=19))
    assert [(r[0], r[1], r[6]) for r, _ in run.log] == [("a", 19, 1), ("a", 19, 2), ("b", 19, 1), ("b", 19, 2)]
    assert run.state_rows() == 0


def test_windows_come_out_in_the_order_of_their_ends_and_each_in_its_order():
    run = Run((kernel("top 3"),))
    run(Batch([row("a", 1, 45, 0), row("b", 7, 3, 1), row("a", 9, 44, 2), row("c", 8, 2, 3)], watermark=60))
    assert [(r[0], r[1]) for r, _ in run.log] == [("c", 8), ("b", 7), ("a", 9), ("a", 1)]


def test_a_row_of_a_window_that_has_closed_is_late():
    run = Run((kernel("top 3"),))
    run(Batch([row("a", 1, 5, 0)], watermark=19))
    run(Batch([row("a", 2, 19, 1), row("a", 3, 20, 2)], watermark=19))
    assert [r[1] for r, _ in run.log] == [1]
    assert [(r[0], r[1]) for r in run.late] == [("a", 2)]
    assert run.late_count == 1


def test_in_processing_time_a_window_closes_by_the_clock():
    run = Run((kernel("top 3", processing=True),))
    run(Batch([row("a", 1, 5, 0)], now=5))
    run(Batch([row("a", 2, 19, 1)], now=19))
    run(Batch([row("a", 3, 20, 2)], now=20))
    assert [r[1] for r, _ in run.log] == [2, 1]


WHOLE = {name: replace(kernel(name), ranking=RANKINGS[name].ordered_whole(len(SCHEMA))) for name in RANKINGS}
SETTLE = SettleOperator(output=SCHEMA, partition=(2, 3), time=4)


def retracting(seed: int, count: int) -> list[tuple[int, Change]]:
    """Rows of which some go again, and come again, while their window is open; equal values tell no row first."""
    rng = random.Random(seed)
    log: list[tuple[int, Change]] = []
    newest = 0
    for time, change in arrivals(seed, count):
        newest = max(newest, time)
        log.append((time, change))
        known = [(t, c) for t, c in log if c.weight > 0 and t > newest - DELAY]
        gone = rng.choice(known)
        if rng.random() < 0.4 and sum(c.weight for _, c in log if c.row == gone[1].row) > 0:
            log.append((gone[0], Change(gone[1].row, -1)))
            if rng.random() < 0.5:
                log.append(gone)
    return log


@pytest.mark.parametrize("name", RANKINGS)
def test_windows_over_retracted_rows_equal_a_batch_query_once_they_have_closed(name):
    def query(batch: Batch) -> str:
        closed = f"(SELECT * FROM t0 WHERE epoch_ms(c4) <= {batch.watermark})"
        # Rows that tie are ordered by their other columns, ascending, of which the window's tell none apart.
        ties = ", c5" if "key" in name else ", c0 NULLS FIRST, c5"
        return ORACLES[name].replace("FROM closed", f"FROM {closed}").replace(", c5 DESC", ", c5").replace(", c5", ties)

    run = holds_oracle((SETTLE, WHOLE[name]), cut(retracting(4, 120), 7), query, restart=True)
    assert (run.late, run.unmatched_retractions) == ([], 0)


def test_in_processing_time_rows_settle_by_the_clock():
    run = Run((replace(SETTLE, processing=True), replace(WHOLE["top 3"], processing=True)))
    run(Batch([row("a", 1, 5, 0)], now=5))
    run(Batch([Change(row("a", 1, 5, 0).row, -1), row("a", 2, 19, 1)], now=19))
    run(Batch([row("a", 3, 20, 2)], now=20))
    assert [r[1] for r, _ in run.log] == [2]
    assert (run.late_count, run.unmatched_retractions) == (0, 0)
