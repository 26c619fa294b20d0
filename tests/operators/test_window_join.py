"""Window joins."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from operators.joins.kinds import JoinKind
from operators.joins.window_join import WindowJoinOperator
from operators.time import END_OF_TIME, MIN_TIME
from tests.operators.cuts import behind, in_batches, steps
from tests.operators.properties import SQL, Batch, Change, Run, accumulated, holds_cut, holds_restart, rows_of

EPOCH = datetime(1970, 1, 1)
STAMP = pa.timestamp("us")
SIDE = pa.schema([("c0", pa.int64()), ("c1", pa.int64()), ("c2", STAMP), ("c3", STAMP), ("c4", STAMP)])
KINDS = ("inner", "left", "right", "full", "semi", "anti", "mark")
SIZE, SLIDE, DELAY = 20, 10, 15


def at(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def joined(kind="inner", residual=None, **options):
    return WindowJoinOperator(
        left=SIDE,
        right=SIDE,
        kind=JoinKind(kind),
        left_keys=(0, 2, 3),
        right_keys=(0, 2, 3),
        null_safe=(False, False, False),
        left_time=4,
        right_time=4,
        residual=residual,
        **options,
    )


def row(port, key, value, start, size=SIZE):
    return Change((key, value, at(start), at(start + size), at(start + size - 1)), 1, port)


def arrivals(seed: int, count: int) -> list[Change]:
    """Rows of hopping windows, each row once a window; a window's rows come while it is open."""
    rng = random.Random(seed)
    changes = []
    for i in range(count):
        time = max(0, i * 2 + rng.randrange(DELAY) - DELAY)
        port, key = rng.randrange(2), rng.choice([None, 1, 2, 3])
        last = time // SLIDE * SLIDE
        changes += [row(port, key, i, start) for start in (last - SLIDE, last)]
    return changes


def cut(changes, sizes) -> list[Batch]:
    # Of a row's two windows the second starts at most SLIDE before its time.
    return in_batches(changes, (2 * size for size in sizes), behind(2, DELAY + 1))


def oracle(kind: str, watermark: int) -> str:
    on = "l.c0 = r.c0 AND l.c2 = r.c2 AND l.c3 = r.c3"
    left, right = (f"(SELECT * FROM {t} WHERE epoch_ms(c4) <= {watermark})" for t in ("t0", "t1"))
    if kind in ("semi", "anti"):
        return f"SELECT * FROM {left} l WHERE {'NOT ' * (kind == 'anti')}EXISTS (SELECT 1 FROM {right} r WHERE {on})"
    if kind == "mark":
        return f"SELECT *, EXISTS (SELECT 1 FROM {right} r WHERE {on}) FROM {left} l"
    return f"SELECT l.*, r.* FROM {left} l {kind} JOIN {right} r ON {on}"


@pytest.mark.parametrize("kind", KINDS)
def test_closed_windows_are_joined_as_a_batch_query_joins_them(kind):
    run, batches = Run((joined(kind),)), cut(arrivals(1, 80), steps(1))
    for i, batch in enumerate(batches):
        run(batch)
        tables = {f"t{port}": accumulated(joined(kind), batches[: i + 1], port) for port in (0, 1)}
        assert run.applied == Counter(rows_of(SQL(oracle(kind, batch.watermark), tables)))
    assert run.late == []
    assert run.state_rows() == 0
    assert all(weight == 1 for _, weight in run.log)


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_does_not_depend_on_how_the_log_is_cut(kind):
    cuts = [lambda c, n=n: cut(c, iter(lambda: n, 0)) for n in (3, 17, 1000)]
    holds_cut((joined(kind),), arrivals(2, 60), cuts)


@pytest.mark.parametrize("kind", ["inner", "full"])
def test_a_restart_changes_nothing_bit_by_bit(kind):
    holds_restart((joined(kind),), cut(arrivals(3, 80), steps(3)))


def test_state_is_the_rows_of_open_windows():
    run = Run((joined("full"),))
    for batch in cut(arrivals(4, 200), iter(lambda: 3, 0))[:-1]:
        run(batch)
        assert run.state_rows() <= 2 * (DELAY + SIZE + SLIDE + DELAY)


def test_nothing_is_answered_before_the_window_closes():
    run = Run((joined("full"),))
    run(Batch([row(0, 1, 10, 0), row(1, 1, 11, 0), row(0, 2, 12, 0)], watermark=SIZE - 2))
    assert run.log == []
    run(Batch([], watermark=SIZE - 1))
    assert [(r[1], r[6]) for r, _ in run.log] == [(10, 11), (12, None)]


def test_a_row_whose_window_has_closed_is_late():
    run = Run((joined("left"),))
    run(Batch([], watermark=SIZE - 1))
    run(Batch([row(0, 1, 10, 0), row(1, 1, 11, SLIDE)], watermark=SIZE))
    assert [late[1] for late in run.late] == [10]
    assert run.late_count == 1


def test_windows_of_one_start_and_another_end_are_different():
    run = Run((joined(),))
    run(Batch([row(0, 1, 10, 0), row(1, 1, 11, 0, 2 * SIZE)], watermark=END_OF_TIME))
    assert run.log == []


def test_a_residual_condition_decides_too():
    run = Run((joined("left", residual="c1 >= c6"),))
    run(Batch([row(0, 1, 10, 0), row(0, 1, 9, 0), row(1, 1, 10, 0)], watermark=END_OF_TIME))
    assert [(r[1], r[6]) for r, _ in run.log] == [(10, 10), (9, None)]


def test_in_processing_time_windows_close_by_the_clock_and_nothing_is_late():
    run = Run((joined("left", processing=True),))
    run(Batch([row(0, 1, 10, 0)], now=5, watermark=MIN_TIME))
    run(Batch([row(1, 1, 11, 0)], now=SIZE, watermark=MIN_TIME))
    run(Batch([row(0, 1, 12, 0)], now=SIZE + 1, watermark=MIN_TIME))
    assert [(r[1], r[6]) for r, _ in run.log] == [(10, 11), (12, None)]
    assert run.late == []
