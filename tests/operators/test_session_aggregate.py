"""Aggregates over sessions: windows that end a gap after their last row."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from operators.aggregates.functions import AggregateSpec
from operators.time import END_OF_TIME
from operators.windows.session_aggregate import SessionAggregate
from operators.windows.session_partial import SessionPartial
from operators.windows.sessions import extents
from tests.operators.cuts import behind, in_batches
from tests.operators.cuts import steps as drawn_steps
from tests.operators.properties import SQL, Batch, Change, Run, holds_cut, holds_oracle, holds_restart

EPOCH = datetime(1970, 1, 1)
STAMP = pa.timestamp("us")
INPUT = pa.schema([("c0", pa.string()), ("c1", pa.int64()), ("c2", STAMP)])
DELAY = 30
GAP = 12

AGGREGATES = [
    (AggregateSpec(function="COUNT"), pa.int64(), "COUNT(*)"),
    (AggregateSpec(function="SUM", arguments=(1,)), pa.int64(), "CAST(SUM(c1) AS BIGINT)"),
    (AggregateSpec(function="MAX", arguments=(1,)), pa.int64(), "MAX(c1)"),
    (AggregateSpec(function="AVG", arguments=(1,)), pa.int64(), "CAST(SUM(c1) // COUNT(c1) AS BIGINT)"),
    (AggregateSpec(function="COUNT", arguments=(1,), distinct=True), pa.int64(), "COUNT(DISTINCT c1)"),
]
COUNT = AGGREGATES[:1]


cut = partial(in_batches, watermark=behind(2, DELAY))
steps = partial(drawn_steps, sizes=(1, 3, 20, 40))


def at(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def sessions(aggregates=AGGREGATES, gap=GAP, keys=(0,), whole=False, **options):
    partial = SessionPartial(
        input=INPUT, time=2, gap=gap, keys=keys, aggregates=tuple(a for a, _, _ in aggregates), **options
    )
    types = [*(INPUT.types[k] for k in keys), *(t for _, t, _ in aggregates), STAMP, STAMP, STAMP]
    output = pa.schema([(f"c{i}", t) for i, t in enumerate(types)])
    final = SessionAggregate(partial=partial, output=output, whole=whole)
    return (final,) if whole else (partial, final)


def oracle(aggregates=AGGREGATES, gap=GAP, keys=("c0",)):
    """Sessions by comparing each row with the one before it, in the time of one key."""
    by = ", ".join(["true", *keys])

    def query(batch: Batch) -> str:
        items = ", ".join([*keys, *(q for _, _, q in aggregates)])
        before = f"LAG(epoch_ms(c2)) OVER (PARTITION BY {by} ORDER BY c2)"
        return (
            f"SELECT {items}, MIN(c2), MAX(c2) + INTERVAL {gap} MILLISECOND, MAX(c2) + INTERVAL {gap - 1} MILLISECOND"
            f" FROM (SELECT *, SUM(fresh) OVER (PARTITION BY {by} ORDER BY c2 RANGE UNBOUNDED PRECEDING) AS nth FROM"
            f" (SELECT *, CASE WHEN epoch_ms(c2) - {before} <= {gap} THEN 0 ELSE 1 END AS fresh FROM t0))"
            f" GROUP BY {', '.join([*keys, 'nth'])} HAVING epoch_ms(MAX(c2)) + {gap - 1} <= {batch.watermark}"
        )

    return query


def arrivals(seed: int, count: int) -> list[Change]:
    """Rows whose times rise, out of order by less than the delay, with silences now and then."""
    rng = random.Random(seed)
    rows, pace = [], 0
    for _ in range(count):
        pace += rng.choice([0, 1, 2, 3, 5, 25])
        time = max(0, pace + rng.randrange(DELAY) - DELAY)
        rows.append(Change((rng.choice(["a", "", None]), rng.choice([None, 1, 2, rng.randrange(50)]), at(time))))
    return rows


@pytest.mark.parametrize("whole", [False, True], ids=["partials", "whole rows"])
@pytest.mark.parametrize("seed", [1, 2])
def test_sessions_equal_a_batch_query(seed, whole):
    run = holds_oracle(sessions(whole=whole), cut(arrivals(seed, 150), steps(seed)), oracle())
    assert run.late_count == 0
    assert run.state_rows() == 0


def test_sessions_of_the_whole_stream_equal_a_batch_query():
    batches = cut(arrivals(7, 120), steps(7))
    holds_oracle(sessions(AGGREGATES, gap=4, keys=()), batches, oracle(AGGREGATES, gap=4, keys=()))


def test_sessions_do_not_depend_on_how_the_log_is_cut():
    cuts = [lambda c, n=n: cut(c, iter(lambda: n, 0)) for n in (1, 5, 17, 1000)]
    holds_cut(sessions(), arrivals(3, 80), cuts)


def test_sessions_survive_a_restart_bit_by_bit():
    holds_restart(sessions(), cut(arrivals(4, 100), steps(4)))


def test_state_holds_the_sessions_that_are_open_each_once_and_once_in_the_queue():
    run = Run(sessions(COUNT))
    for batch in cut(arrivals(5, 300), iter(lambda: 4, 0))[:-1]:
        run(batch)
        # Open are those whose last row is within the delay and the gap; neighbours are a gap apart.
        assert run.state_rows() <= 2 * 3 * ((2 * DELAY + GAP) // GAP + 1)


def test_a_session_that_never_pauses_stays_one_row():
    run = Run(sessions(COUNT))
    for time in range(0, 500, 5):
        run(Batch([Change(("a", 1, at(time)))], watermark=time))
        assert run.state_rows() == 2
    run(Batch([], watermark=495 + GAP - 1))
    assert run.log == [(("a", 100, at(0), at(495 + GAP), at(495 + GAP - 1)), 1)]
    assert run.state_rows() == 0


def test_a_row_exactly_a_gap_after_the_last_one_is_in_its_session():
    run = Run(sessions(COUNT))
    run(Batch([Change(("a", 1, at(0))), Change(("a", 1, at(GAP))), Change(("a", 1, at(2 * GAP + 1)))]))
    run(Batch([], watermark=END_OF_TIME))
    assert [row[1:4] for row, _ in run.log] == [
        (2, at(0), at(2 * GAP)),
        (1, at(2 * GAP + 1), at(3 * GAP + 1)),
    ]


def test_a_row_between_two_sessions_makes_them_one():
    run = Run(sessions(COUNT))
    run(Batch([Change(("a", 1, at(0)))]))
    run(Batch([Change(("a", 1, at(20)))]))
    assert run.state_rows() == 4
    run(Batch([Change(("a", 1, at(10)))]))
    assert run.states[1]["sessions"].rows_seen() == 1
    run(Batch([], watermark=END_OF_TIME))
    assert [row[1:4] for row, _ in run.log] == [(3, at(0), at(20 + GAP))]


def test_a_session_closes_one_millisecond_before_its_end():
    run = Run(sessions(COUNT))
    run(Batch([Change(("a", 1, at(3)))], watermark=3 + GAP - 2))
    assert run.log == []
    run(Batch([], watermark=3 + GAP - 1))
    assert run.log == [(("a", 1, at(3), at(3 + GAP), at(3 + GAP - 1)), 1)]


@pytest.mark.parametrize("whole", [False, True], ids=["partials", "whole rows"])
def test_a_row_is_late_if_the_session_that_it_makes_is_closed(whole):
    run = Run(sessions(COUNT, whole=whole))
    run(Batch([Change(("a", 1, at(0)))], watermark=40))
    run(Batch([Change(("a", 7, at(5))), Change(("b", 8, at(28))), Change(("b", 9, at(30)))], watermark=40))
    # b's rows join: the session ends at 30 + 12, which the watermark of 40 has not passed when they come.
    assert run.late_count == 1
    assert run.late == ([("a", 7, at(5))] if whole else [])
    run(Batch([], watermark=END_OF_TIME))
    assert [row[:2] for row, _ in run.log] == [("a", 1), ("b", 2)]


def test_a_row_behind_the_watermark_joins_a_session_that_is_open():
    run = Run(sessions(COUNT, whole=True))
    run(Batch([Change(("a", 1, at(30)))], watermark=40))
    run(Batch([Change(("a", 1, at(20)))], watermark=40))
    run(Batch([], watermark=END_OF_TIME))
    assert run.late == []
    assert [row[1:3] for row, _ in run.log] == [(2, at(20))]


def test_sessions_come_out_in_the_order_of_their_ends():
    run = Run(sessions(COUNT))
    run(Batch([Change((name, 1, at(t))) for t in range(500, 0, -70) for name in "abc"], watermark=1000))
    ends = [row[3] for row, _ in run.log]
    assert len(ends) > 10
    assert ends == sorted(ends)


@pytest.mark.parametrize("seed", range(4))
def test_keys_that_share_a_hash_have_sessions_of_their_own(seed, monkeypatch):
    rng = random.Random(seed)
    rows = [(rng.choice("ab"), time, time + rng.randrange(9)) for time in (rng.randrange(400) for _ in range(60))]
    pieces = pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=["k0", "s", "e"])
    apart = extents(pieces, ["k0"], 7, SQL)
    monkeypatch.setattr("operators.windows.sessions.bucket_hash", lambda table, _: np.zeros(len(table), np.uint64))
    together = extents(pieces, ["k0"], 7, SQL)
    assert [list(column) for column in apart] == [list(column) for column in together]
    assert len(set(apart.firsts)) > 5


def test_a_row_without_a_time_is_dead():
    kernel = sessions(COUNT, whole=True)[0]
    run = Run((kernel,))
    run(Batch([Change(("a", 1, None)), Change(("a", 2, at(4)))], watermark=END_OF_TIME))
    assert [row[1] for row, _ in run.log] == [1]


def test_in_processing_time_sessions_close_by_the_clock_and_nothing_is_late():
    run = Run(sessions(COUNT, processing=True))
    run(Batch([Change(("a", 1, at(5)))], now=5))
    run(Batch([Change(("a", 1, at(5 + GAP)))], now=5 + GAP))
    run(Batch([], now=5 + 2 * GAP - 1))
    assert run.log == []
    run(Batch([], now=5 + 2 * GAP))
    assert [row[1:4] for row, _ in run.log] == [(2, at(5), at(5 + 2 * GAP))]
    run(Batch([Change(("a", 1, at(8)))], now=8))  # The clock was set back.
    assert [row[1:3] for row, _ in run.log[1:]] == [(1, at(8))]
    assert run.state_rows() == 0


def test_a_batch_reads_the_keys_that_it_touches_and_those_that_may_close():
    run = Run(sessions(COUNT, gap=1000))
    for i in range(40):
        run(Batch([Change((f"{i}-{j}", 1, at(i))) for j in range(50)], watermark=i))
    trace = run.states[1]["sessions"]
    before = {block.id for block in trace.blocks()}
    run(Batch([Change(("0-0", 1, at(40)))], watermark=40))
    written = [block.rows for block in trace.blocks() if block.id not in before]
    assert written == [1]
    assert run.state_rows() == 2 * 40 * 50


def retracted(seed: int, count: int) -> list[Change]:
    """Rows that come, and that go again while their time is ahead of the watermark."""
    rng = random.Random(seed)
    rows: list[Change] = []
    there: list[tuple[int, tuple[object, ...]]] = []
    for at_row, change in enumerate(arrivals(seed, count)):
        rows.append(change)
        there.append((at_row, change.row))
        if rng.random() < 0.4:
            _, row = there.pop(rng.randrange(max(0, len(there) - 3), len(there)))
            rows.append(Change(row, -1))
    return rows


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_sessions_of_retracted_rows_equal_a_batch_query(seed):
    changes = retracted(seed, 150)
    # Rows are retracted a few rows after they came, so the watermark stays behind by more.
    batches = [Batch(b.changes, watermark=b.watermark - 200) for b in cut(changes, steps(seed))[:-1]]
    batches = [*batches, Batch([], watermark=END_OF_TIME)]
    run = holds_oracle(sessions(append=False, whole=True), batches, oracle())
    assert (run.late_count, run.unmatched_retractions, run.state_rows()) == (0, 0, 0)


def test_a_row_that_goes_parts_a_session():
    run = Run(sessions(COUNT, append=False, whole=True))
    run(Batch([Change(("a", i, at(t))) for i, t in enumerate((0, 10, 20))]))
    run(Batch([Change(("a", 1, at(10)), -1)]))
    run(Batch([], watermark=END_OF_TIME))
    assert [row[1:4] for row, _ in run.log] == [(1, at(0), at(GAP)), (1, at(20), at(20 + GAP))]


def test_when_every_row_is_retracted_nothing_is_left():
    changes = arrivals(21, 40)
    run = Run(sessions(append=False, whole=True))
    run(Batch(changes))
    run(Batch([Change(c.row, -1) for c in reversed(changes)]))
    assert run.states[0]["sessions"].rows_seen() == 0
    run(Batch([], watermark=END_OF_TIME))
    assert (run.log, run.state_rows(), run.unmatched_retractions) == ([], 0, 0)


def test_a_row_retracted_after_its_session_closed_is_late_and_one_never_there_is_dropped():
    run = Run(sessions(COUNT, append=False, whole=True))
    run(Batch([Change(("a", 1, at(0)))], watermark=40))
    run(Batch([Change(("a", 1, at(0)), -1), Change(("b", 1, at(50)), -1)], watermark=40))
    assert (run.late, run.late_count, run.unmatched_retractions) == ([("a", 1, at(0))], 1, 1)
    run(Batch([], watermark=END_OF_TIME))
    assert len(run.log) == 1
