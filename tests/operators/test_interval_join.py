"""Interval joins in event time."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from operators.joins.interval_join import IntervalJoinOperator
from operators.joins.kinds import JoinKind
from tests.operators.cuts import in_batches, steps
from tests.operators.properties import Batch, Change, Run, holds_cut, holds_oracle, holds_restart
from tests.operators.shared_hashes import share_hashes

EPOCH = datetime(1970, 1, 1)
STAMP = pa.timestamp("us")
LEFT = pa.schema([("c0", pa.int64()), ("c1", STAMP), ("c2", pa.string())])
RIGHT = pa.schema([("c0", STAMP), ("c1", pa.int64())])
KINDS = ("inner", "left", "right", "full", "semi", "anti")
BOUNDS = {"around": (-10, 20), "only before": (-30, -5), "only after": (5, 25), "exactly": (0, 0), "never": (5, -5)}
DELAY = 15


def at(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def joined(kind="inner", bounds=(-10, 20), residual=None, **options):
    return IntervalJoinOperator(
        left=LEFT,
        right=RIGHT,
        kind=JoinKind(kind),
        left_keys=(0,),
        right_keys=(1,),
        null_safe=(False,),
        left_time=1,
        right_time=0,
        lower=bounds[0],
        upper=bounds[1],
        residual=residual,
        **options,
    )


def oracle(kind: str, bounds: tuple[int, int]):
    """What a batch join gives; a row without a partner comes once the watermark passes its last possible one."""
    lower, upper = bounds
    on = f"l.c0 = r.c1 AND epoch_ms(l.c1) - epoch_ms(r.c0) BETWEEN {lower} AND {upper}"

    def query(batch: Batch) -> str:
        lonely = f"SELECT l.* FROM t0 l WHERE NOT EXISTS (SELECT 1 FROM t1 r WHERE {on})"
        lonely += f" AND (epoch_ms(l.c1) - {lower} <= {batch.watermark} OR l.c0 IS NULL)"
        single = f"SELECT r.* FROM t1 r WHERE NOT EXISTS (SELECT 1 FROM t0 l WHERE {on})"
        single += f" AND (epoch_ms(r.c0) + {upper} <= {batch.watermark} OR r.c1 IS NULL)"
        if kind == "semi":
            return f"SELECT * FROM t0 l WHERE EXISTS (SELECT 1 FROM t1 r WHERE {on})"
        if kind == "anti":
            return lonely
        parts = [f"SELECT l.*, r.* FROM t0 l JOIN t1 r ON {on}"]
        if kind in ("left", "full"):
            parts.append(f"SELECT *, NULL, NULL FROM ({lonely})")
        if kind in ("right", "full"):
            parts.append(f"SELECT NULL, NULL, NULL, * FROM ({single})")
        return " UNION ALL ".join(parts)

    return query


def arrivals(seed: int, count: int) -> list[Change]:
    rng = random.Random(seed)
    changes = []
    for i in range(count):
        time, key = at(max(0, i * 2 + rng.randrange(DELAY) - DELAY)), rng.choice([None, 1, 2, 3])
        changes.append(Change((key, time, rng.choice("xy")), 1, 0) if rng.random() < 0.5 else Change((time, key), 1, 1))
    return changes


def time_of(change: Change) -> int:
    time: datetime = change.row[1 - change.port]
    return (time - EPOCH) // timedelta(milliseconds=1)


def cut(changes, sizes) -> list[Batch]:
    return in_batches(changes, sizes, lambda known: max(map(time_of, known)) - DELAY)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_joins_equal_a_batch_query(kind, bounds):
    run = holds_oracle((joined(kind, bounds),), cut(arrivals(1, 100), steps(1)), oracle(kind, bounds))
    assert run.late == []
    assert run.state_rows() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_joins_do_not_depend_on_how_the_log_is_cut(kind):
    cuts = [lambda c, n=n: cut(c, iter(lambda: n, 0)) for n in (3, 17, 1000)]
    holds_cut((joined(kind),), arrivals(2, 60), cuts)


@pytest.mark.parametrize("kind", ["inner", "full"])
def test_joins_survive_a_restart_bit_by_bit(kind):
    holds_restart((joined(kind),), cut(arrivals(3, 80), steps(3)))


def test_keys_that_share_a_hash_are_kept_apart(monkeypatch):
    share_hashes(monkeypatch)
    holds_oracle((joined("full"),), cut(arrivals(4, 80), steps(4)), oracle("full", (-10, 20)))


def test_state_holds_no_row_that_no_new_row_can_meet():
    run = Run((joined("inner"),))
    for batch in cut(arrivals(5, 300), iter(lambda: 6, 0))[:-1]:
        run(batch)
        assert run.state_rows() <= 2 * (DELAY + 20 + 10 + 6)


def left(key, time, value="x"):
    return Change((key, at(time), value), 1, 0)


def right(key, time):
    return Change((at(time), key), 1, 1)


@pytest.mark.parametrize(("time", "meets"), [(89, False), (90, True), (120, True), (121, False)])
def test_both_bounds_are_inclusive(time, meets):
    run = Run((joined(bounds=(-10, 20)),))
    run(Batch([right(1, 100)], watermark=0))
    run(Batch([left(1, time)], watermark=0))
    assert bool(run.log) == meets


def test_a_row_behind_the_watermark_still_joins_while_its_interval_is_open():
    run = Run((joined(bounds=(-10, 20)),))
    run(Batch([right(1, 100)], watermark=105))
    run(Batch([left(1, 98)], watermark=105))
    assert len(run.log) == 1
    assert run.late == []


def test_a_row_whose_last_partner_has_passed_is_late_if_it_finds_none():
    run = Run((joined(bounds=(-10, 20)),))
    run(Batch([], watermark=200))
    run(Batch([left(1, 190), left(1, 191)], watermark=200))
    assert run.late == [(1, at(190), "x")]
    assert run.late_count == 1


def test_an_outer_row_comes_padded_once_its_last_partner_has_passed_or_at_once_if_it_already_has():
    run = Run((joined("left", bounds=(-10, 20)),))
    run(Batch([left(1, 100)], watermark=109))
    assert run.log == []
    run(Batch([], watermark=110))
    run(Batch([left(2, 99)], watermark=110))
    assert [row[:2] for row, _ in run.log] == [(1, at(100)), (2, at(99))]


def test_a_residual_condition_decides_too():
    run = Run((joined("inner", residual="c2 = 'y'"),))
    run(Batch([left(1, 10, "x"), left(1, 10, "y"), right(1, 10)], watermark=0))
    assert [row[2] for row, _ in run.log] == ["y"]


def test_the_watermark_is_held_back_by_the_larger_bound():
    assert joined(bounds=(-10, 20)).output_watermark(100) == 80
    assert joined(bounds=(-30, 20)).output_watermark(100) == 70
    assert joined(bounds=(5, 8)).output_watermark(100) == 92


def test_in_processing_time_partners_meet_by_the_clock():
    run = Run((joined("left", bounds=(-10, 20), processing=True),))
    run(Batch([left(1, 100)], now=100))
    run(Batch([right(1, 110)], now=110))
    run(Batch([left(2, 111)], now=111))
    run(Batch([right(2, 122)], now=122))
    assert [(row[0], row[4]) for row, _ in run.log] == [(1, 1), (2, None)]


def test_a_row_of_a_clock_that_was_set_back_is_padded_at_once():
    run = Run((joined("left", bounds=(-10, 20), processing=True),))
    run(Batch([], now=200))
    run(Batch([left(1, 100)], now=100))
    assert [(row[0], row[4]) for row, _ in run.log] == [(1, None)]
