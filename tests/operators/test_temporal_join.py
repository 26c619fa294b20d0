"""Temporal joins in event time."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from operators.joins.kinds import JoinKind
from operators.joins.temporal_join import TemporalJoinOperator
from operators.time import END_OF_TIME, MIN_TIME
from tests.operators.cuts import steps
from tests.operators.properties import Batch, Change, Run, holds_cut, holds_restart
from tests.operators.shared_hashes import share_hashes

EPOCH = datetime(1970, 1, 1)
STAMP = pa.timestamp("us")
ORDERS = pa.schema([("c0", STAMP), ("c1", pa.int64()), ("c2", pa.string())])
RATES = pa.schema([("c0", pa.string()), ("c1", pa.int64()), ("c2", STAMP)])
KINDS = ("inner", "left")
DELAY = 15


def at(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def joined(kind="inner", residual=None, **options):
    return TemporalJoinOperator(
        left=ORDERS,
        right=RATES,
        kind=JoinKind(kind),
        left_keys=(2,),
        right_keys=(0,),
        left_time=0,
        right_time=2,
        residual=residual,
        **options,
    )


def order(time, amount, key, weight=1):
    return Change((at(time), amount, key), weight, 0)


def rate(key, value, time):
    return Change((key, value, at(time)), 1, 1)


def ended(key, time):
    return Change((key, None, at(time)), -1, 1)


def time_of(change: Change) -> int:
    time: datetime = change.row[0 if change.port == 0 else 2]
    return (time - EPOCH) // timedelta(milliseconds=1)


def arrivals(seed: int, count: int) -> list[Change]:
    """Orders and versions of rates, some out of order, some of one time, some of them deletes."""
    rng = random.Random(seed)
    changes = []
    for i in range(count):
        time, key = max(0, i * 2 + rng.randrange(DELAY) - DELAY), rng.choice(["a", "b", "c", None])
        if rng.random() < 0.5:
            changes.append(order(time, i, key))
        elif key is not None:
            changes.append(ended(key, time) if rng.random() < 0.2 else rate(key, i, time))
    return changes


def cut(changes, sizes) -> list[Batch]:
    batches, start = [], 0
    while start < len(changes):
        size = next(sizes)
        # An update is one change: what takes a row back and what stands in its place come together.
        while changes[min(start + size, len(changes)) - 1].weight < 0 and start + size < len(changes):
            size += 1
        watermark = max(map(time_of, changes[: start + size])) - DELAY - 1
        batches.append(Batch(changes[start : start + size], watermark=watermark))
        start += size
    return [*batches, Batch([], watermark=END_OF_TIME)]


def expected(changes, watermark, kind="inner"):
    """What every order up to the watermark meets: brute force over all versions that ever came."""
    versions = [c for c in changes if c.port == 1]
    answer: Counter[tuple[object, ...]] = Counter()
    for change in changes:
        if change.port == 1 or time_of(change) > watermark:
            continue
        mine = [(time_of(v), i, v) for i, v in enumerate(versions) if v.row[0] == change.row[2] is not None]
        known = [each for each in mine if each[0] <= time_of(change)]
        met = max(known, key=lambda each: each[:2])[2] if known else None
        if met is not None and met.weight > 0:
            answer[change.row + met.row] += change.weight
        elif kind == "left":
            answer[(*change.row, None, None, None)] += change.weight
    return +answer


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_each_row_meets_the_version_of_its_own_time(kind, seed):
    run = Run((joined(kind),))
    so_far: list[Change] = []
    for batch in cut(arrivals(seed, 120), steps(seed)):
        run(batch)
        so_far += batch.changes
        assert run.applied == expected(so_far, batch.watermark, kind)
    assert run.late == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_does_not_depend_on_how_the_log_is_cut(kind):
    cuts = [lambda c, n=n: cut(c, iter(lambda: n, 0)) for n in (3, 17, 1000)]
    holds_cut((joined(kind),), arrivals(7, 120), cuts)


@pytest.mark.parametrize("kind", KINDS)
def test_a_restart_changes_nothing_bit_by_bit(kind):
    holds_restart((joined(kind),), cut(arrivals(8, 120), steps(8)))


def test_keys_that_share_a_hash_are_kept_apart(monkeypatch):
    share_hashes(monkeypatch)
    changes = arrivals(9, 120)
    run = Run((joined("left"),))
    for batch in cut(changes, steps(9)):
        run(batch)
    assert run.applied == expected(changes, END_OF_TIME, "left")


def test_state_is_the_rows_ahead_of_the_watermark_and_one_version_of_each_key():
    run = Run((joined(),))
    for batch in cut(arrivals(10, 300), iter(lambda: 6, 0))[:-1]:
        run(batch)
        assert run.state_rows() <= 3 + 2 * DELAY + 6
    run(Batch([ended(key, 2000) for key in "abc"], watermark=END_OF_TIME))
    assert run.state_rows() == 0


def amounts(run):
    return [(row[1], row[4]) for row, _ in run.log]


def test_a_row_waits_until_the_watermark_reaches_its_time():
    run = Run((joined(),))
    run(Batch([rate("a", 10, 5), order(20, 1, "a")], watermark=19))
    assert amounts(run) == []
    run(Batch([rate("a", 11, 20)], watermark=20))
    assert amounts(run) == [(1, 11)]


def test_of_two_versions_at_one_time_the_later_in_arrival_counts():
    run = Run((joined(),))
    run(Batch([rate("a", 10, 5), rate("a", 11, 5)], watermark=0))
    run(Batch([rate("a", 12, 5), order(5, 1, "a")], watermark=5))
    assert amounts(run) == [(1, 12)]


def test_nothing_matches_after_a_delete_until_the_next_version():
    run = Run((joined("left"),))
    versions = [rate("a", 10, 5), ended("a", 10), rate("a", 11, 20)]
    run(Batch([*versions, *(order(t, t, "a") for t in (4, 9, 10, 19, 20))], watermark=30))
    assert amounts(run) == [(4, None), (9, 10), (10, None), (19, None), (20, 11)]


def test_what_changes_later_corrects_nothing_that_was_answered():
    run = Run((joined(),))
    run(Batch([rate("a", 10, 5), order(7, 1, "a")], watermark=10))
    run(Batch([rate("a", 11, 6), ended("a", 5)], watermark=12))
    assert run.log == [((at(7), 1, "a", "a", 10, at(5)), 1)]


def test_a_row_behind_the_watermark_is_late():
    run = Run((joined("left"),))
    run(Batch([rate("a", 10, 5)], watermark=10))
    run(Batch([order(10, 1, "a"), order(11, 2, "a")], watermark=11))
    assert amounts(run) == [(2, 10)]
    assert run.late == [(at(10), 1, "a")]
    assert run.late_count == 1


def test_a_version_behind_the_watermark_still_counts_unless_a_newer_one_was_there():
    run = Run((joined(),))
    run(Batch([rate("a", 10, 5), rate("b", 20, 8)], watermark=10))
    run(Batch([rate("a", 11, 7), rate("b", 21, 7)], watermark=10))
    run(Batch([order(12, 1, "a"), order(12, 2, "b")], watermark=12))
    assert amounts(run) == [(1, 11), (2, 20)]
    assert run.late == [("b", 21, at(7))]


def test_a_residual_condition_decides_about_the_one_version_of_that_time():
    run = Run((joined("left", residual="c4 > 10"),))
    run(Batch([rate("a", 11, 5), rate("a", 9, 10), order(8, 1, "a"), order(12, 2, "a")], watermark=20))
    assert amounts(run) == [(1, 11), (2, None)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_for_which_the_residual_cannot_be_computed_is_a_dead_letter_and_not_padded(kind):
    run = Run((joined(kind, residual="CAST(c2 AS BIGINT) > 0", append=False, doubts=kind == "left"),))
    run(Batch([rate("a", 11, 5), rate("7", 9, 5), order(8, 1, "a"), order(8, 2, "7")], watermark=20))
    assert amounts(run) == [(2, 9)]
    run(Batch([order(8, 1, "a", -1), order(8, 2, "7", -1)], watermark=20))
    assert (run.applied, run.dead) == (Counter(), [(0, (at(8), 1, "a", 1))])


def test_state_of_rows_that_were_padded_is_refused_by_its_version():
    assert [joined("left", append=a, doubts=True).version for a in (True, False)] == [1, 3]


def test_a_null_key_meets_nothing():
    run = Run((joined("left"),))
    run(Batch([Change((None, 1, at(1)), 1, 1), order(8, 1, None)], watermark=20))
    assert amounts(run) == [(1, None)]


def test_rows_come_out_by_time():
    run = Run((joined("left"),))
    run(Batch([order(8, 1, "a"), order(3, 2, "b"), order(5, 3, "a")], watermark=MIN_TIME))
    run(Batch([order(4, 4, "a")], watermark=9))
    assert [row[1] for row, _ in run.log] == [2, 4, 3, 1]


def retracting(seed: int, count: int) -> list[Change]:
    """Orders that are retracted, some at once and some long after, and changed without another time."""
    rng = random.Random(seed)
    changes: list[Change] = []
    there: list[Change] = []
    for change in arrivals(seed, count):
        changes.append(change)
        if change.port == 0:
            there.append(change)
        if there and rng.random() < 0.4:
            gone = there.pop(rng.randrange(len(there)))
            changes.append(order(time_of(gone), gone.row[1], gone.row[2], -1))
            if rng.random() < 0.5:
                there.append(order(time_of(gone), rng.randrange(1000), gone.row[2]))
                changes.append(there[-1])
    return changes


def net(changes) -> list[Change]:
    """The orders that are there, and all versions."""
    there = Counter(c.row for c in changes if c.port == 0 and c.weight > 0)
    there.subtract(c.row for c in changes if c.port == 0 and c.weight < 0)
    return [*(c for c in changes if c.port == 1), *(Change(row, 1, 0) for row in there.elements())]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("restart", [False, True])
def test_a_row_that_is_retracted_or_changed_meets_the_version_of_its_own_time_again(kind, seed, restart):
    run = Run((joined(kind, append=False),), restart)
    so_far: list[Change] = []
    for batch in cut(retracting(seed, 80), steps(seed)):
        run(batch)
        so_far += batch.changes
        assert run.applied == expected(net(so_far), batch.watermark, kind)
    assert run.late == []


def test_all_that_is_retracted_leaves_nothing_behind():
    run = Run((joined("left", append=False),))
    orders = [order(t, t, key) for t in range(20) for key in ("a", None)]
    run(Batch([rate("a", 10, 5), *orders], watermark=15))
    run(Batch([ended("a", 5)], watermark=END_OF_TIME))
    run(Batch([order(c.row[1], c.row[1], c.row[2], -1) for c in orders], watermark=END_OF_TIME))
    assert run.applied == Counter()
    assert run.state_rows() == 0
    assert run.late == []


def test_what_rows_have_met_is_forgotten_after_its_time_to_live():
    run = Run((joined("left", append=False, ttl=100),))
    run(Batch([order(1, 1, "a"), order(1, 2, "b")], watermark=5, now=1000))
    run(Batch([order(1, 1, "a", -1), order(1, 3, "a")], watermark=5, now=1050))
    run(Batch([order(1, 3, "a", -1), order(1, 2, "b", -1)], watermark=5, now=1120))
    assert [(row[1], weight) for row, weight in run.log] == [(1, 1), (2, 1), (1, -1), (3, 1), (3, -1)]
    assert run.late == [(at(1), 2, "b")]


def tombstone(key):
    return Change((key, None, None), -1, 1)


def test_a_delete_without_a_time_has_the_time_of_the_row_that_it_deletes():
    run = Run((joined("left", untimed_deletes=True),))
    run(Batch([rate("a", 10, 5), rate("a", 11, 9), rate("b", 20, 5), tombstone("a")], watermark=0))
    run(Batch([tombstone("b"), rate("b", 21, 12), *(order(t, t, k) for t in (6, 10, 13) for k in "ab")], watermark=20))
    assert amounts(run) == [(6, 10), (6, None), (10, None), (10, None), (13, None), (13, 21)]


def test_a_delete_without_a_time_and_without_a_row_is_dropped():
    run = Run((joined(untimed_deletes=True),))
    run(Batch([tombstone("a"), rate("a", 10, 5), tombstone("a"), tombstone("a")], watermark=0))
    run(Batch([tombstone("a")], watermark=END_OF_TIME))
    assert run.unmatched_retractions == 3
    assert run.state_rows() == 0


def test_deletes_without_a_time_do_not_depend_on_how_the_log_is_cut():
    log = [tombstone(c.row[0]) if c.port == 1 and c.weight < 0 else c for c in arrivals(11, 120)]
    cuts = [lambda c, n=n: _cut_at_the_end(c, n) for n in (1, 3, 17, 1000)]
    holds_cut((joined("left", untimed_deletes=True),), log, cuts)


def _cut_at_the_end(changes, size):
    batches = [Batch(changes[i : i + size], watermark=MIN_TIME) for i in range(0, len(changes), size)]
    return [*batches, Batch([], watermark=END_OF_TIME)]


def at_arrival(kind="left", **options):
    """A join in processing time of orders that may be retracted."""
    return TemporalJoinOperator(
        left=ORDERS,
        right=RATES,
        kind=JoinKind(kind),
        left_keys=(2,),
        right_keys=(0,),
        left_time=None,
        right_time=None,
        append=False,
        **options,
    )


def after_their_rates(seed: int) -> list[Change]:
    """Orders of three keys and none that come and go, after the rates of two of the keys."""
    return [rate("a", 10, 5), rate("b", 20, 5), *(c for c in retracting(seed, 60) if c.port == 0)]


def expected_at_arrival(changes, kind="left"):
    """What the orders that are there meet, where no rate has changed after the first order."""
    rates = {c.row[0]: c.row for c in changes if c.port == 1}
    there = [c.row for c in net(changes) if c.port == 0]
    met = [row + rates.get(row[2], (None, None, None)) for row in there if kind == "left" or row[2] in rates]
    return Counter(met)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("restart", [False, True])
def test_in_processing_time_rows_that_come_and_go_meet_the_table_that_is_there(kind, restart):
    run = Run((at_arrival(kind),), restart)
    so_far: list[Change] = []
    for batch in cut(after_their_rates(3), steps(3)):
        run(batch)
        so_far += batch.changes
        assert run.applied == expected_at_arrival(so_far, kind)
    assert run.unmatched_retractions == 0


def test_in_processing_time_a_row_is_retracted_with_the_version_that_it_met():
    run = Run((at_arrival(),))
    run(Batch([rate("a", 10, 5), order(1, 1, "a"), order(1, 2, "b")]))
    run(Batch([rate("a", 11, 6), rate("b", 20, 6)]))
    run(Batch([order(1, 1, "a", -1), order(1, 2, "b", -1), order(1, 3, "a")]))
    run(Batch([ended("a", 7), order(1, 3, "a", -1), order(1, 4, "a")]))
    emitted = [(*amount, weight) for amount, (_, weight) in zip(amounts(run), run.log, strict=True)]
    assert emitted[:2] == [(1, 10, 1), (2, None, 1)]
    assert sorted(emitted[2:5]) == [(1, 10, -1), (2, None, -1), (3, 11, 1)]
    assert emitted[5:] == [(3, 11, -1), (4, None, 1)]
    run(Batch([ended("b", 8), order(1, 4, "a", -1)]))
    assert not run.applied
    assert run.state_rows() == 0


def test_in_processing_time_what_rows_have_met_is_forgotten_after_its_time_to_live():
    run = Run((at_arrival(ttl=100),))
    run(Batch([order(1, 1, "a")], now=1000))
    run(Batch([order(1, 1, "a", -1)], now=1101))
    assert (run.unmatched_retractions, run.state_rows()) == (1, 0)
