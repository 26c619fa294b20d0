"""Aggregates over windows that close with the watermark."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from functools import partial
from math import gcd

import numpy as np
import pyarrow as pa
import pytest

from operators.aggregates.functions import AggregateSpec
from operators.state.block import Block, BlockStore, Loaded
from operators.state.operator_state import State
from operators.time import END_OF_TIME, MIN_TIME, Clock
from operators.windows.numbered_windows import NumberedWindows
from operators.windows.shapes import Attached, Cumulate, Hop, tumble
from operators.windows.slices import instants, reach, slice_text, windows_of
from operators.windows.window_aggregate import WindowAggregateOperator
from operators.windows.window_partial import WindowPartial
from operators.windows.window_rows import WindowRowsOperator
from tests.operators.cuts import behind, in_batches
from tests.operators.cuts import steps as drawn_steps
from tests.operators.properties import (
    SQL,
    Batch,
    Change,
    Run,
    block,
    holds_cut,
    holds_oracle,
    holds_restart,
    no_state,
)

EPOCH = datetime(1970, 1, 1)
STAMP = pa.timestamp("us")
INPUT = pa.schema([("c0", pa.string()), ("c1", pa.int64()), ("c2", STAMP)])
DELAY = 30

AGGREGATES = [
    (AggregateSpec(function="COUNT"), pa.int64(), "COUNT(*)"),
    (AggregateSpec(function="SUM", arguments=(1,)), pa.int64(), "CAST(SUM(c1) AS BIGINT)"),
    (AggregateSpec(function="MAX", arguments=(1,)), pa.int64(), "MAX(c1)"),
    (AggregateSpec(function="AVG", arguments=(1,)), pa.int64(), "CAST(SUM(c1) // COUNT(c1) AS BIGINT)"),
    (AggregateSpec(function="COUNT", arguments=(1,), distinct=True), pa.int64(), "COUNT(DISTINCT c1)"),
]

LISTS = [
    (AggregateSpec(function="COUNT"), pa.int64(), "COUNT(*)"),
    (
        AggregateSpec(function="ARRAY_AGG", arguments=(1,)),
        pa.list_(pa.int64()),
        "LIST(c1 ORDER BY c1 NULLS LAST)",
    ),
    (
        AggregateSpec(function="ARRAY_AGG", arguments=(1,), distinct=True),
        pa.list_(pa.int64()),
        "LIST(DISTINCT c1 ORDER BY c1 NULLS LAST)",
    ),
    (
        AggregateSpec(function="LISTAGG", arguments=(0,)),
        pa.string(),
        "STRING_AGG(c0, ',' ORDER BY c0)",
    ),
]

WINDOWS = {
    "tumble": tumble(20),
    "tumble with an offset": tumble(20, 7),
    "hop": Hop(size=30, slide=10),
    "hop whose slide does not divide its size": Hop(size=25, slide=10, offset=-3),
    "hop with gaps": Hop(size=10, slide=25),
    "cumulate": Cumulate(size=40, step=10, offset=4),
}


cut = partial(in_batches, watermark=behind(2, DELAY))
steps = partial(drawn_steps, sizes=(1, 3, 20, 40))


def at(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def windowed(window, aggregates=AGGREGATES, **options):
    given = {"input": INPUT, "time": 2, "keys": (0,), **options}
    partial = WindowPartial(window=window, aggregates=tuple(a for a, _, _ in aggregates), **given)
    types = [pa.string(), *(t for _, t, _ in aggregates), STAMP, STAMP, STAMP]
    return (
        partial,
        WindowAggregateOperator(partial=partial, output=pa.schema([(f"c{i}", t) for i, t in enumerate(types)])),
    )


def brute(window) -> str:
    """All windows (ws, we) that a time `ms` is in, tried one by one."""
    tries = range(-60, 400)
    if isinstance(window, Cumulate):
        pairs = [
            (base, base + step)
            for i in tries
            for base in [i * window.size + window.offset]
            for step in range(window.step, window.size + 1, window.step)
        ]
    else:
        pairs = [(start, start + window.size) for i in tries for start in [i * window.slide + window.offset]]
    return ", ".join(f"({start}, {end})" for start, end in pairs if -100 <= end < 2000)


def oracle(window, aggregates=AGGREGATES):
    def query(batch: Batch) -> str:
        items = ", ".join(q for _, _, q in aggregates)
        return (
            f"SELECT c0, {items}, make_timestamp(ws * 1000), make_timestamp(we * 1000),"
            f" make_timestamp(we * 1000 - 1000)"
            f" FROM t0 JOIN (VALUES {brute(window)}) w(ws, we) ON epoch_ms(c2) >= ws AND epoch_ms(c2) < we"
            f" WHERE we - 1 <= {batch.watermark} GROUP BY c0, ws, we"
        )

    return query


def arrivals(seed: int, count: int) -> list[Change]:
    """Rows whose times rise, out of order by less than the delay."""
    rng = random.Random(seed)
    rows = []
    for i in range(count):
        time = max(0, i * 3 + rng.randrange(DELAY) - DELAY)
        rows.append(Change((rng.choice(["a", "", None]), rng.choice([None, 1, 2, rng.randrange(50)]), at(time))))
    return rows


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_windows_equal_a_batch_query(window):
    run = holds_oracle(windowed(window), cut(arrivals(1, 150), steps(1)), oracle(window))
    assert run.late_count == 0
    assert run.state_rows() == 0


IN_ORDER = [
    (AggregateSpec(function="COUNT"), pa.int64(), "COUNT(*)"),
    (AggregateSpec(function="FIRST_VALUE", arguments=(1,)), pa.int64(), "MIN(c1)"),
    (AggregateSpec(function="LAST_VALUE", arguments=(1,)), pa.int64(), "MAX(c1)"),
    (AggregateSpec(function="ARRAY_AGG", arguments=(1,)), pa.list_(pa.int64()), "LIST(c1 ORDER BY c1)"),
]
"""What follows the order of arrival, of rows whose `c1` is their number."""

OVERLAPPING = [name for name in WINDOWS if name.startswith(("hop", "cumulate")) and "gaps" not in name]


def numbered(changes: list[Change]) -> list[Change]:
    return [Change((change.row[0], i, change.row[2])) for i, change in enumerate(changes)]


def in_order(window, aggregates=IN_ORDER, **options):
    """What aggregates rows in the order of arrival: where windows overlap, one kernel that numbers them."""
    if isinstance(window, Hop) and window.slide >= window.size:
        return windowed(window, aggregates, **options)
    return (NumberedWindows(of=windowed(window, aggregates, numbered=True, **options)[1]),)


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("restart", [False, True])
def test_rows_of_a_window_are_taken_in_the_order_in_which_they_arrived(name, restart):
    batches = cut(numbered(arrivals(21, 150)), steps(21))
    run = holds_oracle(in_order(WINDOWS[name]), batches, oracle(WINDOWS[name], IN_ORDER), restart)
    assert (run.late_count, run.state_rows()) == (0, 0)


NULLS = pa.schema([("c0", pa.string()), ("c1", pa.int64()), ("c2", STAMP), ("c3", pa.bool_()), ("c4", pa.string())])
LISTED = [
    (AggregateSpec(function="ARRAY_AGG", arguments=(4,)), pa.list_(pa.string()), "LIST(c4 ORDER BY c1)"),
    (
        AggregateSpec(function="LISTAGG", arguments=(4,), constants=("'{}'",)),
        pa.string(),
        "STRING_AGG(c4, '{}' ORDER BY c1)",
    ),
    (
        AggregateSpec(function="LISTAGG", arguments=(4,), filter=3),
        pa.string(),
        "STRING_AGG(c4, ',' ORDER BY c1) FILTER (WHERE c3)",
    ),
    (
        AggregateSpec(function="JSON_ARRAYAGG", arguments=(4,), constants=("to_json({0})", "'null'")),
        pa.string(),
        "'[' || STRING_AGG(COALESCE(to_json(c4), 'null'), ',' ORDER BY c1) || ']'",
    ),
    (
        AggregateSpec(function="JSON_ARRAYAGG", arguments=(4,), filter=3, constants=("to_json({0})",)),
        pa.string(),
        "'[' || COALESCE(STRING_AGG(to_json(c4), ',' ORDER BY c1) FILTER (WHERE c3), '') || ']'",
    ),
    (
        AggregateSpec(function="FIRST_VALUE", arguments=(4,), filter=3),
        pa.string(),
        "ARG_MIN(c4, c1) FILTER (WHERE c3 AND c4 IS NOT NULL)",
    ),
    (AggregateSpec(function="LAST_VALUE", arguments=(4,)), pa.string(), "ARG_MAX(c4, c1)"),
    (AggregateSpec(function="COUNT", arguments=(4,), distinct=True), pa.int64(), "COUNT(DISTINCT c4)"),
]
"""What follows the order of arrival, of values that may be NULL and of rows that may be left out."""


@pytest.mark.parametrize("name", OVERLAPPING)
@pytest.mark.parametrize("restart", [False, True])
def test_lists_in_the_order_of_arrival_leave_out_what_lists_leave_out(name, restart):
    rng = random.Random(31)
    rows = [
        Change((*change.row, rng.choice([True, False, None]), rng.choice(["a", 'b"{0}', "", None])))
        for change in numbered(arrivals(31, 120))
    ]
    kernels = in_order(WINDOWS[name], LISTED, input=NULLS)
    run = holds_oracle(kernels, cut(rows, steps(31)), oracle(WINDOWS[name], LISTED), restart)
    assert run.state_rows() == 0


def test_a_row_is_kept_once_whatever_the_number_of_windows_that_it_is_in():
    run = Run(in_order(Hop(size=100_000, slide=1)))
    run(Batch([Change(("a", i, at(i))) for i in range(50)], watermark=10))
    assert run.state_rows() == 50


@pytest.mark.parametrize("name", OVERLAPPING)
def test_a_row_is_late_once_where_rows_are_numbered(name):
    rng = random.Random(5)
    changes = [Change((rng.choice("ab"), i, at(rng.randrange(200)))) for i in range(120)]
    batches = [Batch(changes[i : i + 12], watermark=i) for i in range(0, 120, 12)]
    partials, rows = Run(windowed(WINDOWS[name], IN_ORDER[:1])), Run(in_order(WINDOWS[name], IN_ORDER[:1]))
    for batch in [*batches, Batch([], watermark=END_OF_TIME)]:
        partials(batch)
        rows(batch)
    assert rows.applied == partials.applied
    assert rows.late == partials.late
    assert rows.late_count == partials.late_count > 0


def test_a_row_in_the_gap_between_two_windows_is_not_late():
    run = Run(windowed(WINDOWS["hop with gaps"]))
    run(Batch([Change(("a", 1, at(3)))], watermark=24))
    run(Batch([Change(("a", 2, at(15))), Change(("a", 3, at(9)))], watermark=24))
    assert run.late == [("a", 3, at(9))]


def retracted(seed: int, count: int) -> list[Change]:
    """Rows that come, and that go again while their windows are open."""
    rng = random.Random(seed)
    rows: list[Change] = []
    there: list[Change] = []
    for change in arrivals(seed, count):
        rows.append(change)
        there.append(change)
        if rng.random() < 0.4:
            gone = there.pop(rng.randrange(max(0, len(there) - 3), len(there)))
            rows.append(Change(gone.row, -1))
    return rows


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_windows_of_retracted_rows_equal_a_batch_query(window):
    batches = [Batch(b.changes, watermark=b.watermark - 200) for b in cut(retracted(8, 120), steps(8))[:-1]]
    batches = [*batches, Batch([], watermark=END_OF_TIME)]
    run = holds_oracle(windowed(window, append=False), batches, oracle(window))
    assert (run.late_count, run.unmatched_retractions, run.state_rows()) == (0, 0, 0)


@pytest.mark.parametrize("window", [WINDOWS["tumble"], WINDOWS["hop"]], ids=["tumble", "hop"])
def test_lists_of_windows_are_in_the_order_of_their_values_where_rows_are_retracted(window):
    batches = [Batch(b.changes, watermark=b.watermark - 200) for b in cut(retracted(9, 120), steps(9))[:-1]]
    batches = [*batches, Batch([], watermark=END_OF_TIME)]
    holds_oracle(windowed(window, LISTS, append=False), batches, oracle(window, LISTS))


def test_a_window_all_of_whose_rows_were_retracted_does_not_come_out():
    run = Run(windowed(tumble(10), append=False))
    changes = [Change(("a", 1, at(3))), Change(("a", 2, at(4))), Change(("b", 2, at(4)))]
    run(Batch(changes))
    run(Batch([Change(c.row, -1) for c in changes[:2]]))
    run(Batch([], watermark=END_OF_TIME))
    assert [row[0] for row, _ in run.log] == ["b"]


def test_a_row_retracted_after_its_window_closed_is_late_and_one_never_there_is_counted():
    run = Run(windowed(tumble(10), COUNT, append=False))
    run(Batch([Change(("a", 1, at(3)))], watermark=9))
    run(Batch([Change(("a", 1, at(3)), -1), Change(("b", 1, at(15)), -1)], watermark=9))
    assert (run.late, run.late_count) == ([("a", 1, at(3))], 1)
    run(Batch([], watermark=END_OF_TIME))
    assert run.unmatched_retractions == 1
    assert len(run.log) == 1


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_windows_do_not_depend_on_how_the_log_is_cut(window):
    changes = arrivals(2, 60)
    cuts = [lambda c, n=n: cut(c, iter(lambda: n, 0)) for n in (5, 17, 1000)]
    holds_cut(windowed(window), changes, cuts)


@pytest.mark.parametrize("window", [WINDOWS["hop"], WINDOWS["cumulate"]], ids=["hop", "cumulate"])
def test_windows_survive_a_restart_bit_by_bit(window):
    holds_restart(windowed(window), cut(arrivals(3, 100), steps(3)))


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_state_holds_no_slice_whose_windows_are_closed(window, monkeypatch):
    monkeypatch.setattr("operators.state.compaction._SMALLEST", 1)
    run = Run(windowed(window, AGGREGATES[:1]))
    longest = window.size + getattr(window, "slide", window.size) + DELAY
    unit = gcd(window.size, getattr(window, "slide", getattr(window, "step", 0)))
    for batch in cut(arrivals(4, 200), iter(lambda: 5, 0))[:-1]:
        run(batch)
        blocks = len(run.states[1]["slices"].blocks())
        assert run.state_rows() <= 3 * (longest // unit + 2) * max(1, blocks)
        assert blocks <= 24


def test_partials_of_one_slice_and_key_are_put_together_when_blocks_are_merged(monkeypatch):
    monkeypatch.setattr("operators.state.compaction._SMALLEST", 4)
    run = Run(windowed(tumble(10**6)))
    for i in range(100):
        run(Batch([Change(("a", i % 3, at(5)))], watermark=0))
    assert run.state_rows() < 40
    run(Batch([], watermark=END_OF_TIME))
    assert run.log == [(("a", 100, 99, 2, 0, 3, at(0), at(10**6), at(10**6 - 1)), 1)]


COUNT = AGGREGATES[:1]

DAY = 86_400_000
LONG = {
    "tumble": tumble(DAY),
    "hop": Hop(size=DAY, slide=DAY // 2),
    "cumulate": Cumulate(size=DAY, step=DAY // 4),
    "tumble by the wall clock": tumble(DAY),
}


@pytest.mark.parametrize("name", LONG)
def test_a_batch_that_closes_nothing_reads_nothing_of_what_is_open(name, monkeypatch):
    read: list[int] = []
    load = BlockStore.load

    def counting(store: BlockStore, block: Block) -> Loaded:
        read.append(block.rows)
        return load(store, block)

    monkeypatch.setattr(BlockStore, "load", counting)
    partial, final = windowed(LONG[name], COUNT, zone="Europe/Berlin" if "wall" in name else None)
    blocks: dict[str, pa.Buffer] = {}
    state = State.open(final.traces(), None, blocks.__getitem__)
    previous = DAY - 1
    for batch in range(30):
        watermark = DAY + batch * 1000
        rows = block(INPUT, [Change((f"{batch}-{i}", 1, at(watermark + 5))) for i in range(100)])
        clock = Clock(now=0, watermark=watermark, previous=previous)
        folded = partial.advance(no_state(), [rows], Clock(0, watermark, MIN_TIME), SQL)
        read.clear()
        final.advance(state, [folded.changes], clock, SQL)
        assert read == []
        assert sum(size.rows for size in state.table_sizes().values()) == 100 * (batch + 1)
        blocks |= state.seal().added
        previous = watermark


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_the_slices_that_are_read_are_those_of_the_windows_that_close(window, zone):
    rng = random.Random(5)
    # Just before Berlin's clocks go from 02:00 to 03:00, at 01:00 UTC.
    base = (datetime(2024, 3, 31, 0, 59, 59, 900000) - EPOCH) // timedelta(milliseconds=1)
    hours = (0, 1, 2) if zone else (0,)
    near = np.concatenate([np.arange(base - 600, base + 600) + hour * 3_600_000 for hour in hours])
    starts, _ = slice_text(window, "make_timestamp(ms * 1000)")
    slices = np.unique(SQL(f"SELECT {starts} AS s FROM t", {"t": pa.table({"ms": near})}).column("s").to_numpy())
    windows = windows_of(window, slices)
    ends = instants(windows.ends, zone)
    for _ in range(40):
        previous = base + rng.randrange(-300, 300)
        watermark = previous + rng.choice([0, 1, 9, 60])
        after, upto = reach(window, previous, watermark, zone)
        closing = set(windows.slices[(ends - 1 <= watermark) & (ends - 1 > previous)])
        found = {s for s in slices.tolist() if after < s <= upto}
        assert closing <= found
        if zone is None and watermark == previous:
            assert found == set()


def test_a_window_closes_one_millisecond_before_its_end():
    run = Run(windowed(tumble(10), COUNT))
    run(Batch([Change(("a", 1, at(3)))], watermark=8))
    assert run.log == []
    run(Batch([], watermark=9))
    assert run.log == [(("a", 1, at(0), at(10), at(9)), 1)]


def test_a_row_behind_a_closed_window_is_late_and_is_handed_back():
    run = Run(windowed(tumble(10), COUNT))
    run(Batch([Change(("a", 1, at(3)))], watermark=9))
    run(Batch([Change(("a", 7, at(9))), Change(("a", 8, at(10)))], watermark=30))
    assert run.late == [("a", 7, at(9))]
    assert run.late_count == 1
    assert run.log == [(("a", 1, at(0), at(10), at(9)), 1), (("a", 1, at(10), at(20), at(19)), 1)]


def test_late_rows_are_counted_also_where_no_other_rows_are():
    run = Run(windowed(tumble(10), COUNT))
    run(Batch([Change(("a", 1, at(3)))], watermark=9))
    run(Batch([Change(("a", 7, at(9)))], watermark=30))
    assert run.late == [("a", 7, at(9))]
    assert run.late_count == 1


def test_a_row_late_for_one_window_still_counts_in_a_later_one():
    run = Run(windowed(Hop(size=20, slide=10), COUNT))
    run(Batch([Change(("a", 1, at(12)))], watermark=20))
    run(Batch([Change(("a", 1, at(11)))], watermark=29))
    assert run.log == [(("a", 1, at(0), at(20), at(19)), 1), (("a", 2, at(10), at(30), at(29)), 1)]
    assert run.late == []


def test_late_partials_are_counted_through_the_rows_they_stand_for():
    partial, final = windowed(tumble(10), COUNT)
    ahead = Clock(now=0, watermark=50, previous=MIN_TIME)
    rows = block(INPUT, [Change(("a", 1, at(3))), Change(("a", 2, at(4))), Change(("b", 2, at(44)))])
    state = State.open(final.traces(), None, lambda name: pa.py_buffer(b""))
    folded = partial.advance(state, [rows], ahead, SQL)
    step = final.advance(state, [folded.changes], Clock(now=0, watermark=50, previous=40), SQL)
    assert step.late_count == 2
    assert step.changes.num_rows == 1


def test_a_row_without_a_time_is_dead():
    partial, _ = windowed(tumble(10), COUNT)
    rows = block(INPUT, [Change(("a", 1, None)), Change(("a", 2, at(4)))])
    step = partial.advance(no_state(), [rows], Clock(0, 0, MIN_TIME), SQL)
    assert step.dead[0].column("c1").to_pylist() == [1]
    assert "NULL" in step.dead[0].column("_reason")[0].as_py()


def test_cumulate_repeats_its_answer_until_the_window_ends():
    run = Run(windowed(Cumulate(size=30, step=10), COUNT))
    run(Batch([Change(("a", 1, at(12)))], watermark=100))
    assert [row for row, _ in run.log] == [
        ("a", 1, at(0), at(20), at(19)),
        ("a", 1, at(0), at(30), at(29)),
    ]


def test_windows_come_out_in_the_order_of_their_ends():
    run = Run(windowed(tumble(10), COUNT))
    run(Batch([Change((name, 1, at(t))) for t in range(95, 0, -7) for name in "abc"], watermark=1000))
    ends = [row[3] for row, _ in run.log]
    assert ends == sorted(ends)


def test_day_windows_begin_at_midnight_of_the_zone_also_when_clocks_change():
    day = 86_400_000
    run = Run(windowed(tumble(day), COUNT, zone="Europe/Berlin"))
    evening = datetime(2024, 3, 30, 22, 59)  # 23:59 in Berlin
    night = datetime(2024, 3, 30, 23, 1)  # 00:01 of the day that has 23 hours
    run(Batch([Change(("a", 1, evening)), Change(("a", 1, night))], watermark=0))
    run(Batch([], watermark=(datetime(2024, 3, 31, 22) - EPOCH) // timedelta(milliseconds=1) - 1))
    assert [row for row, _ in run.log] == [
        ("a", 1, datetime(2024, 3, 30), datetime(2024, 3, 31), datetime(2024, 3, 30, 22, 59, 59, 999000)),
        ("a", 1, datetime(2024, 3, 31), datetime(2024, 4, 1), datetime(2024, 3, 31, 21, 59, 59, 999000)),
    ]
    assert run.state_rows() <= 1


def test_in_processing_time_windows_close_by_the_clock_and_nothing_is_late():
    run = Run(windowed(tumble(10), COUNT, processing=True))
    run(Batch([Change(("a", 1, at(5)))], now=5))
    run(Batch([Change(("a", 1, at(10)))], now=10))
    run(Batch([], now=19))
    assert run.log == [(("a", 1, at(0), at(10), at(9)), 1)]
    run(Batch([], now=20))
    assert run.log[1:] == [(("a", 1, at(10), at(20), at(19)), 1)]
    assert run.state_rows() == 0


def test_rows_of_a_clock_that_was_set_back_are_answered_by_a_window_that_has_closed():
    run = Run(windowed(Hop(size=20, slide=10), COUNT, processing=True))
    for now in (5, 31, 18):
        run(Batch([Change(("ann", 1, at(now)))], now=now))
    assert [(row[1], row[2]) for row, _ in run.log[2:]] == [(1, at(0)), (1, at(10))]
    run(Batch([], now=60))
    assert [(row[1], row[2]) for row, _ in run.log[4:]] == [(1, at(20)), (1, at(30))]


def test_a_window_over_a_window_closes_with_the_same_watermark():
    inner = windowed(tumble(10), AGGREGATES[1:2])
    outer = WindowPartial(
        input=inner[1].output,
        time=4,
        window=tumble(20),
        keys=(0,),
        aggregates=(AggregateSpec(function="MAX", arguments=(1,)),),
    )
    types = [pa.string(), pa.int64(), STAMP, STAMP, STAMP]
    schema = pa.schema([(f"c{i}", t) for i, t in enumerate(types)])
    run = Run((*inner, outer, WindowAggregateOperator(partial=outer, output=schema)))
    run(Batch([Change(("a", 3, at(1))), Change(("a", 4, at(2))), Change(("a", 5, at(15)))], watermark=18))
    assert run.log == []
    run(Batch([], watermark=19))
    assert run.log == [(("a", 7, at(0), at(20), at(19)), 1)]


def test_rows_that_carry_their_windows_are_grouped_by_them():
    exploded = WindowRowsOperator(input=INPUT, time=2, window=Hop(size=20, slide=10))
    partial = WindowPartial(
        input=exploded.output,
        time=2,
        window=Attached(start=3, end=4),
        keys=(0,),
        aggregates=(AggregateSpec(function="COUNT"),),
    )
    types = [pa.string(), pa.int64(), STAMP, STAMP, STAMP]
    schema = pa.schema([(f"c{i}", t) for i, t in enumerate(types)])
    changes = arrivals(5, 80)
    batches = cut(changes, steps(5))
    holds_oracle(
        (exploded, partial, WindowAggregateOperator(partial=partial, output=schema)),
        batches,
        oracle(Hop(size=20, slide=10), COUNT),
    )


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_a_window_table_function_gives_each_row_once_a_window(window):
    query = (
        f"SELECT t0.*, make_timestamp(ws * 1000), make_timestamp(we * 1000), make_timestamp(we * 1000 - 1000) FROM t0"
        f" JOIN (VALUES {brute(window)}) w(ws, we) ON epoch_ms(c2) >= ws AND epoch_ms(c2) < we"
    )
    holds_oracle((WindowRowsOperator(input=INPUT, time=2, window=window),), cut(arrivals(6, 60), steps(6)), query)
