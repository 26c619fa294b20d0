"""Sliding, session and state windows and the rows of time windows, against going through the rows one by one."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from operators.aggregates.functions import AggregateSpec
from operators.columns import positional
from operators.kernel import Kernel
from operators.time import END_OF_TIME
from operators.windows.shapes import Hop, tumble
from operators.windows.stream.session_window import SessionWindow
from operators.windows.stream.sliding_window import SlidingWindow
from operators.windows.stream.state_window import StateWindow
from operators.windows.stream.time_window import TimeWindow
from operators.windows.stream.window_output import WindowOutput
from tests.operators.properties import Batch, Change, Row, Run, holds_cut, holds_restart

EPOCH = datetime(1970, 1, 1)
INPUT = positional([pa.string(), pa.int64(), pa.bool_(), pa.bool_(), pa.timestamp("us")])
RESULT = WindowOutput(
    input=INPUT,
    output=positional([*INPUT.types, *[pa.int64()] * 4]),
    aggregates=(AggregateSpec(function="COUNT"),),
)
"""The rows of a window, each with how many there are."""
DELAY = 40


class Timed(NamedTuple):
    row: Row
    time: int


class Window(NamedTuple):
    rows: list[Timed]
    start: int
    end: int


Brute = Callable[[Sequence[Timed], int], list[Window]]
"""The windows of one partition's rows, which are in order, that are closed at a watermark."""


def sliding(size: int, delay: int = 0, fires: bool = False, arrival: bool = False) -> Brute:
    def windows(rows: Sequence[Timed], watermark: int) -> list[Window]:
        found = []
        for at, (row, time) in enumerate(rows):
            if (fires and not row[2]) or (not arrival and time + delay > watermark):
                continue
            inside = [
                r
                for i, r in enumerate(rows)
                if time - size < r.time and (i <= at if arrival else r.time <= time + delay)
            ]
            found.append(Window(inside, time - size, time + delay))
        return found

    return windows


def sessions(longest: int, timeout: int, arrival: bool = False) -> Brute:
    def windows(rows: Sequence[Timed], watermark: int) -> list[Window]:
        found: list[Window] = []
        mine: list[Timed] = []
        start = tick = 0
        for each in rows:
            if not arrival and each.time > watermark:
                break
            begins = each.time
            if mine and (each.time > mine[-1].time + timeout or each.time >= tick):
                begins = tick if each.time <= mine[-1].time + timeout else each.time
                found.append(Window(mine, start, min(mine[-1].time + timeout, tick)))
                mine = []
            if not mine:
                start, tick = begins, (each.time // longest + 2) * longest
            mine.append(each)
        if mine and watermark >= min(mine[-1].time + timeout, tick - 1):
            found.append(Window(mine, start, min(mine[-1].time + timeout, tick)))
        return found

    return windows


def states(emit: bool, arrival: bool = False) -> Brute:
    def windows(rows: Sequence[Timed], watermark: int) -> list[Window]:
        found: list[Window] = []
        mine: list[Timed] = []
        for each in rows:
            if not arrival and each.time > watermark:
                break
            if emit and mine:
                mine.append(each)
                if each.row[3]:
                    found.append(Window(mine, mine[0].time, each.time))
                    mine = []
            elif each.row[2]:
                if mine:
                    found.append(Window(mine, mine[0].time, each.time))
                mine = [each]
            elif mine:
                mine.append(each)
        return found

    return windows


def of_time(size: int, hop: int) -> Brute:
    def windows(rows: Sequence[Timed], watermark: int) -> list[Window]:
        found = []
        for start in range(-size // hop * hop - hop, max((r.time for r in rows), default=0) + hop, hop):
            inside = [r for r in rows if start <= r.time < start + size]
            if inside and start + size - 1 <= watermark:
                found.append(Window(inside, start, start + size))
        return found

    return windows


def case(
    kernel: Callable[..., Kernel], partition: tuple[int, ...] = (), time: int | None = 4, **options: Any
) -> Kernel:
    return kernel(result=RESULT, partition=partition, time=time, **options)


EVENT: dict[str, tuple[Kernel, Brute, tuple[int, ...]]] = {}
ARRIVAL: dict[str, tuple[Kernel, Brute, tuple[int, ...]]] = {}
for name, partition in {"stream": (), "partition": (0,)}.items():
    for what, brute, options in (
        ("sliding", sliding(25), {"size": 25, "delay": 0, "fires": None}),
        ("sliding with a delay", sliding(20, 15), {"size": 20, "delay": 15, "fires": None}),
        ("sliding that some rows fire", sliding(25, 0, True), {"size": 25, "delay": 0, "fires": 2}),
        ("sliding that some rows fire later", sliding(10, 30, True), {"size": 10, "delay": 30, "fires": 2}),
    ):
        EVENT[f"{what}, {name}"] = case(SlidingWindow, partition, **options), brute, partition
    ARRIVAL[f"sliding, {name}"] = (
        case(SlidingWindow, partition, None, size=25, delay=0, fires=None),
        sliding(25, arrival=True),
        partition,
    )
    ARRIVAL[f"sliding with a delay, {name}"] = (
        case(SlidingWindow, partition, None, size=20, delay=15, fires=2),
        sliding(20, 15, True),
        partition,
    )
    for longest, timeout in ((100, 9), (30, 12), (10, 25), (7, 1000)):
        options = {"longest": longest, "timeout": timeout}
        EVENT[f"sessions {longest} {timeout}, {name}"] = (
            case(SessionWindow, partition, **options),
            sessions(longest, timeout),
            partition,
        )
        ARRIVAL[f"sessions {longest} {timeout}, {name}"] = (
            case(SessionWindow, partition, None, **options),
            sessions(longest, timeout, arrival=True),
            partition,
        )
    for what, emit in (("states from one to another", 3), ("states from one to the next", None)):
        EVENT[f"{what}, {name}"] = (
            case(StateWindow, partition, begin=2, emit=emit),
            states(emit is not None),
            partition,
        )
        ARRIVAL[f"{what}, {name}"] = (
            case(StateWindow, partition, None, begin=2, emit=emit),
            states(emit is not None, arrival=True),
            partition,
        )
    for what, shape in {
        "tumbling": tumble(30),
        "hopping": Hop(size=30, slide=10),
        "with gaps": Hop(size=10, slide=25),
    }.items():
        brute = of_time(shape.size, shape.slide)
        EVENT[f"{what}, {name}"] = case(TimeWindow, partition, window=shape), brute, partition
        ARRIVAL[f"{what}, {name}"] = case(TimeWindow, partition, None, window=shape), brute, partition


def stream(seed: int, count: int = 80) -> list[Change]:
    rng = random.Random(seed)
    time, made = 0, []
    for i in range(count):
        time += rng.choice([0, 0, 1, 3, 8, 8, 30])
        at = max(0, time - rng.randrange(DELAY))
        flags = (rng.choice([True, False, False, None]), rng.choice([True, False, None]))
        made.append(Change((rng.choice(["a", "b", None]), i, *flags, EPOCH + timedelta(milliseconds=at))))
    return made


def ms(row: Row) -> int:
    return int((row[4] - EPOCH) / timedelta(milliseconds=1))


def event_batches(changes: Sequence[Change], sizes: Callable[[], int]) -> list[Batch]:
    made: list[Batch] = []
    at = 0
    while at < len(changes):
        at += sizes()
        watermark = max(ms(c.row) for c in changes[:at]) - DELAY
        made.append(Batch(changes[len([c for b in made for c in b.changes]) : at], watermark=watermark))
    return [*made, Batch([], watermark=END_OF_TIME)]


def arrival_batches(seed: int) -> list[Batch]:
    rng = random.Random(seed)
    changes, made, now = stream(seed, 60), [], 1000
    while changes:
        size = rng.choice([0, 1, 2, 5])
        made.append(Batch(changes[:size], now=now))
        changes, now = changes[size:], now + rng.choice([0, 1, 5, 10, 40])
    return [*made, Batch([], now=now + 5000)]


def expected(brute: Brute, partition: tuple[int, ...], rows: Sequence[Timed], watermark: int) -> Counter[Row]:
    parts: defaultdict[Row, list[Timed]] = defaultdict(list)
    for each in rows:
        parts[tuple(each.row[p] for p in partition)].append(each)
    answer: Counter[Row] = Counter()
    for mine in parts.values():
        for inside, start, end in brute(mine, watermark):
            answer.update((*each.row, len(inside), start, end, each.time) for each in inside)
    return answer


def steps(seed: int) -> Callable[[], int]:
    rng = random.Random(seed)
    return lambda: rng.choice([1, 2, 7, 30])


@pytest.mark.parametrize(("kernel", "brute", "partition"), EVENT.values(), ids=EVENT)
@pytest.mark.parametrize("seed", [1, 2])
def test_windows_in_event_time_equal_a_walk_over_the_rows(kernel, brute, partition, seed):
    run, rows = Run([kernel]), []
    for at, batch in enumerate(event_batches(stream(seed), steps(seed))):
        run(batch)
        rows += [Timed(c.row, ms(c.row)) for c in batch.changes]
        ordered = sorted(rows, key=lambda r: r.time)
        assert run.applied == expected(brute, partition, ordered, batch.watermark), f"after batch {at}"
    assert run.late_count == 0
    open_states = isinstance(kernel, StateWindow)
    assert open_states or run.state_rows() == 0


@pytest.mark.parametrize(("kernel", "brute", "partition"), ARRIVAL.values(), ids=ARRIVAL)
@pytest.mark.parametrize("seed", [3, 4])
def test_windows_in_processing_time_equal_a_walk_over_the_rows(kernel, brute, partition, seed):
    run, rows = Run([kernel]), []
    for at, batch in enumerate(arrival_batches(seed)):
        run(batch)
        rows += [Timed(c.row, batch.now) for c in batch.changes]
        assert run.applied == expected(brute, partition, rows, batch.now - 1), f"after batch {at}"


@pytest.mark.parametrize("kernel", [k for k, _, _ in EVENT.values()], ids=EVENT)
def test_windows_do_not_depend_on_how_the_log_is_cut(kernel):
    cuts = [lambda c, n=n: event_batches(c, lambda: n) for n in (3, 17, 1000)]
    holds_cut([kernel], stream(5, 90), cuts)


@pytest.mark.parametrize("kernel", [k for k, _, _ in EVENT.values()], ids=EVENT)
def test_windows_in_event_time_survive_a_restart_bit_by_bit(kernel):
    holds_restart([kernel], event_batches(stream(6, 80), steps(6)))


@pytest.mark.parametrize("kernel", [k for k, _, _ in ARRIVAL.values()], ids=ARRIVAL)
def test_windows_in_processing_time_survive_a_restart_bit_by_bit(kernel):
    holds_restart([kernel], arrival_batches(7))


def row(at: int, begin: bool = False, emit: bool = False, key: str = "a") -> Change:
    return Change((key, at, begin, emit, EPOCH + timedelta(milliseconds=at)))


@pytest.mark.parametrize(
    ("kernel", "kept"),
    [
        # Rows that are too old go when they are half of their block, and the rows that fire are noted apart.
        (case(SlidingWindow, size=10, delay=5, fires=None), 15 + 15 + 5),
        (case(SessionWindow, longest=20, timeout=5), 40),
        (TimeWindow(result=RESULT, time=4, window=Hop(size=20, slide=10)), 20),
    ],
    ids=["sliding", "sessions", "hopping"],
)
def test_only_rows_are_kept_that_a_window_may_still_have(kernel, kept):
    run = Run([kernel])
    for at in range(0, 400, 2):
        run(Batch([row(at)], watermark=at))
    assert run.state_rows() <= kept // 2 + 3


def test_between_states_nothing_is_kept():
    run = Run([case(StateWindow, (0,), begin=2, emit=3)])
    for at in range(0, 60, 3):
        run(Batch([row(at, begin=True), row(at + 1), row(at + 2, emit=True)], watermark=at + 2))
        assert run.state_rows() == 0


@pytest.mark.parametrize("kernel", [k for k, _, _ in EVENT.values()], ids=EVENT)
def test_a_row_behind_the_watermark_is_late_and_one_without_a_time_is_dead(kernel):
    run = Run([kernel])
    run(Batch([row(1000, begin=True)], watermark=1000))
    run(Batch([row(900)], watermark=1000))
    assert run.late_count == 1
    schema = kernel.inputs[0]
    assert run.late == [row(900).row]
    assert schema == INPUT


def test_a_gap_of_just_the_timeout_goes_on_and_a_longer_one_does_not():
    run = Run([case(SessionWindow, longest=1000, timeout=10)])
    run(Batch([row(0), row(10), row(21)], watermark=END_OF_TIME))
    assert {r[-3:-1] for r in run.applied} == {(0, 20), (21, 31)}


def test_a_session_ends_at_the_tick_that_is_more_than_its_length_behind_its_first_row():
    run = Run([case(SessionWindow, longest=10, timeout=5)])
    run(Batch([row(at) for at in range(3, 48, 2)], watermark=END_OF_TIME))
    assert sorted({r[-3:-1] for r in run.applied}) == [(3, 20), (20, 40), (40, 52)]


def test_ticks_of_sessions_follow_the_clock_of_the_zone():
    zone, hour = "Asia/Kolkata", 3_600_000
    run = Run([case(SessionWindow, longest=24 * hour, timeout=30 * hour, zone=zone)])
    first = datetime(2024, 1, 1, 12, tzinfo=ZoneInfo(zone))
    tick = int(datetime(2024, 1, 3, tzinfo=ZoneInfo(zone)).timestamp() * 1000)
    at = int(first.timestamp() * 1000)
    run(Batch([row(at), row(at + 20 * hour), row(at + 40 * hour)], watermark=END_OF_TIME))
    assert sorted({r[-3:-1] for r in run.applied}) == [(at, tick), (tick, at + 70 * hour)]


def test_a_tumbling_day_ends_at_midnight_of_the_zone():
    zone, day = "America/New_York", 86_400_000
    run = Run([TimeWindow(result=RESULT, time=4, window=tumble(day), zone=zone)])
    midnight = int(datetime(2024, 3, 10, tzinfo=ZoneInfo(zone)).timestamp() * 1000)
    run(Batch([row(midnight), row(midnight - 1)], watermark=END_OF_TIME))
    # The clocks go forward on that day, which has 23 hours.
    assert sorted({r[-3:-1] for r in run.applied}) == [
        (midnight - day, midnight),
        (midnight, midnight + day - 3_600_000),
    ]


def test_groups_of_overlapping_windows_are_counted_by_window():
    calls = (AggregateSpec(function="COUNT"), AggregateSpec(function="SUM", arguments=(1,)))
    output = positional([pa.string(), *[pa.int64()] * 5])
    result = WindowOutput(input=INPUT, output=output, keys=(0,), aggregates=calls)
    run = Run([SlidingWindow(result=result, partition=(), time=4, size=10, delay=0, fires=None)])
    run(Batch([row(1), row(5, key="b"), row(10), row(11)], watermark=11))
    assert run.applied == Counter(
        {
            ("a", 1, 1, -9, 1, 1): 1,
            ("a", 1, 1, -5, 5, 5): 1,
            ("b", 1, 5, -5, 5, 5): 1,
            ("a", 2, 11, 0, 10, 10): 1,
            ("b", 1, 5, 0, 10, 10): 1,
            ("a", 2, 21, 1, 11, 11): 1,
            ("b", 1, 5, 1, 11, 11): 1,
        }
    )
