"""OVER windows: two data tables as users would have them, and the properties of every kernel."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from operators.over.over import Frame, OverCallSpec, OverOperator
from operators.time import END_OF_TIME
from tests.operators.cuts import behind, in_batches
from tests.operators.cuts import steps as drawn_steps
from tests.operators.properties import Batch, Change, Run, holds_cut, holds_oracle, holds_restart

EPOCH = datetime(1970, 1, 1)
STAMP = pa.timestamp("us")
INPUT = pa.schema([("c0", pa.string()), ("c1", pa.int64()), ("c2", STAMP), ("c3", pa.float64())])
DELAY = 30
FAR = 10**9

ALL_ROWS, ALL_TIME = Frame(rows=True, preceding=None), Frame(rows=False, preceding=None)
BY_TIME = "{by} ORDER BY ms"
TWO_ROWS, TWENTY_MS = Frame(rows=True, preceding=2), Frame(rows=False, preceding=20)

CALLS = {
    "last rows": [
        (OverCallSpec(function="COUNT", frame=TWO_ROWS), pa.int64(), "COUNT(*) OVER rows2"),
        (
            OverCallSpec(function="SUM", frame=TWO_ROWS, arguments=(1,)),
            pa.int64(),
            "CAST(SUM(c1) OVER rows2 AS BIGINT)",
        ),
        (OverCallSpec(function="MAX", frame=TWO_ROWS, arguments=(3,)), pa.float64(), "MAX(c3) OVER rows2"),
        (OverCallSpec(function="LAG", frame=ALL_ROWS, arguments=(1,)), pa.int64(), "LAG(c1) OVER arrival"),
        (
            OverCallSpec(function="LAG", frame=ALL_ROWS, arguments=(1,), constants=("3", "-1")),
            pa.int64(),
            "LAG(c1, 3, -1) OVER arrival",
        ),
        (
            OverCallSpec(function="FIRST_VALUE", frame=TWO_ROWS, arguments=(1,)),
            pa.int64(),
            "FIRST_VALUE(c1 IGNORE NULLS) OVER rows2",
        ),
        (
            OverCallSpec(function="SUM", frame=TWO_ROWS, arguments=(3,), distinct=True),
            pa.float64(),
            "SUM(DISTINCT c3) OVER rows2",
        ),
        (
            OverCallSpec(function="AVG", frame=TWO_ROWS, arguments=(1,), distinct=True),
            pa.int64(),
            "CAST(SUM(DISTINCT c1) OVER rows2 // NULLIF(COUNT(DISTINCT c1) OVER rows2, 0) AS BIGINT)",
        ),
    ],
    "last time": [
        (OverCallSpec(function="COUNT", frame=TWENTY_MS), pa.int64(), "COUNT(*) OVER range20"),
        (OverCallSpec(function="AVG", frame=TWENTY_MS, arguments=(3,)), pa.float64(), "AVG(c3) OVER range20"),
        (OverCallSpec(function="MIN", frame=TWENTY_MS, arguments=(1,)), pa.int64(), "MIN(c1) OVER range20"),
        (
            OverCallSpec(function="COUNT", frame=TWENTY_MS, arguments=(1,), distinct=True),
            pa.int64(),
            "COUNT(DISTINCT c1) OVER range20",
        ),
        (
            OverCallSpec(function="APPROX_COUNT_DISTINCT", frame=TWENTY_MS, arguments=(1,)),
            pa.int64(),
            "COUNT(DISTINCT c1) OVER range20",
        ),
    ],
    "everything so far": [
        (OverCallSpec(function="ROW_NUMBER", frame=ALL_ROWS), pa.int64(), "ROW_NUMBER() OVER arrival"),
        (OverCallSpec(function="COUNT", frame=ALL_TIME, arguments=(1,)), pa.int64(), "COUNT(c1) OVER alltime"),
        (
            OverCallSpec(function="SUM", frame=ALL_ROWS, arguments=(1,)),
            pa.int64(),
            "CAST(SUM(c1) OVER allrows AS BIGINT)",
        ),
        (OverCallSpec(function="AVG", frame=ALL_ROWS, arguments=(3,)), pa.float64(), "AVG(c3) OVER allrows"),
        (OverCallSpec(function="MAX", frame=ALL_TIME, arguments=(1,)), pa.int64(), "MAX(c1) OVER alltime"),
        (
            OverCallSpec(function="LAST_VALUE", frame=ALL_ROWS, arguments=(1,)),
            pa.int64(),
            "LAST_VALUE(c1 IGNORE NULLS) OVER allrows",
        ),
    ],
}
CALLS["everything so far"] += [
    (OverCallSpec(function="RANK", frame=ALL_ROWS), pa.int64(), f"RANK() OVER ({BY_TIME})"),
    (OverCallSpec(function="DENSE_RANK", frame=ALL_ROWS), pa.int64(), f"DENSE_RANK() OVER ({BY_TIME})"),
    (
        OverCallSpec(function="NTH_VALUE", frame=ALL_ROWS, arguments=(1,), constants=("5",)),
        pa.int64(),
        "NTH_VALUE(c1, 5) OVER allrows",
    ),
]
CALLS["values once so far"] = [
    (
        OverCallSpec(function="NTH_VALUE", frame=ALL_TIME, arguments=(4,), constants=("3",)),
        pa.int64(),
        # DuckDB's own NTH_VALUE over RANGE takes any of the peers in their place.
        "CASE WHEN COUNT(*) OVER alltime >= 3 THEN NTH_VALUE(c4, 3) OVER"
        " (arrival ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) END",
    ),
    (
        OverCallSpec(function="COUNT", frame=ALL_ROWS, arguments=(1,), distinct=True),
        pa.int64(),
        "COUNT(DISTINCT c1) OVER allrows",
    ),
    (
        OverCallSpec(function="SUM", frame=ALL_TIME, arguments=(3,), distinct=True),
        pa.float64(),
        "SUM(DISTINCT c3) OVER alltime",
    ),
    (
        OverCallSpec(function="COUNT", frame=ALL_ROWS, arguments=(1,), distinct=True, filter=5),
        pa.int64(),
        "COUNT(DISTINCT c1) FILTER (WHERE c5) OVER allrows",
    ),
    (
        OverCallSpec(function="APPROX_COUNT_DISTINCT", frame=ALL_TIME, arguments=(3,)),
        pa.int64(),
        "COUNT(DISTINCT c3) OVER alltime",
    ),
    (
        OverCallSpec(function="STDDEV_POP", frame=ALL_ROWS, arguments=(1,), distinct=True),
        pa.float64(),
        "STDDEV_POP(DISTINCT c1) OVER allrows",
    ),
    (
        OverCallSpec(function="ARRAY_AGG", frame=ALL_ROWS, arguments=(1,), distinct=True),
        pa.list_(pa.int64()),
        "LIST(c1) FILTER (WHERE first) OVER allrows",
    ),
]
CALLS["all at once"] = [CALLS[name][i] for name in ("last rows", "last time", "everything so far") for i in (0, 1)]
CALLS["last rows"] += [
    (
        OverCallSpec(function="NTH_VALUE", frame=TWO_ROWS, arguments=(1,), constants=("2",)),
        pa.int64(),
        "NTH_VALUE(c1, 2) OVER rows2",
    ),
    (
        OverCallSpec(function="SUM", frame=Frame(rows=True, preceding=4, following=-2), arguments=(1,)),
        pa.int64(),
        "CAST(SUM(c1) OVER (arrival ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING) AS BIGINT)",
    ),
]
CALLS["values of the last rows"] = [
    (
        OverCallSpec(function="COLLECT", frame=TWO_ROWS, arguments=(1,)),
        pa.map_(pa.int64(), pa.int32()),
        "COALESCE(HISTOGRAM(c1) OVER rows2, MAP {{}})",
    ),
    (
        OverCallSpec(function="COLLECT", frame=TWO_ROWS, arguments=(1,), distinct=True, filter=5),
        pa.map_(pa.int64(), pa.int32()),
        "COALESCE(HISTOGRAM(DISTINCT c1) FILTER (WHERE c5) OVER rows2, MAP {{}})",
    ),
    (
        OverCallSpec(function="ARRAY_AGG", frame=TWO_ROWS, arguments=(1,), distinct=True),
        pa.list_(pa.int64()),
        "LIST_SORT(LIST(DISTINCT c1) OVER rows2, 'ASC', 'NULLS LAST')",
    ),
    (
        OverCallSpec(function="LISTAGG", frame=TWENTY_MS, arguments=(0,), distinct=True, constants=("'-'",)),
        pa.string(),
        "ARRAY_TO_STRING(LIST_SORT(LIST(DISTINCT c0) FILTER (WHERE c0 IS NOT NULL) OVER range20), '-')",
    ),
    (
        OverCallSpec(function="BIT_XOR", frame=TWENTY_MS, arguments=(1,), distinct=True),
        pa.int64(),
        "LIST_AGGREGATE(LIST_DISTINCT(LIST(c1) OVER range20), 'bit_xor')",
    ),
    (
        OverCallSpec(function="PERCENTILE", frame=TWENTY_MS, arguments=(3,), distinct=True, constants=("0.5", "1.0")),
        pa.list_(pa.float64()),
        "QUANTILE_CONT(DISTINCT c3, [0.5, 1.0]) OVER range20",
    ),
    (
        OverCallSpec(function="VAR_SAMP", frame=TWENTY_MS, arguments=(1,), distinct=True),
        pa.float64(),
        "VAR_SAMP(DISTINCT c1) OVER range20",
    ),
    (
        OverCallSpec(function="STDDEV_POP", frame=TWO_ROWS, arguments=(1,), distinct=True),
        pa.int64(),
        "CAST(TRUNC(STDDEV_POP(DISTINCT c1) OVER rows2 + 1e-9) AS BIGINT)",
    ),
]
CALLS["values so far"] = [
    (
        OverCallSpec(function="COLLECT", frame=ALL_ROWS, arguments=(1,)),
        pa.map_(pa.int64(), pa.int32()),
        "COALESCE(HISTOGRAM(c1) OVER allrows, MAP {{}})",
    ),
    (
        OverCallSpec(function="COLLECT", frame=ALL_TIME, arguments=(3,), distinct=True),
        pa.map_(pa.float64(), pa.int32()),
        "COALESCE(HISTOGRAM(DISTINCT c3) OVER alltime, MAP {{}})",
    ),
    (
        OverCallSpec(function="PERCENTILE", frame=ALL_TIME, arguments=(1,), constants=("0.25",)),
        pa.float64(),
        "QUANTILE_CONT(CAST(c1 AS DOUBLE), 0.25) OVER alltime",
    ),
    (
        OverCallSpec(function="PERCENTILE", frame=ALL_ROWS, arguments=(3,), distinct=True, constants=("0.5", "0.9")),
        pa.list_(pa.float64()),
        "QUANTILE_CONT(DISTINCT c3, [0.5, 0.9]) OVER allrows",
    ),
]
CALLS["last time"] += [
    (
        OverCallSpec(function="COUNT", frame=Frame(rows=False, preceding=20, following=-10)),
        pa.int64(),
        f"COUNT(*) OVER ({BY_TIME} RANGE BETWEEN 20 PRECEDING AND 10 PRECEDING)",
    ),
]

AHEAD = {
    "next rows": (
        [
            (OverCallSpec(function="LEAD", frame=ALL_ROWS, arguments=(1,)), pa.int64(), "LEAD(c1) OVER arrival"),
            (
                OverCallSpec(function="LEAD", frame=ALL_ROWS, arguments=(1,), constants=("2", "-1")),
                pa.int64(),
                "LEAD(c1, 2, -1) OVER arrival",
            ),
            (
                OverCallSpec(function="SUM", frame=Frame(rows=True, preceding=2, following=1), arguments=(1,)),
                pa.int64(),
                "CAST(SUM(c1) OVER (arrival ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS BIGINT)",
            ),
            (
                OverCallSpec(function="MAX", frame=Frame(rows=True, preceding=-1, following=3), arguments=(3,)),
                pa.float64(),
                "MAX(c3) OVER (arrival ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING)",
            ),
            (
                OverCallSpec(function="COUNT", frame=Frame(rows=True, preceding=None, following=2), arguments=(1,)),
                pa.int64(),
                "COUNT(c1) OVER (arrival ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING)",
            ),
            (
                OverCallSpec(
                    function="LAST_VALUE", frame=Frame(rows=True, preceding=None, following=1), arguments=(1,)
                ),
                pa.int64(),
                "LAST_VALUE(c1 IGNORE NULLS) OVER (arrival ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)",
            ),
            (
                OverCallSpec(
                    function="COUNT",
                    frame=Frame(rows=True, preceding=None, following=1),
                    arguments=(1,),
                    distinct=True,
                ),
                pa.int64(),
                "COUNT(DISTINCT c1) OVER (arrival ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)",
            ),
            (
                OverCallSpec(
                    function="NTH_VALUE",
                    frame=Frame(rows=True, preceding=None, following=2),
                    arguments=(1,),
                    constants=("4",),
                ),
                pa.int64(),
                "NTH_VALUE(c1, 4) OVER (arrival ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING)",
            ),
        ],
        "after >= 3 OR {watermark} >= " + str(END_OF_TIME),
    ),
    "next time": (
        [
            (
                OverCallSpec(function="COUNT", frame=Frame(rows=False, preceding=20, following=15)),
                pa.int64(),
                f"COUNT(*) OVER ({BY_TIME} RANGE BETWEEN 20 PRECEDING AND 15 FOLLOWING)",
            ),
            (
                OverCallSpec(function="AVG", frame=Frame(rows=False, preceding=0, following=12), arguments=(3,)),
                pa.float64(),
                f"AVG(c3) OVER ({BY_TIME} RANGE BETWEEN CURRENT ROW AND 12 FOLLOWING)",
            ),
            (
                OverCallSpec(function="MIN", frame=Frame(rows=False, preceding=-3, following=15), arguments=(1,)),
                pa.int64(),
                f"MIN(c1) OVER ({BY_TIME} RANGE BETWEEN 3 FOLLOWING AND 15 FOLLOWING)",
            ),
            (
                OverCallSpec(function="SUM", frame=Frame(rows=False, preceding=None, following=9), arguments=(1,)),
                pa.int64(),
                f"CAST(SUM(c1) OVER ({BY_TIME} RANGE BETWEEN UNBOUNDED PRECEDING AND 9 FOLLOWING) AS BIGINT)",
            ),
        ],
        "t + 15 <= {watermark} OR {watermark} >= " + str(END_OF_TIME),
    ),
}
"""Calls whose frames end behind the current row, and when it is answered: once they are complete."""


def at(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def over(calls, partition=(0,), schema=INPUT, time=2, **options):
    types = [*schema.types, *(t for _, t, _ in calls)]
    output = pa.schema([(f"c{i}", t) for i, t in enumerate(types)])
    return OverOperator(
        input=schema, output=output, partition=partition, time=time, calls=tuple(c for c, _, _ in calls), **options
    )


def oracle(calls, partition="PARTITION BY c0", complete="true"):
    """The calls over all rows, of which those up to the watermark have come out that are `complete`, which may ask for
    the `watermark`, the time `t` of a row and how many rows of its partition come `after` it by the watermark; rows of
    one time by their number."""

    def query(batch: Batch) -> str:
        after = f"COUNT(*) FILTER (WHERE epoch_ms(c2) <= {batch.watermark})"
        after = f"{after} OVER (arrival ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS after"
        texts = ", ".join([*(q.format(by=partition) for _, _, q in calls), after])
        return (
            f"SELECT * EXCLUDE (t) FROM (SELECT *, epoch_ms(c2) AS t FROM ("
            f" SELECT t0.*, {texts} FROM (SELECT *, epoch_ms(c2) AS ms,"
            f" ROW_NUMBER() OVER ({partition}{',' if partition else 'PARTITION BY'} c1 ORDER BY c2, c4) = 1 AS first"
            f" FROM t0) t0"
            f" WINDOW arrival AS ({partition} ORDER BY c2, c4),"
            f" rows2 AS (arrival ROWS BETWEEN 2 PRECEDING AND CURRENT ROW),"
            f" allrows AS (arrival ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),"
            f" range20 AS ({partition} ORDER BY ms RANGE BETWEEN 20 PRECEDING AND CURRENT ROW),"
            f" alltime AS ({partition} ORDER BY ms RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
            f")) WHERE t <= {batch.watermark} AND ({complete.format(watermark=batch.watermark)})"
        ).replace("SELECT * EXCLUDE (t)", "SELECT * EXCLUDE (t, ms, first, after)")

    return query


NUMBERED = pa.schema([*INPUT, ("c4", pa.int64()), ("c5", pa.bool_())])


cut = partial(in_batches, watermark=behind(2, DELAY))
steps = partial(drawn_steps, sizes=(1, 3, 20, 40))


def arrivals(seed: int, count: int) -> list[Change]:
    """Rows whose times rise, out of order by less than the delay and often equal; c4 numbers them as they come."""
    rng = random.Random(seed)
    rows = []
    for i in range(count):
        time = max(0, i * 2 + rng.randrange(DELAY) - DELAY) // 3 * 3
        values = (rng.choice([None, rng.randrange(50)]), at(time), rng.choice([None, rng.randrange(40) / 4]))
        rows.append(Change((rng.choice(["a", "", None]), *values, i, i % 3 != 0)))
    return rows


@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("partition", [(0,), ()], ids=["by key", "all rows"])
def test_windows_equal_a_batch_query(calls, partition):
    text = "PARTITION BY c0" if partition else ""
    run = holds_oracle(
        (over(calls, partition, NUMBERED),), cut(arrivals(1, 150), steps(1)), oracle(calls, text), restart=True
    )
    assert run.late == []


@pytest.mark.parametrize(("calls", "complete"), AHEAD.values(), ids=AHEAD)
@pytest.mark.parametrize("partition", [(0,), ()], ids=["by key", "all rows"])
def test_windows_that_look_ahead_are_answered_when_their_frames_are_complete(calls, complete, partition):
    text = "PARTITION BY c0" if partition else ""
    batches = cut(arrivals(1, 150), steps(1))
    run = holds_oracle((over(calls, partition, NUMBERED),), batches, oracle(calls, text, complete), restart=True)
    assert run.late == []
    assert len(run.log) == 150


@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)
def test_windows_do_not_depend_on_how_the_log_is_cut(calls):
    cuts = [lambda c, n=n: cut(c, iter(lambda: n, 0)) for n in (4, 17, 1000)]
    holds_cut((over(calls, schema=NUMBERED),), arrivals(2, 60), cuts)


def test_windows_survive_a_restart_bit_by_bit():
    holds_restart((over(CALLS["all at once"], schema=NUMBERED),), cut(arrivals(3, 100), steps(3)))


@pytest.mark.parametrize(
    ("calls", "complete"), [*((calls, "true") for calls in CALLS.values()), *AHEAD.values()], ids=[*CALLS, *AHEAD]
)
def test_keys_that_share_a_hash_are_kept_apart(calls, complete, monkeypatch):
    from operators import hashing, slots

    monkeypatch.setattr(slots, "bucket_hash", lambda t, c: hashing.bucket_hash(t, c) & np.uint64(1))
    kernel = over(calls, schema=NUMBERED)
    holds_oracle((kernel,), cut(arrivals(4, 80), steps(4)), oracle(calls, complete=complete))


def test_state_holds_no_more_than_frames_may_still_read():
    bounds = {"last rows": 3 * 3 + 40, "last time": 60, "everything so far": 3 + 40}
    for name, bound in bounds.items():
        run = Run((over(CALLS[name], schema=NUMBERED),))
        for batch in cut(arrivals(5, 300), iter(lambda: 5, 0))[:-1]:
            run(batch)
            assert run.state_rows() <= bound, name


def test_rows_come_out_in_the_order_of_their_times():
    run = Run((over(CALLS["last time"], schema=NUMBERED),))
    for batch in cut(arrivals(6, 120), steps(6)):
        run(batch)
    times = [(row[2], row[4]) for row, _ in run.log]
    assert times == sorted(times)


# -- prices of items, over rows and over two minutes

ITEMS = """
ITEM001 Electronic 10:01 20 20 20
ITEM002 Electronic 10:02 50 50 50
ITEM003 Electronic 10:03 30 50 50
ITEM004 Electronic 10:03 60 60 60
ITEM005 Electronic 10:05 40 60 60
ITEM006 Electronic 10:06 20 60 40
ITEM007 Electronic 10:07 70 70 70
ITEM008 Clothes    10:08 20 20 20
"""
ITEM = pa.schema([("c0", pa.string()), ("c1", pa.string()), ("c2", STAMP), ("c3", pa.float64())])


def items():
    for line in ITEMS.strip().splitlines():
        name, kind, time, price, *expected = line.split()
        hour, minute = map(int, time.split(":"))
        yield (name, kind, datetime(2017, 11, 11, hour, minute), float(price)), [float(value) for value in expected]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    ("frame", "column"),
    [(Frame(rows=True, preceding=2), 0), (Frame(rows=False, preceding=120_000), 1)],
    ids=["rows", "range"],
)
def test_the_highest_price_on_sale_before(frame, column, together):
    call = OverCallSpec(function="MAX", frame=frame, arguments=(3,))
    run = Run((over([(call, pa.float64(), "")], (1,), ITEM),))
    rows = [row for row, _ in items()]
    for batch in [rows] if together else [[row] for row in rows]:
        last = (batch[-1][2] - EPOCH) // timedelta(milliseconds=1)
        run(Batch([Change(row) for row in batch], watermark=last - 1))
    run(Batch([], watermark=END_OF_TIME))
    expected = [(row[0], values[column]) for row, values in items()]
    if column == 1:  # two rows of one time share the answer over both
        expected[2] = ("ITEM003", 60.0)
    assert [(row[0], row[4]) for row, _ in run.log] == expected


# -- behaviours of users, counted up to each row


def test_behaviours_are_counted_per_user():
    schema = pa.schema([("c0", pa.int64()), ("c1", pa.string()), ("c2", STAMP)])
    call = OverCallSpec(function="COUNT", frame=ALL_ROWS)
    run = Run((over([(call, pa.int64(), "")], (0,), schema),))
    day = datetime(2017, 12, 1)
    rows = [(1, "pv", 0), (2, "fav", 0), (1, "pv", 2), (2, "cart", 3)]
    run(Batch([Change((u, b, day + timedelta(seconds=s))) for u, b, s in rows], watermark=END_OF_TIME))
    assert [(row[0], row[1], row[3]) for row, _ in run.log] == [
        (1, "pv", 1),
        (2, "fav", 1),
        (1, "pv", 2),
        (2, "cart", 2),
    ]


# -- lateness


def counted(frame, **options):
    return over([(OverCallSpec(function="COUNT", frame=frame), pa.int64(), "")], **options)


def row(key, time, value=0):
    return Change((key, value, at(time), None))


@pytest.mark.parametrize("frame", [TWO_ROWS, TWENTY_MS], ids=["rows", "range"])
def test_a_bounded_window_takes_a_row_behind_the_watermark_that_is_newer_than_the_last_answer_of_its_key(frame):
    run = Run((counted(frame),))
    run(Batch([row("a", 10), row("b", 5)], watermark=15))
    run(Batch([row("a", 10, 1), row("a", 9, 2), row("a", 12, 3), row("b", 7, 4), row("c", 1, 5)], watermark=15))
    assert [(r[0], r[1], r[4]) for r, _ in run.log[2:]] == [("c", 5, 1), ("b", 4, 2), ("a", 3, 2)]
    assert [(r[0], r[1]) for r in run.late] == [("a", 1), ("a", 2)]
    run(Batch([row("a", 12, 6), row("a", 13, 7)], watermark=15))
    assert [(r[0], r[1], r[4]) for r, _ in run.log[5:]] == [("a", 7, 3)]


def test_a_row_behind_the_watermark_sees_all_of_its_frame():
    run = Run((counted(TWENTY_MS),))
    run(Batch([row("a", 75)], watermark=100))
    run(Batch([row("a", 94), row("a", 96)], watermark=100))
    assert [(r[2], r[4]) for r, _ in run.log[1:]] == [(at(94), 2), (at(96), 2)]


def test_over_range_a_row_behind_the_watermark_by_a_whole_frame_is_late():
    run = Run((counted(TWENTY_MS),))
    run(Batch([row("a", 75)], watermark=100))
    run(Batch([row("a", 79), row("b", 80), row("b", 81)], watermark=100))
    assert [(r[0], r[2]) for r in run.late] == [("a", at(79)), ("b", at(80))]
    assert [(r[0], r[4]) for r, _ in run.log[1:]] == [("b", 1)]


def test_with_a_time_to_live_a_value_counts_again_that_has_not_come_for_so_long():
    call = OverCallSpec(function="COUNT", frame=ALL_ROWS, arguments=(1,), distinct=True)
    run = Run((over([(call, pa.int64(), "")], ttl=100),))
    for at_, now in enumerate((0, 60, 130, 180, 290)):
        run(Batch([row("a", at_, now if now == 60 else 1)], watermark=at_, now=now))
    assert [r[4] for r, _ in run.log] == [1, 2, 3, 3, 1]
    run(Batch([], watermark=9, now=FAR))
    assert run.state_rows() == 0


def test_an_unbounded_window_takes_no_row_behind_the_watermark():
    run = Run((counted(ALL_ROWS),))
    run(Batch([row("a", 10)], watermark=15))
    run(Batch([row("b", 14), row("b", 15), row("b", 16)], watermark=20))
    assert [r[2] for r in run.late] == [at(14), at(15)]
    assert run.late_count == 2


# -- frames that end behind the current row

LEAD = [(OverCallSpec(function="LEAD", frame=ALL_ROWS, arguments=(1,), constants=("1", "-1")), pa.int64(), "")]


def test_rows_that_are_ahead_by_time_and_by_number_do_not_share_an_operator():
    with pytest.raises(ValueError, match="do not share an operator"):
        over([*AHEAD["next rows"][0], *AHEAD["next time"][0]])


def test_a_row_waits_for_the_next_one_of_its_key_and_its_last_one_for_the_end():
    run = Run((over(LEAD),))
    run(Batch([row("a", 10, 1), row("b", 11, 2), row("a", 30, 3)], watermark=20))
    assert run.log == []
    run(Batch([], watermark=30))
    assert [(r[1], r[4]) for r, _ in run.log] == [(1, 3)]
    run(Batch([row("a", 31, 4)], watermark=1_000_000))
    assert [(r[1], r[4]) for r, _ in run.log[1:]] == [(3, 4)]
    run(Batch([], watermark=END_OF_TIME))
    assert [(r[1], r[4]) for r, _ in run.log[2:]] == [(2, -1), (4, -1)]


def test_a_row_that_nothing_has_been_answered_without_is_on_time():
    run = Run((over(LEAD),))
    run(Batch([row("a", 10, 1)], watermark=50))
    run(Batch([row("a", 9, 2), row("a", 10, 3), row("a", 12, 4), row("b", 5, 5)], watermark=50))
    assert [(r[1], r[4]) for r, _ in run.log] == [(1, 4)]
    assert [r[1] for r in run.late] == [2, 3]


def test_over_range_a_row_that_an_answered_frame_reaches_is_late():
    frame = Frame(rows=False, preceding=20, following=10)
    run = Run((counted(frame),))
    run(Batch([row("a", 80, 1), row("b", 95, 2)], watermark=95))
    assert [(r[1], r[4]) for r, _ in run.log] == [(1, 1)]
    run(Batch([row("a", 90, 3), row("a", 91, 4), row("b", 70, 5), row("b", 65, 6)], watermark=95))
    assert [r[1] for r in run.late] == [3, 6]
    assert [(r[1], r[4]) for r, _ in run.log[1:]] == [(5, 1)]
    run(Batch([], watermark=101))
    assert [(r[1], r[4]) for r, _ in run.log[2:]] == [(4, 2)]


def test_a_row_that_waits_for_another_of_its_key_is_answered_when_the_time_to_live_has_passed():
    calls = [
        *LEAD,
        (OverCallSpec(function="COUNT", frame=Frame(rows=True, preceding=None, following=1)), pa.int64(), ""),
    ]
    run = Run((over(calls, ttl=100),))
    run(Batch([row("a", 1, 1), row("b", 1, 2)], watermark=5, now=10))
    run(Batch([row("a", 10, 3)], watermark=20, now=60))
    run(Batch([], watermark=20, now=109))
    assert [(r[1], r[4], r[5]) for r, _ in run.log] == [(1, 3, 2)]
    run(Batch([row("b", 30, 4)], watermark=40, now=110))
    assert [(r[1], r[4], r[5]) for r, _ in run.log[1:]] == [(2, -1, 1)]
    run(Batch([row("b", 50, 5)], watermark=60, now=160))
    assert [(r[1], r[4], r[5]) for r, _ in run.log[2:]] == [(3, -1, 2), (4, 5, 2)]
    run(Batch([], watermark=60, now=260))
    assert [(r[1], r[4], r[5]) for r, _ in run.log[4:]] == [(5, -1, 2)]
    run(Batch([], watermark=60, now=1000))
    assert run.state_rows() == 0


def test_in_processing_time_frames_are_complete_by_arrival_and_by_the_clock():
    run = Run((over(LEAD, processing=True),))
    run(Batch([row("a", 100, 1), row("a", 100, 2)], now=100))
    run(Batch([row("a", 121, 3)], now=121))
    run(Batch([], now=130, watermark=END_OF_TIME))
    assert [(r[1], r[4]) for r, _ in run.log] == [(1, 2), (2, 3), (3, -1)]
    run = Run((counted(Frame(rows=False, preceding=0, following=20), processing=True),))
    run(Batch([row("a", 100, 1), row("a", 100, 2)], now=100))
    run(Batch([row("a", 120, 3)], now=120))
    assert run.log == []
    run(Batch([], now=121))
    assert [(r[1], r[4]) for r, _ in run.log] == [(1, 3), (2, 3)]
    run(Batch([], now=122, watermark=END_OF_TIME))
    assert [(r[1], r[4]) for r, _ in run.log[2:]] == [(3, 1)]


def test_rows_that_wait_for_time_come_out_so_much_behind_the_watermark():
    calls = AHEAD["next time"][0]
    assert over(calls).output_watermark(100) == 85
    assert over(calls).output_watermark(END_OF_TIME) == END_OF_TIME


# -- processing time


@pytest.mark.parametrize(
    ("frame", "expected"), [(TWO_ROWS, [1, 2, 3, 3]), (ALL_ROWS, [1, 2, 3, 4]), (TWENTY_MS, [2, 2, 2, 1])]
)
def test_in_processing_time_rows_are_answered_at_once_in_the_order_of_arrival(frame, expected):
    run = Run((counted(frame, processing=True),))
    run(Batch([row("a", 100, 1), row("a", 100, 2)], now=100))
    run(Batch([row("a", 121, 3)], now=121))
    run(Batch([row("a", 150, 4)], now=150))
    expected = [2, 2, 1, 1] if frame is TWENTY_MS else expected
    assert [(r[1], r[4]) for r, _ in run.log] == list(zip([1, 2, 3, 4], expected, strict=True))


def test_what_is_kept_of_a_key_is_forgotten_after_its_time_to_live():
    run = Run((counted(ALL_ROWS, processing=True, ttl=100),))
    for now in (0, 99, 199):
        run(Batch([row("a", now)], now=now))
    assert [r[4] for r, _ in run.log] == [1, 2, 1]


@pytest.mark.parametrize("sizes", [1, 5, 40])
@pytest.mark.parametrize("name", ["ROW_NUMBER", "LAG", "LEAD"])
def test_rows_of_one_time_are_in_the_order_of_the_columns_that_part_them(name, sizes):
    frame, arguments = (ALL_ROWS, ()) if name == "ROW_NUMBER" else (TWO_ROWS, (1,))
    call = OverCallSpec(function=name, frame=frame, arguments=arguments)
    run = Run((over([(call, pa.int64(), "")], ties=(1,)),), restart=True)
    rng = random.Random(sizes)
    rows = [(None if i % 7 == 0 else "ab"[i % 2], i, EPOCH + timedelta(milliseconds=i // 10), 0.0) for i in range(40)]
    rng.shuffle(rows)
    for start in range(0, 40, sizes):
        run(Batch([Change(row) for row in rows[start : start + sizes]], watermark=-1))
    run(Batch([], watermark=END_OF_TIME))
    expected = {}
    for key in (None, "a", "b"):
        ids = sorted(row[1] for row in rows if row[0] == key)
        for n, i in enumerate(ids):
            before, behind = (ids[n - 1] if n else None), (ids[n + 1] if n + 1 < len(ids) else None)
            expected[i] = {"ROW_NUMBER": n + 1, "LAG": before, "LEAD": behind}[name]
    assert {row[1]: row[4] for row in run.applied} == expected
