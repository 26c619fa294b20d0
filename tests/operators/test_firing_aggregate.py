"""Windows that answer early, when they close, and again for late rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import repeat

import numpy as np
import pyarrow as pa
import pytest

from operators import slots
from operators.aggregates.functions import AggregateSpec
from operators.hashing import Hashes, bucket_hash
from operators.time import END_OF_TIME
from operators.windows.firing import AT_CLOSE, Firing
from operators.windows.firing_aggregate import FiringAggregateOperator
from operators.windows.numbered_windows import NumberedWindows
from operators.windows.shapes import Cumulate, Hop, tumble
from operators.windows.window_aggregate import WindowAggregateOperator
from operators.windows.window_partial import for_groups
from tests.operators.cuts import behind, in_batches, steps
from tests.operators.properties import Batch, Change, Run, holds_cut, holds_oracle, holds_restart
from tests.operators.test_window_aggregate import (
    AGGREGATES,
    DELAY,
    EPOCH,
    IN_ORDER,
    INPUT,
    arrivals,
    at,
    brute,
    numbered,
    windowed,
)

COUNT, SUM = AGGREGATES[:2]
LATENESS = 40

FIRINGS = {
    "early with every batch": Firing(0, None, 0),
    "early every 7": Firing(7, None, 0),
    "late with every batch": Firing(None, 0, LATENESS),
    "late every 11": Firing(None, 11, LATENESS),
    "early and late": Firing(0, 0, LATENESS),
    "early every 7, late with every batch": Firing(7, 0, LATENESS),
    "early with every batch, late every 11": Firing(0, 11, LATENESS),
    "early every 7, late every 11": Firing(7, 11, LATENESS),
}


def firing(firing: Firing, window=None, aggregates=AGGREGATES, **options):
    partial, whole = windowed(window or tumble(20), aggregates, lateness=firing.lateness, **options)
    assert isinstance(whole, WindowAggregateOperator)
    partial = for_groups(partial)
    return partial, FiringAggregateOperator(partial=partial, output=whole.output, firing=firing)


def row(key, value, time, weight=1) -> Change:
    return Change((key, value, at(time)), weight)


def shown(run: Run, *changes: Change, now: int = 0, watermark: int = 0) -> list[tuple[object, ...]]:
    """The count of each window that a batch shows: weight, key, count and start in ms."""
    before = len(run.log)
    run(Batch(list(changes), now, watermark))
    return [(weight, r[0], r[1], (r[2] - EPOCH) // timedelta(milliseconds=1)) for r, weight in run.log[before:]]


def counting(firing_: Firing, **options) -> Run:
    return Run(firing(firing_, aggregates=[COUNT], **options), restart=True)


def oracle(window, closed_only: bool, aggregates=AGGREGATES):
    """All windows that have a row, or those that the watermark has closed."""

    def query(batch: Batch) -> str:
        items = ", ".join(q for _, _, q in aggregates)
        closed = f"WHERE we - 1 <= {batch.watermark}" if closed_only else ""
        return (
            f"SELECT c0, {items}, make_timestamp(ws * 1000), make_timestamp(we * 1000),"
            f" make_timestamp(we * 1000 - 1000) FROM t0 JOIN (VALUES {brute(window)}) w(ws, we)"
            f" ON epoch_ms(c2) >= ws AND epoch_ms(c2) < we {closed} GROUP BY c0, ws, we"
        )

    return query


def cut(changes: Sequence[Change], sizes: Iterator[int], delay: int = DELAY) -> list[Batch]:
    """Batches a few ms of processing time apart; the watermark is `delay` behind the newest row."""
    return in_batches(changes, sizes, behind(2, delay), apart=3)


WINDOWS = {"tumble": tumble(20), "hop": Hop(size=30, slide=10), "cumulate": Cumulate(size=40, step=10)}


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("restart", [False, True])
def test_with_every_batch_the_answer_is_that_of_all_rows_so_far(window, restart: bool):
    kernels = firing(Firing(0, None, 0), window)
    holds_oracle(kernels, cut(arrivals(1, 60), steps(1)), oracle(window, False), restart)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("restart", [False, True])
def test_rows_of_a_window_are_taken_in_the_order_in_which_they_arrived_however_they_are_cut(window, restart: bool):
    changes = numbered(arrivals(21, 60))
    overlap = window != "tumble"
    partial, whole = firing(Firing(0, 0, LATENESS), WINDOWS[window], IN_ORDER, numbered=overlap)
    kernels = (NumberedWindows(of=whole),) if overlap else (partial, whole)
    query = oracle(WINDOWS[window], False, IN_ORDER)
    for sizes in (steps(3), repeat(7), repeat(60)):
        holds_oracle(kernels, cut(changes, sizes), query, restart)


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_late_rows_count_within_the_lateness(window):
    """The watermark runs ahead of rows that are up to DELAY late, all of which are within the lateness."""
    run = holds_oracle(
        firing(Firing(None, 0, LATENESS), window), cut(arrivals(2, 60), steps(2), 0), oracle(window, True)
    )
    assert run.late_count == 0
    assert run.state_rows() == 0


@pytest.mark.parametrize("name", FIRINGS)
def test_in_the_end_every_firing_has_answered_the_same(name: str):
    cuts = [lambda c, n=n: cut(c, iter(lambda: n, 0)) for n in (2, 17, 1000)]
    holds_cut(firing(FIRINGS[name]), arrivals(3, 60), [*cuts, lambda c: cut(c, iter(lambda: 5, 0), 1000)])


@pytest.mark.parametrize("name", FIRINGS)
@pytest.mark.parametrize("append", [True, False])
def test_a_state_opened_again_answers_the_same(name: str, append: bool):
    kernels = firing(FIRINGS[name], Hop(size=30, slide=10), append=append)
    holds_restart(kernels, cut(arrivals(4, 80), steps(4), 5))


@pytest.mark.parametrize("name", FIRINGS)
def test_nothing_is_kept_of_a_window_whose_lateness_is_over(name: str):
    run = Run(firing(FIRINGS[name]))
    for batch in cut(arrivals(5, 60), steps(5))[:-1]:
        run(batch)
    run(Batch([], 10**6, END_OF_TIME))
    assert run.state_rows() == 0


@pytest.mark.parametrize("name", FIRINGS)
def test_windows_of_retracted_rows_correct_themselves(name: str):
    run = Run(firing(FIRINGS[name], append=False))
    rows = [row(key, value, 5) for key in "ab" for value in range(3)]
    run(Batch(rows, 0, 0))
    run(Batch([Change(r.row, -1) for r in rows if r.row[0] == "a" or r.row[1] == 2], 30, 2))
    run(Batch([], 100, 25))
    assert [(r[0], r[1], r[3]) for r in run.applied] == [("b", 2, 1)]
    run(Batch([], 10**6, END_OF_TIME))
    assert run.state_rows() == 0


def test_early_with_every_batch_each_change_is_shown():
    run = counting(Firing(0, None, 0))
    assert shown(run, row("a", 1, 5)) == [(1, "a", 1, 0)]
    assert shown(run, row("a", 1, 6), row("a", 1, 25)) == [(-1, "a", 1, 0), (1, "a", 2, 0), (1, "a", 1, 20)]
    assert shown(run, watermark=19) == []
    assert shown(run, row("a", 1, 7), watermark=19) == []
    assert run.late_count == 1


def test_early_every_so_often_the_count_begins_with_the_first_row_of_a_window():
    run = counting(Firing(10, None, 0))
    assert shown(run, row("a", 1, 5), now=100) == []
    assert shown(run, row("a", 1, 5), now=109) == []
    assert shown(run, now=110) == [(1, "a", 2, 0)]
    assert shown(run, now=120) == []
    assert shown(run, row("a", 1, 5), now=125) == []
    assert shown(run, now=129) == []
    assert shown(run, now=130) == [(-1, "a", 2, 0), (1, "a", 3, 0)]
    assert shown(run, row("a", 1, 5), now=131) == []
    assert shown(run, now=132, watermark=19) == [(-1, "a", 3, 0), (1, "a", 4, 0)]
    assert run.state_rows() <= 1  # the turn that the end has forestalled
    assert shown(run, now=200, watermark=19) == []
    assert run.state_rows() == 0


def test_late_rows_correct_the_answer_until_the_lateness_is_over():
    run = counting(Firing(None, 0, 30))
    assert shown(run, row("a", 1, 5), watermark=10) == []
    assert shown(run, watermark=19) == [(1, "a", 1, 0)]
    assert shown(run, row("a", 1, 6), row("b", 1, 6), watermark=48) == [
        (-1, "a", 1, 0),
        (1, "a", 2, 0),
        (1, "b", 1, 0),
    ]
    assert shown(run, watermark=49) == []
    assert shown(run, row("a", 1, 7), watermark=49) == []
    assert (run.late_count, run.state_rows()) == (1, 0)


def test_late_every_so_often_the_last_change_comes_with_the_end_of_the_lateness():
    run = counting(Firing(None, 10, 30))
    assert shown(run, row("a", 1, 5), now=100, watermark=19) == [(1, "a", 1, 0)]
    assert shown(run, row("a", 1, 5), now=105, watermark=19) == []
    assert shown(run, now=115, watermark=20) == [(-1, "a", 1, 0), (1, "a", 2, 0)]
    assert shown(run, row("a", 1, 5), now=118, watermark=20) == []
    assert shown(run, now=119, watermark=49) == [(-1, "a", 2, 0), (1, "a", 3, 0)]


ENDS = [
    (AggregateSpec(function="FIRST_VALUE", arguments=(1,)), pa.int64(), ""),
    (AggregateSpec(function="LAST_VALUE", arguments=(1,)), pa.int64(), ""),
]


def retracted(seed: int, count: int) -> list[Change]:
    """Rows of few values, a third of which are retracted soon, while their windows are open."""
    rng = random.Random(seed)
    there: list[tuple[object, ...]] = []
    changes: list[Change] = []
    for i in range(count):
        if there and rng.random() < 0.3:
            changes.append(Change(there.pop(rng.randrange(max(0, len(there) - 8), len(there))), -1))
            continue
        changes.append(Change((rng.choice("ab"), rng.choice([None, 1, 2, 3]), at(i + rng.randrange(5)))))
        there.append(changes[-1].row)
    return changes


def first_and_last(batches: Sequence[Batch], window: Hop, closed_only: bool) -> Counter[tuple[object, ...]]:
    """The first and the last value of each key and window, open ones too unless `closed_only`; a retraction takes the
    oldest row of its value."""
    there: dict[tuple[object, int], list[object]] = {}
    rows: Counter[tuple[object, int]] = Counter()
    for key, value, time, weight in ((*c.row, c.weight) for batch in batches for c in batch.changes):
        ms = (time - EPOCH) // timedelta(milliseconds=1)
        for start in range(ms // window.slide * window.slide, ms - window.size, -window.slide):
            rows[key, start] += weight
            if value is not None and weight > 0:
                there.setdefault((key, start), []).append(value)
            elif value is not None:
                there[key, start].remove(value)
    found = Counter[tuple[object, ...]]()
    for key, start in +rows:
        if not closed_only or start + window.size - 1 <= batches[-1].watermark:
            values = there.get((key, start)) or [None]
            bounds = (at(start), at(start + window.size), at(start + window.size - 1))
            found[key, values[0], values[-1], *bounds] += 1
    return found


@pytest.mark.parametrize("fires", [AT_CLOSE, Firing(0, None, 0)])
@pytest.mark.parametrize(("seed", "size"), [(0, 1), (1, 4), (2, 4), (3, 25)])
def test_the_first_and_last_value_of_a_window_follow_the_arrival_of_retracted_rows(seed: int, size: int, fires: Firing):
    window, once = Hop(size=30, slide=10), fires is AT_CLOSE
    kernels = firing(fires, window, ENDS, append=False)
    run, opened = Run(kernels), Run(kernels, restart=True)
    batches = cut(retracted(seed, 50), iter(lambda: size, 0), 40)
    for i, batch in enumerate(batches):
        run(batch)
        opened(batch)
        assert run.applied == first_and_last(batches[: i + 1], window, once)
    assert run.log == opened.log
    assert all(weight > 0 for _, weight in run.log) == once, "as it closes, a window answers once"
    assert run.state_rows() == 0


BY_VALUE = [
    (AggregateSpec(function="COUNT", arguments=(value,), distinct=True, filter=flag), pa.int64(), "")
    for value, flag in ((1, 3), (1, 4), (5, None))
]


@pytest.mark.parametrize("early", [0, None])
def test_distinct_values_under_two_filters_and_of_two_columns_of_one_type_are_counted_apart(early: int | None):
    schema = pa.schema([*INPUT, ("c3", pa.bool_()), ("c4", pa.bool_()), ("c5", pa.int64())])
    slices, whole = windowed(tumble(20), BY_VALUE, input=schema)
    assert isinstance(whole, WindowAggregateOperator)
    partial = for_groups(slices)
    with pytest.raises(ValueError, match="those of slices"):
        FiringAggregateOperator(partial=slices, output=whole.output, firing=AT_CLOSE)
    run = Run((partial, FiringAggregateOperator(partial=partial, output=whole.output, firing=Firing(early, None, 0))))
    run(Batch([Change(("a", value, at(5), value > 1, value > 2, 7)) for value in (1, 2, 2, 3)], 0, 0))
    run(Batch([], 1, 30))
    assert [r[:4] for r in run.applied] == [("a", 2, 1, 1)]


def test_an_answer_that_comes_back_to_what_was_shown_is_not_shown_again():
    run = counting(Firing(10, None, 0), append=False)
    shown(run, row("a", 1, 5), now=0)
    assert shown(run, now=10) == [(1, "a", 1, 0)]
    shown(run, row("a", 2, 5), now=11)
    shown(run, row("a", 2, 5, -1), now=12)
    assert shown(run, now=20) == []


def test_the_watermark_of_the_output_is_behind_by_the_lateness():
    _, late = firing(Firing(None, 0, 30))
    _, early = firing(Firing(0, None, 0))
    assert (late.output_watermark(100), early.output_watermark(100)) == (70, 100)
    assert late.output_watermark(END_OF_TIME) == END_OF_TIME


def test_in_processing_time_a_window_answers_early_and_when_the_clock_passes_its_end():
    run = counting(Firing(10, None, 0), processing=True)
    assert shown(run, row("a", 1, 101), now=101) == []
    assert shown(run, now=111) == [(1, "a", 1, 100)]
    assert shown(run, row("a", 1, 112), now=112) == []
    assert shown(run, now=120) == [(-1, "a", 1, 100), (1, "a", 2, 100)]


def test_days_close_by_the_clock_of_their_zone():
    day = 86_400_000
    run = counting(Firing(None, 0, 1000), window=tumble(day), zone="Europe/Berlin")
    noon = 200 * day + day // 2
    assert shown(run, row("a", 1, noon), watermark=noon) == []
    midnight = 201 * day - 3_600_000  # the end of 20 July 1970 in Berlin, which had no summer time then
    assert shown(run, watermark=midnight - 2) == []
    assert [each[:3] for each in shown(run, watermark=midnight - 1)] == [(1, "a", 1)]
    assert [each[0] for each in shown(run, row("a", 1, noon), watermark=midnight + 998)] == [-1, 1]
    shown(run, watermark=midnight + 999)
    shown(run, row("a", 1, noon), watermark=midnight + 999)
    assert run.late_count == 1


def _two_hashes(table: pa.Table, columns: Sequence[int]) -> Hashes:
    return bucket_hash(table, columns) & np.uint64(1)


def test_keys_that_share_a_hash_are_kept_apart(monkeypatch):
    monkeypatch.setattr(slots, "bucket_hash", _two_hashes)
    kernels = firing(Firing(7, 11, LATENESS), aggregates=[COUNT, SUM])
    cuts = [lambda c, n=n: cut(c, iter(lambda: n, 0), 5) for n in (3, 1000)]
    holds_cut(kernels, arrivals(6, 60), cuts)


def test_the_types_of_the_answer_are_those_of_a_window_that_answers_once():
    _, once = windowed(tumble(20))
    _, often = firing(Firing(0, None, 0))
    assert often.output == once.output
