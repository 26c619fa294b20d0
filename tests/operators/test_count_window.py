"""Count windows, against counting the rows of each partition one by one."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pyarrow as pa
import pytest

from operators.aggregates.functions import AggregateSpec
from operators.columns import positional
from operators.time import MIN_TIME
from operators.windows.stream.count_window import CountWindow
from operators.windows.stream.window_output import WindowOutput
from tests.operators.properties import Batch, Change, Run, every, holds_cut, holds_restart

INPUT = positional([pa.string(), pa.int64(), pa.bool_()])
SHAPES = [(1, 1), (2, 2), (3, 1), (5, 2), (5, 5), (7, 3)]
PARTITIONS = {"stream": (), "partition": (0,), "two columns": (0, 2)}


def rows_out(partition=(), size=5, every=2, seen=None, aggregates=()):
    types = [*INPUT.types, *(pa.int64() for _ in aggregates), *[pa.int64()] * 3]
    result = WindowOutput(input=INPUT, output=positional(types), seen=seen, aggregates=aggregates)
    return CountWindow(result=result, partition=partition, time=None, size=size, every=every)


def groups_out(keys, aggregates, partition=(), size=5, every=2):
    types = [*(INPUT.field(k).type for k in keys), *(pa.int64() for _ in aggregates), *[pa.int64()] * 3]
    result = WindowOutput(input=INPUT, output=positional(types), keys=keys, aggregates=aggregates)
    return CountWindow(result=result, partition=partition, time=None, size=size, every=every)


def stream(seed, count):
    rng = random.Random(seed)
    return [
        Change((rng.choice(["a", "b", "", None]), rng.choice([None, i]), rng.choice([True, False, None])))
        for i in range(count)
    ]


def batches(seed, count=120):
    rng = random.Random(seed)
    changes = stream(seed, count)
    made: list[Batch] = []
    while changes:
        size = rng.choice([1, 2, 5, 30])
        made.append(Batch(changes[:size], now=1000 + len(made)))
        changes = changes[size:]
    return made


def brute(made, partition, size, every):
    """The windows, each a list of (row, time of arrival), in the order in which they fill."""
    kept: defaultdict[tuple[object, ...], list[tuple[tuple[object, ...], int]]] = defaultdict(list)
    windows = []
    for batch in made:
        for change in batch.changes:
            mine = kept[tuple(change.row[p] for p in partition)]
            mine.append((change.row, batch.now))
            if len(mine) >= size and len(mine) % every == 0:
                windows.append(mine[-size:])
    return windows


@pytest.mark.parametrize("partition", PARTITIONS.values(), ids=PARTITIONS)
@pytest.mark.parametrize(("size", "every"), SHAPES)
def test_rows_of_each_window_come_out_once_for_each_window(size, every, partition):
    made = batches(size + every)
    run = Run([rows_out(partition, size, every)])
    for at, batch in enumerate(made):
        run(batch)
        windows = brute(made[: at + 1], partition, size, every)
        expected = Counter((*row, w[0][1], w[-1][1], now) for w in windows for row, now in w)
        assert run.applied == expected, f"after batch {at}"


@pytest.mark.parametrize("partition", PARTITIONS.values(), ids=PARTITIONS)
def test_a_window_is_grouped_after_it_is_full(partition):
    calls = (
        AggregateSpec(function="COUNT"),
        AggregateSpec(function="MAX", arguments=(1,)),
        AggregateSpec(function="COUNT", arguments=(0,), distinct=True),
    )
    made = batches(3)
    run = Run([groups_out((2, *partition), calls, partition, 5, 2)])
    for batch in made:
        run(batch)
    expected: Counter[tuple[object, ...]] = Counter()
    for window in brute(made, partition, 5, 2):
        groups = defaultdict(list)
        for row, _ in window:
            groups[(row[2], *(row[p] for p in partition))].append(row)
        for key, rows in groups.items():
            most = max((r[1] for r in rows if r[1] is not None), default=None)
            different = len({r[0] for r in rows if r[0] is not None})
            expected[(*key, len(rows), most, different, window[0][1], window[-1][1], window[-1][1])] += 1
    assert run.applied == expected


def test_rows_that_are_not_seen_count_and_do_not_come_out():
    made = batches(4)
    run = Run([rows_out(size=5, every=5, seen=2, aggregates=(AggregateSpec(function="COUNT"),))])
    for batch in made:
        run(batch)
    expected: Counter[tuple[object, ...]] = Counter()
    for window in brute(made, (), 5, 5):
        seen = [(row, now) for row, now in window if row[2]]
        expected.update((*row, len(seen), window[0][1], window[-1][1], now) for row, now in seen)
    assert run.applied == expected


@pytest.mark.parametrize("partition", PARTITIONS.values(), ids=PARTITIONS)
def test_windows_do_not_depend_on_how_the_log_is_cut(partition):
    holds_cut([rows_out(partition, 5, 2)], stream(5, 90), [every(n) for n in (1, 7, 40, 1000)])


@pytest.mark.parametrize("partition", PARTITIONS.values(), ids=PARTITIONS)
def test_windows_survive_a_restart_bit_by_bit(partition):
    holds_restart([rows_out(partition, 5, 2)], batches(6))


@pytest.mark.parametrize(("size", "every"), SHAPES)
def test_no_row_is_kept_that_no_window_can_have(size, every):
    run = Run([rows_out((), size, every)])
    for seen in range(1, 40):
        run(Batch([Change(("a", seen, True))]))
        following = next(n for n in range(seen + 1, seen + size + every + 1) if n % every == 0 and n >= size)
        assert run.states[0].table_sizes()["rows"].rows == max(0, seen - (following - size))


def test_a_partition_that_has_just_filled_a_window_of_its_own_rows_leaves_nothing():
    run = Run([rows_out((0,), 3, 3)])
    for name in ("a", "b", "a", "b", "a", "b"):
        run(Batch([Change((name, 1, True))]))
    assert run.state_rows() == 0


def test_the_numbers_of_a_partition_may_outgrow_the_half_of_a_sort_key_that_is_theirs(monkeypatch):
    monkeypatch.setattr("operators.state.tables.numbered._MOST", 7)
    made = batches(7)
    run = Run([rows_out((0,), 5, 2)], restart=True)
    for batch in made:
        run(batch)
    windows = brute(made, (0,), 5, 2)
    assert run.applied == Counter((*row, w[0][1], w[-1][1], now) for w in windows for row, now in w)


def test_a_row_without_a_time_counts_with_the_time_of_the_batch():
    schema = positional([pa.timestamp("us")])
    result = WindowOutput(input=schema, output=positional([pa.timestamp("us"), *[pa.int64()] * 3]))
    run = Run([CountWindow(result=result, partition=(), time=0, size=1, every=1)])
    run(Batch([Change((None,))], now=7, watermark=MIN_TIME))
    assert run.applied == Counter({(None, 7, 7, 7): 1})
