"""GROUP BY without a window."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pytest

from operators.aggregates.functions import AggregateSpec
from operators.aggregates.group_by import GroupBy, GroupPartial
from operators.aggregates.layout import AccumulatorLayout
from operators.names import WEIGHT
from operators.sql import Sql
from operators.time import Clock
from tests.operators.properties import (
    Batch,
    Change,
    Row,
    Run,
    every,
    holds_cut,
    holds_oracle,
    holds_restart,
    holds_undo,
    no_state,
)
from tests.operators.shared_hashes import share_hashes

INPUT = pa.schema(
    [
        ("c0", pa.string()),
        ("c1", pa.int64()),
        ("c2", pa.float64()),
        ("c3", pa.decimal128(10, 2)),
        ("c4", pa.bool_()),
        ("c5", pa.int32()),
    ]
)
WIDE = pa.decimal128(38, 2)

SQUARES = "(SUM(c5 * c5) * COUNT(c5) - SUM(c5) * SUM(c5))"

AGGREGATES = [
    (AggregateSpec(function="COUNT"), pa.int64(), "COUNT(*)"),
    (AggregateSpec(function="COUNT", arguments=(1,)), pa.int64(), "COUNT(c1)"),
    (AggregateSpec(function="COUNT", filter=4), pa.int64(), "COUNT(*) FILTER (WHERE c4)"),
    (AggregateSpec(function="SUM", arguments=(1,)), pa.int64(), "CAST(SUM(c1) AS BIGINT)"),
    (AggregateSpec(function="SUM", arguments=(5,)), pa.int32(), "CAST(SUM(c5) AS INTEGER)"),
    (AggregateSpec(function="SUM", arguments=(2,)), pa.float64(), "SUM(c2)"),
    (AggregateSpec(function="SUM", arguments=(3,)), WIDE, "SUM(c3)"),
    (AggregateSpec(function="SUM", arguments=(3,), filter=4), WIDE, "SUM(c3) FILTER (WHERE c4)"),
    (AggregateSpec(function="AVG", arguments=(5,)), pa.int32(), "CAST(SUM(c5) // COUNT(c5) AS INTEGER)"),
    (AggregateSpec(function="AVG", arguments=(2,)), pa.float64(), "AVG(c2)"),
    (AggregateSpec(function="MIN", arguments=(1,)), pa.int64(), "MIN(c1)"),
    (AggregateSpec(function="MAX", arguments=(0,)), pa.string(), "MAX(c0)"),
    (AggregateSpec(function="MAX", arguments=(3,), filter=4), pa.decimal128(10, 2), "MAX(c3) FILTER (WHERE c4)"),
    (AggregateSpec(function="MIN", arguments=(2,)), pa.float64(), "MIN(c2)"),
    (AggregateSpec(function="COUNT", arguments=(1,), distinct=True), pa.int64(), "COUNT(DISTINCT c1)"),
    (AggregateSpec(function="SUM", arguments=(5,), distinct=True), pa.int32(), "CAST(SUM(DISTINCT c5) AS INTEGER)"),
    (
        AggregateSpec(function="COUNT", arguments=(1,), distinct=True, filter=4),
        pa.int64(),
        "COUNT(DISTINCT c1) FILTER (WHERE c4)",
    ),
    (AggregateSpec(function="VAR_POP", arguments=(5,)), pa.float64(), "VAR_POP(c5)"),
    (AggregateSpec(function="STDDEV_SAMP", arguments=(5,)), pa.float64(), "STDDEV_SAMP(c5)"),
    (
        AggregateSpec(function="VAR_SAMP", arguments=(5,)),
        pa.int32(),
        f"CAST({SQUARES} // NULLIF(COUNT(c5) * (COUNT(c5) - 1), 0) AS INTEGER)",
    ),
    (
        AggregateSpec(function="STDDEV_POP", arguments=(1,)),
        pa.int64(),
        f"CAST(TRUNC(SQRT({SQUARES.replace('c5', 'c1')} // NULLIF(COUNT(c1) * COUNT(c1), 0))) AS BIGINT)",
    ),
]


SPREADS = [
    (AggregateSpec(function="VAR_POP", arguments=(2,)), pa.float64(), "VAR_POP(c2)"),
    (
        AggregateSpec(function="STDDEV_SAMP", arguments=(2,), filter=4),
        pa.float64(),
        "STDDEV_SAMP(c2) FILTER (WHERE c4)",
    ),
    (
        AggregateSpec(function="VAR_SAMP", arguments=(2,), distinct=True),
        pa.float64(),
        "VAR_SAMP(DISTINCT c2)",
    ),
    (AggregateSpec(function="VAR_SAMP", arguments=(3,)), pa.float64(), "VAR_SAMP(CAST(c3 AS DOUBLE))"),
    (AggregateSpec(function="AVG", arguments=(2,), filter=4), pa.float64(), "AVG(c2) FILTER (WHERE c4)"),
]
"""Sums and deviations of numbers that are not whole."""

LISTS = [
    (
        AggregateSpec(function="LISTAGG", arguments=(0,), constants=("'{|}'",)),
        pa.string(),
        "STRING_AGG(c0, '{|}' ORDER BY c0)",
    ),
    (
        AggregateSpec(function="LISTAGG", arguments=(0,), filter=4),
        pa.string(),
        "STRING_AGG(c0, ',' ORDER BY c0) FILTER (WHERE c4)",
    ),
    (
        AggregateSpec(function="ARRAY_AGG", arguments=(1,)),
        pa.list_(pa.int64()),
        "LIST(c1 ORDER BY c1 NULLS LAST)",
    ),
    (
        AggregateSpec(function="ARRAY_AGG", arguments=(2,), filter=4),
        pa.list_(pa.float64()),
        "LIST(c2 ORDER BY c2 NULLS LAST) FILTER (WHERE c4)",
    ),
    (
        AggregateSpec(function="JSON_ARRAYAGG", arguments=(1,), constants=("CAST({0} AS VARCHAR)",)),
        pa.string(),
        "'[' || COALESCE(STRING_AGG(CAST(c1 AS VARCHAR), ',' ORDER BY c1), '') || ']'",
    ),
    (
        AggregateSpec(function="JSON_ARRAYAGG", arguments=(0,), constants=("CAST(to_json({0}) AS VARCHAR)", "'null'")),
        pa.string(),
        "'[' || STRING_AGG(COALESCE(CAST(to_json(c0) AS VARCHAR), 'null'), ',' ORDER BY c0 NULLS LAST) || ']'",
    ),
]
"""Lists of the values of a group, in the order of the values where rows are retracted."""

WHOLES = [
    (
        AggregateSpec(function="PERCENTILE", arguments=(1,), constants=("0.3",)),
        pa.float64(),
        "QUANTILE_CONT(CAST(c1 AS DOUBLE), 0.3)",
    ),
    (
        AggregateSpec(function="PERCENTILE", arguments=(2,), constants=("0.0", "0.5", "0.99"), filter=4),
        pa.list_(pa.float64()),
        "QUANTILE_CONT(c2, [0.0, 0.5, 0.99]) FILTER (WHERE c4)",
    ),
    (
        AggregateSpec(function="PERCENTILE", arguments=(1,), constants=("0.5",), distinct=True),
        pa.float64(),
        "QUANTILE_CONT(DISTINCT CAST(c1 AS DOUBLE), 0.5)",
    ),
    (AggregateSpec(function="BIT_AND", arguments=(1,)), pa.int64(), "BIT_AND(c1)"),
    (AggregateSpec(function="BIT_OR", arguments=(5,), filter=4), pa.int32(), "BIT_OR(c5) FILTER (WHERE c4)"),
    (AggregateSpec(function="BIT_XOR", arguments=(5,)), pa.int32(), "BIT_XOR(c5)"),
    (AggregateSpec(function="BIT_XOR", arguments=(1,), distinct=True), pa.int64(), "BIT_XOR(DISTINCT c1)"),
    (
        AggregateSpec(function="COLLECT", arguments=(1,)),
        pa.map_(pa.int64(), pa.int32()),
        "COALESCE(CAST(HISTOGRAM(c1) AS MAP(BIGINT, INTEGER)), MAP {})",
    ),
    (
        AggregateSpec(function="COLLECT", arguments=(0,), distinct=True, filter=4),
        pa.map_(pa.string(), pa.int32()),
        "COALESCE(CAST(HISTOGRAM(DISTINCT c0) FILTER (WHERE c4) AS MAP(VARCHAR, INTEGER)), MAP {})",
    ),
]
"""Answers that depend on all values of a group, and on nothing but them."""

DISTINCT_LISTS = [
    (
        AggregateSpec(function="LISTAGG", arguments=(0,), distinct=True, constants=("'; '",)),
        pa.string(),
        "STRING_AGG(DISTINCT c0, '; ' ORDER BY c0)",
    ),
    (
        AggregateSpec(function="ARRAY_AGG", arguments=(1,), distinct=True),
        pa.list_(pa.int64()),
        "LIST(DISTINCT c1 ORDER BY c1 NULLS LAST)",
    ),
]
MIXED = [AGGREGATES[1], AGGREGATES[10], AGGREGATES[14], *LISTS, *DISTINCT_LISTS, *WHOLES]


def grouping(keys, aggregates, append=False, ttl=0, schema=INPUT):
    partial = GroupPartial(input=schema, keys=keys, aggregates=tuple(a for a, _, _ in aggregates), append=append)
    types = [*(schema.field(k).type for k in keys), *(t for _, t, _ in aggregates)]
    output = pa.schema([(f"c{i}", t) for i, t in enumerate(types)])
    return (partial, GroupBy(partial=partial, output=output, ttl=ttl))


def query(keys, aggregates) -> str:
    names = [f"c{k}" for k in keys]
    having = "" if keys else " HAVING COUNT(*) > 0"
    return (
        f"SELECT {', '.join(names + [q for _, _, q in aggregates])} FROM t0 GROUP BY {', '.join(names) or '()'}{having}"
    )


def generated(seed: int, batches: int, append: bool) -> list[Batch]:
    rng = random.Random(seed)
    there: list[Row] = []
    result = []
    for _ in range(batches):
        changes = []
        for _ in range(rng.choice([0, 1, 8, 30])):
            if there and not append and rng.random() < 0.45:
                changes.append(Change(there.pop(rng.randrange(len(there))), -1))
            else:
                row = (
                    rng.choice(["a", "", "c", None]),
                    rng.choice([None, 1, 2, 3, rng.randrange(9)]),
                    rng.choice([None, 0.5, -1.25, rng.randrange(100) / 8]),
                    rng.choice([None, Decimal("1.10"), Decimal(rng.randrange(-500, 500)) / 100]),
                    rng.choice([None, True, False]),
                    rng.choice([None, rng.randrange(-50, 50)]),
                )
                there.append(row)
                changes.append(Change(row))
        result.append(Batch(changes))
    return result


@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize("keys", [(0,), (0, 4), ()])
def test_groups_equal_a_batch_query(keys, append):
    run = holds_oracle(
        grouping(keys, AGGREGATES, append), generated(7, 25, append), query(keys, AGGREGATES), restart=append
    )
    assert run.unmatched_retractions == 0


@pytest.mark.parametrize("place", range(len(AGGREGATES)))
def test_each_aggregate_alone_equals_a_batch_query(place):
    chosen = AGGREGATES[place : place + 1]
    holds_oracle(grouping((0,), chosen), generated(place, 10, append=False), query((0,), chosen))


@pytest.mark.parametrize("keys", [(0,), (4,), ()])
def test_lists_of_values_follow_retracted_rows(keys):
    run = holds_oracle(grouping(keys, MIXED), generated(8, 25, append=False), query(keys, MIXED), restart=True)
    assert run.unmatched_retractions == 0


@pytest.mark.parametrize("keys", [(4,), ()])
def test_lists_of_distinct_values_of_rows_that_are_only_added_are_in_the_order_of_the_values(keys):
    chosen = [AGGREGATES[0], *DISTINCT_LISTS]
    holds_oracle(grouping(keys, chosen, append=True), generated(9, 25, append=True), query(keys, chosen))


@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize("place", range(len(WHOLES)))
def test_each_answer_from_all_values_equals_a_batch_query(place, append):
    chosen = WHOLES[place : place + 1]
    holds_oracle(grouping((4,), chosen, append), generated(place, 12, append), query((4,), chosen), restart=True)


PAIRS = pa.schema([("c0", pa.string()), ("c1", pa.struct([("f0", pa.string()), ("f1", pa.int64())]))])
OBJECT = AggregateSpec(function="JSON_OBJECTAGG", arguments=(1,), constants=("CAST({0}.f1 AS VARCHAR)", "'null'"))


@pytest.mark.parametrize("append", [False, True])
def test_an_object_has_a_member_for_each_key_and_of_several_values_the_greatest(append):
    run = Run(grouping((0,), [(OBJECT, pa.string(), "")], append, schema=PAIRS))

    def pair(key: str, value: int | None, weight: int = 1) -> Change:
        return Change(("ann", {"f0": key, "f1": value}), weight)

    run(Batch([pair("b", 1), pair("a", 2), pair('"', None), pair("b", 3), Change(("bob", None))]))
    assert run.applied == {("ann", '{"\\"":null,"a":2,"b":3}'): 1, ("bob", "{}"): 1}
    if not append:
        run(Batch([pair("b", 3, -1), pair("a", 2, -1)]))
        assert run.applied == {("ann", '{"\\"":null,"b":1}'): 1, ("bob", "{}"): 1}


@pytest.mark.parametrize("place", range(len(LISTS + DISTINCT_LISTS)))
def test_each_list_alone_equals_a_batch_query(place):
    chosen = [*LISTS, *DISTINCT_LISTS][place : place + 1]
    holds_oracle(grouping((4,), chosen), generated(place, 10, append=False), query((4,), chosen))


def test_groups_do_not_depend_on_how_the_log_is_cut():
    changes = [c for batch in generated(3, 4, append=False) for c in batch.changes]
    holds_cut(grouping((0,), [*AGGREGATES, *MIXED]), changes, [every(2), every(7), every(1000)])


def test_groups_leave_nothing_when_everything_is_retracted():
    holds_undo(grouping((0, 4), [*AGGREGATES, *MIXED]), generated(4, 10, append=False))


def test_groups_survive_a_restart_bit_by_bit():
    holds_restart(grouping((0,), [*AGGREGATES, *MIXED]), generated(5, 15, append=False))


@pytest.fixture
def colliding(monkeypatch):
    """Only four different hashes, so that most keys share one."""
    share_hashes(monkeypatch)


@pytest.mark.usefixtures("colliding")
@pytest.mark.parametrize("append", [False, True])
def test_keys_that_share_a_hash_are_kept_apart(append):
    batches = generated(6, 10, append)
    chosen = AGGREGATES if append else [*AGGREGATES, *MIXED]
    holds_oracle(grouping((0, 4), chosen, append), batches, query((0, 4), chosen))
    if not append:
        holds_undo(grouping((0, 4), chosen), batches)


SUM = [(AggregateSpec(function="SUM", arguments=(1,)), pa.int64(), "")]


def row(user: str | None, value: int | None) -> Row:
    return (user, value, None, None, None, None)


def test_a_group_ends_when_its_last_row_is_retracted():
    run = Run(grouping((0,), SUM))
    run(Batch([Change(row("ann", 5))]))
    run(Batch([Change(row("ann", -5))]))
    run(Batch([Change(row("ann", 5), -1), Change(row("ann", -5), -1)]))
    assert run.log == [(("ann", 5), 1), (("ann", 5), -1), (("ann", 0), 1), (("ann", 0), -1)]


def test_a_batch_that_changes_no_answer_says_nothing():
    run = Run(grouping((0,), SUM))
    run(Batch([Change(row("ann", 5))]))
    run(Batch([Change(row("ann", 2)), Change(row("ann", -2))]))
    assert run.log == [(("ann", 5), 1)]


def test_a_retraction_for_a_key_without_state_is_dropped_and_counted():
    run = Run(grouping((0,), SUM))
    run(Batch([Change(row("ann", 5), -1)]))
    assert (run.log, run.unmatched_retractions, run.state_rows()) == ([], 1, 0)


VALUES_KEPT = [
    (AggregateSpec(function="COUNT"), pa.int64(), "COUNT(*)"),
    (AggregateSpec(function="COUNT", arguments=(1,), distinct=True), pa.int64(), "COUNT(DISTINCT c1)"),
    (AggregateSpec(function="MAX", arguments=(1,)), pa.int64(), "MAX(c1)"),
    (AggregateSpec(function="ARRAY_AGG", arguments=(1,)), pa.list_(pa.int64()), "LIST(c1 ORDER BY c1)"),
    (AggregateSpec(function="LAST_VALUE", arguments=(1,)), pa.int64(), "MAX(c1)"),
]
"""Aggregates that keep the values of a group beside it."""


@pytest.mark.parametrize("hashes", ["apart", "shared"])
@pytest.mark.parametrize("gone", [[6], [6, 8]])
def test_a_row_beside_a_retraction_without_state_leaves_no_value_behind(hashes, gone, monkeypatch):
    """As after a time to live, when the old and the new version of a row come in one batch."""
    if hashes == "shared":
        share_hashes(monkeypatch)
    run = Run(grouping((0,), VALUES_KEPT))
    run(Batch([Change(row("bob", 9))]))
    before = run.state_rows()
    run(Batch([Change(row("ann", 7)), *(Change(row("ann", value), -1) for value in gone)]))
    assert run.state_rows() == before
    run(Batch([Change(row("ann", 3)), Change(row("bob", 1))]))
    assert run.applied == Counter([("ann", 1, 1, 3, (3,), 3), ("bob", 2, 2, 9, (1, 9), 1)])


@pytest.mark.parametrize("hashes", ["apart", "shared"])
@pytest.mark.parametrize("come", [[], [9]])
def test_a_group_that_ends_by_the_retraction_of_another_row_leaves_no_value_behind(hashes, come, monkeypatch):
    """As after a time to live, when a row of before is deleted that the group no longer has."""
    if hashes == "shared":
        share_hashes(monkeypatch)
    run = Run(grouping((0,), VALUES_KEPT))
    run(Batch([Change(row("bob", 9))]))
    before = run.state_rows()
    run(Batch([Change(row("ann", 7))]))
    gone = [Change(row("ann", value), -1) for value in (6, 5)[: 1 + len(come)]]
    run(Batch([*gone, *(Change(row("ann", value)) for value in come)]))
    assert run.state_rows() == before
    run(Batch([Change(row("ann", 3))]))
    assert run.applied == Counter([("ann", 1, 1, 3, (3,), 3), ("bob", 1, 1, 9, (9,), 9)])


def test_values_without_a_key_are_forgotten_with_their_row():
    run = Run(grouping((), VALUES_KEPT))
    run(Batch([Change(row("ann", 7)), Change(row("ann", 6), -1)]))
    run(Batch([Change(row("ann", 3))]))
    assert run.applied == Counter([(1, 1, 3, (3,), 3)])


def test_a_group_is_forgotten_exactly_when_its_time_to_live_has_passed():
    run = Run(grouping((0,), SUM, ttl=1000))
    run(Batch([Change(row("ann", 5))], now=0))
    run(Batch([Change(row("ann", 1))], now=999))
    run(Batch([Change(row("ann", 1))], now=1999))
    assert run.log == [(("ann", 5), 1), (("ann", 5), -1), (("ann", 6), 1), (("ann", 1), 1)]


def test_a_refresh_travels_on_as_a_row_of_weight_zero():
    run = Run(grouping((0,), SUM, ttl=1000))
    run(Batch([Change(row("ann", 5))], now=0))
    run(Batch([Change(row("ann", 0))], now=500))
    run(Batch([Change(row("ann", 5), 0)], now=1400))
    assert run.log == [(("ann", 5), 1), (("ann", 5), 0), (("ann", 5), 0)]


def test_state_with_a_time_to_live_is_swept():
    run = Run(grouping((0,), [*AGGREGATES, *MIXED], ttl=1000))
    for at in range(20):
        run(Batch([Change(row(f"user {at}", at))], now=at * 100))
    run(Batch([], now=10_000))
    assert run.state_rows() == 0


def test_a_value_whose_time_to_live_has_passed_is_missing_from_the_next_list():
    run = Run(grouping((0,), [LISTS[2]], ttl=1000))
    run(Batch([Change(row("ann", 5))], now=0))
    run(Batch([Change(row("ann", 7))], now=600))
    run(Batch([Change(row("ann", 6))], now=1200))
    run(Batch([Change(row("ann", 5), -1)], now=1300))
    assert run.applied == {("ann", (6, 7)): 1}
    assert [row for row, weight in run.log if weight > 0][:3] == [("ann", (5,)), ("ann", (5, 7)), ("ann", (6, 7))]


def test_a_sum_beyond_its_type_wraps_around_as_in_flink():
    run = Run(grouping((0,), SUM))
    run(Batch([Change(row("ann", 2**63 - 1)), Change(row("ann", 1))]))
    assert run.log == [(("ann", -(2**63)), 1)]


def test_an_average_of_decimals_is_rounded_half_up():
    average = [(AggregateSpec(function="AVG", arguments=(3,)), pa.decimal128(38, 6), "")]
    run = Run(grouping((), average))
    run(Batch([Change((None, None, None, Decimal(v), None, None)) for v in ("0.01", "0.02", "0.02")]))
    assert run.log == [((Decimal("0.016667"),), 1)]
    run = Run(grouping((), average))
    run(Batch([Change((None, None, None, Decimal(v), None, None)) for v in ("-0.01", "-0.02", "-0.02")]))
    assert run.log == [((Decimal("-0.016667"),), 1)]


def test_a_group_comes_out_under_one_key_though_equal_keys_differ_in_their_bits():
    run = Run(grouping((2,), SUM))
    keys: list[str] = []
    for zero in (0.0, -0.0, -0.0):
        changes = run(Batch([Change((None, 1, zero, None, None, None))]))
        keys += map(str, changes.column("c0").to_pylist())
    assert keys == ["0.0"] * 5


MOST, LEAST = Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36 + ".99")


def wide(*aggregates, append):
    """Aggregates of one column DECIMAL(38, 2)."""
    calls = [
        (AggregateSpec(function=name, arguments=(0,)), pa.decimal128(38, 6) if name == "AVG" else WIDE, "")
        for name in aggregates
    ]
    return grouping((), calls, append=append, schema=pa.schema([("c0", WIDE)]))


@pytest.mark.parametrize("append", [True, False], ids=["append", "retract"])
def test_a_sum_of_decimals_is_null_while_it_has_too_many_digits_and_exact_before_and_after(append):
    run = Run(wide("SUM", append=append))
    answers = []
    for values in [(MOST,), (MOST, MOST), (LEAST, Decimal("-0.01")), (LEAST,), (Decimal("0.02"), None)]:
        run(Batch([Change((v,)) for v in values]))
        answers.append(next(iter(run.applied))[0])
    assert answers == [MOST, None, None, Decimal("9" * 36 + ".98"), None]


@pytest.mark.parametrize("function", ["VAR_POP", "VAR_SAMP"])
def test_a_variance_that_its_type_cannot_hold_is_null(function):
    wide = pa.schema([("c0", pa.decimal128(20, 0))])
    spread = [(AggregateSpec(function=function, arguments=(0,)), pa.decimal128(38, 6), "")]
    run = Run(grouping((), spread, schema=wide))
    run(Batch([Change((Decimal(n),)) for n in (1, 3)]))
    assert [row for row, weight in run.applied.items() if weight] == [(Decimal(1 if function == "VAR_POP" else 2),)]
    run(Batch([Change((Decimal(n),)) for n in (99999999999999999999, -99999999999999999999)]))
    assert [row for row, weight in run.applied.items() if weight] == [(None,)]


def test_wide_decimals_are_retracted_exactly():
    run = Run(wide("SUM", "AVG", append=False))
    run(Batch([Change((Decimal("-1.25"),), 3), Change((MOST,)), Change((Decimal("0.50"),))]))
    run(Batch([Change((MOST,), -1), Change((Decimal("-1.25"),), -1)]))
    assert run.applied == {(Decimal("-2.00"), Decimal("-0.666667")): 1}


ORDERED = [
    (AggregateSpec(function="FIRST_VALUE", arguments=(1,)), pa.int64(), ""),
    (AggregateSpec(function="LAST_VALUE", arguments=(1,)), pa.int64(), ""),
    (AggregateSpec(function="LISTAGG", arguments=(0,), constants=("'{|}'",)), pa.string(), ""),
    (AggregateSpec(function="ARRAY_AGG", arguments=(1,)), pa.list_(pa.int64()), ""),
    (AggregateSpec(function="JSON_ARRAYAGG", arguments=(1,), constants=("CAST({0} AS VARCHAR)",)), pa.string(), ""),
]


def test_aggregates_that_depend_on_the_order_follow_the_arrival():
    run = Run(grouping((), ORDERED, append=True))
    run(Batch([Change(row("a", None)), Change(row("b", 2))]))
    run(Batch([Change(row(None, 3)), Change(row("c", None))]))
    assert +run.applied == {(2, 3, "a{|}b{|}c", (None, 2, 3, None), "[2,3]"): 1}


def test_a_list_that_is_retracted_is_the_one_that_came_out():
    run = Run(grouping((0,), [LISTS[2]]))
    run(Batch([Change(row("ann", 2)), Change(row("ann", None))]))
    run(Batch([Change(row("ann", 1)), Change(row("ann", 2))]))
    run(Batch([Change(row("ann", 2), -1), Change(row("bob", 7))]))
    before, after, last = ("ann", (2, None)), ("ann", (1, 2, 2, None)), ("ann", (1, 2, None))
    assert [c for c in run.log if c[0][0] == "ann"] == [(before, 1), (before, -1), (after, 1), (after, -1), (last, 1)]


ENDS = ORDERED[:2]


def first_and_last(batches: Sequence[Batch]) -> Counter[Row]:
    """The first and the last value of each c0, where a retraction takes the oldest row of its value."""
    there: dict[object, list[object]] = {}
    rows: Counter[object] = Counter()
    for change in (change for batch in batches for change in batch.changes):
        key, value = change.row[:2]
        rows[key] += change.weight
        if value is not None and change.weight > 0:
            there.setdefault(key, []).append(value)
        elif value is not None:
            there[key].remove(value)
    ends = {key: there.get(key) or [None] for key in +rows}
    return Counter((key, values[0], values[-1]) for key, values in ends.items())


@pytest.mark.parametrize("seed", range(4))
def test_the_first_and_last_value_follow_the_arrival_of_retracted_rows(seed):
    run, opened = Run(grouping((0,), ENDS)), Run(grouping((0,), ENDS), restart=True)
    batches = generated(seed, 25, append=False)
    for at, batch in enumerate(batches):
        run(batch)
        opened(batch)
        assert run.applied == first_and_last(batches[: at + 1])
    assert run.log == opened.log


def test_a_row_that_is_retracted_takes_the_oldest_of_equal_values_with_it():
    run = Run(grouping((), ENDS))
    run(Batch([Change(row("a", 5)), Change(row("b", 7)), Change(row("c", 5))]))
    run(Batch([Change(row("a", 5), -1)]))
    assert run.applied == {(7, 5): 1}
    run(Batch([Change(row("c", 5), -1), Change(row("c", None))]))
    assert run.applied == {(7, 7): 1}


@pytest.mark.usefixtures("colliding")
def test_the_values_of_keys_that_share_a_hash_are_kept_apart():
    run = Run(grouping((0,), ENDS))
    batches = generated(9, 12, append=False)
    for at, batch in enumerate(batches):
        run(batch)
        assert run.applied == first_and_last(batches[: at + 1])


def test_the_first_value_of_a_key_is_forgotten_after_its_time_to_live():
    run = Run(grouping((0,), ENDS, ttl=1000))
    for now, value in ((0, 5), (600, 7), (1200, 6), (1300, 8)):
        run(Batch([Change(row("ann", value))], now=now))
    run(Batch([Change(row("ann", 8), -1)], now=1400))
    assert run.applied == {("ann", 5, 6): 1}
    run(Batch([], now=9000))
    assert run.state_rows() == 0


def test_partials_of_the_first_and_last_value_cannot_be_merged_where_rows_are_retracted():
    with pytest.raises(ValueError, match="FIRST_VALUE has no totals that could be merged in any order"):
        AccumulatorLayout(INPUT, [ENDS[0][0]], append=False)


FLAGS = pa.schema([("c0", pa.string()), ("c1", pa.int64()), ("c2", pa.int64()), ("c3", pa.bool_()), ("c4", pa.bool_())])
BY_FLAG = [
    (
        AggregateSpec(function="COUNT", arguments=(value,), distinct=True, filter=flag),
        pa.int64(),
        f"COUNT(DISTINCT c{value}) FILTER (WHERE c{flag})",
    )
    for value in (1, 2)
    for flag in (3, 4)
]


@pytest.mark.parametrize("append", [False, True])
def test_distinct_values_under_several_filters_equal_a_batch_query(append):
    rng = random.Random(3)
    there: list[Row] = []
    batches = []
    for _ in range(12):
        changes = []
        for _ in range(20):
            if there and not append and rng.random() < 0.4:
                changes.append(Change(there.pop(rng.randrange(len(there))), -1))
                continue
            values = rng.choice([None, 1, 2, 3]), rng.choice([None, 1, 2, 3])
            flags = rng.choice([None, True, False]), rng.choice([None, True, False])
            there.append((rng.choice(["a", "b"]), *values, *flags))
            changes.append(Change(there[-1]))
        batches.append(Batch(changes))
    holds_oracle(grouping((0,), BY_FLAG, append, schema=FLAGS), batches, query((0,), BY_FLAG))


def test_a_value_travels_once_for_all_filters_and_shares_its_column_with_values_of_its_type():
    partial, _ = grouping((0,), BY_FLAG, append=True, schema=FLAGS)
    rows = pa.table({"c0": ["a"], "c1": [7], "c2": [8], "c3": [True], "c4": [True], WEIGHT: [1]})
    step = partial.advance(no_state(), [rows], Clock(0, 0, 0), Sql())
    # Key, tag, number of rows, value, how often it came under either filter, weight.
    assert step.changes.num_columns == 7
    assert sorted(zip(*(step.changes.column(i).to_pylist() for i in (1, 3, 4, 5)), strict=True), key=str) == [
        (0, None, 0, 0),
        (1, 7, 1, 1),
        (2, 8, 1, 1),
    ]


def test_a_value_is_kept_once_for_all_filters():
    run = Run(grouping((0,), BY_FLAG, schema=FLAGS))
    run(Batch([Change(("a", 7, 8, True, True)), Change(("a", 7, 8, True, False)), Change(("a", 9, 8, None, True))]))
    # The group, and the values 7, 9 and 8.
    assert run.state_rows() == 4
    run(Batch([Change(("a", 7, 8, True, True), -1), Change(("a", 9, 8, None, True), -1)]))
    assert run.applied == {("a", 1, 0, 1, 0): 1}
    assert run.state_rows() == 3


OF_ONE_COLUMN = [
    (
        AggregateSpec(function=function, arguments=(1,), distinct=distinct, filter=flag, constants=constants),
        type_,
        f"{text} FILTER (WHERE {'true' if flag is None else f'c{flag}'})",
    )
    for flag in (None, 3, 4)
    for function, distinct, constants, type_, text in (
        ("COUNT", True, (), pa.int64(), "COUNT(DISTINCT c1)"),
        ("MIN", False, (), pa.int64(), "MIN(c1)"),
        ("PERCENTILE", False, ("0.5",), pa.float64(), "QUANTILE_CONT(c1, 0.5)"),
    )
]


def test_extremes_and_percentiles_under_several_filters_share_values_and_equal_a_batch_query():
    rng = random.Random(5)
    there: list[Row] = []
    batches = []
    for _ in range(12):
        changes = []
        for _ in range(15):
            if there and rng.random() < 0.4:
                changes.append(Change(there.pop(rng.randrange(len(there))), -1))
                continue
            flags = rng.choice([None, True, False]), rng.choice([None, True, False])
            there.append((rng.choice(["a", "b"]), rng.choice([None, 1, 2, 3, 9]), None, *flags))
            changes.append(Change(there[-1]))
        batches.append(Batch(changes))
    kernels = grouping((0,), OF_ONE_COLUMN, schema=FLAGS)
    assert len(kernels[1].traces()) == 2
    holds_oracle(kernels, batches, query((0,), OF_ONE_COLUMN))
