"""What is written is read again as it was, and the fast way reads what the exact way reads."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Context
from decimal import Decimal as D
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from service.formats.json.options import JsonOptions
from service.formats.json.reference import Unreadable, reference_record
from service.plan import types as t
from service.plan.table import Format
from service.plan.types import DataType
from tests.formats.wire import changes, decode, encode, records, table

TYPES: list[DataType] = [
    *(t.BOOLEAN, t.TINYINT, t.SMALLINT, t.INT, t.BIGINT, t.FLOAT, t.DOUBLE, t.STRING, t.BYTES, t.DATE),
    *(t.Text(5), t.Decimal(10, 2), t.Decimal(38, 18), t.Decimal(38, 0), t.Decimal(5, 5)),
    *(t.Time(0), t.Time(3), t.Timestamp(0), t.Timestamp(3), t.Timestamp(6), t.TimestampLtz(3), t.TimestampLtz(6)),
    t.Array(t.DOUBLE),
    t.Array(t.Array(t.STRING)),
    t.Map(t.STRING, t.Decimal(20, 4)),
    t.Map(t.STRING, t.Array(t.INT)),
    t.Row(("x", "y"), (t.INT, t.Timestamp(3))),
    t.Array(t.Row(("x", "Y"), (t.STRING, t.Map(t.STRING, t.BIGINT)))),
    t.Row(("r",), (t.Row(("s",), (t.BYTES,)),)),
]
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
WIDE = Context(prec=60)
FEW = settings(deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])


def values(type_: DataType) -> st.SearchStrategy[Any]:
    """Any value of a type, or None."""
    return st.none() | _values(type_)


def _values(type_: DataType) -> st.SearchStrategy[Any]:
    match type_:
        case t.Simple("BOOLEAN"):
            return st.booleans()
        case t.Simple("TINYINT" | "SMALLINT" | "INT" | "BIGINT" as name):
            top = 2 ** {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}[name]
            return st.integers(-top, top - 1)
        case t.Simple("FLOAT"):
            return st.floats(width=32, allow_nan=False)
        case t.Simple("DOUBLE"):
            return st.floats(allow_nan=False)
        case t.Simple("STRING") | t.Text():
            return NAMES | st.sampled_from(["1.50", "{}", "null", "true", "[1, 2]", "NaN", "-0", "1e5", "2020-01-01"])
        case t.Simple("BYTES"):
            return st.binary(max_size=9)
        case t.Simple("DATE"):
            return st.dates(date(1, 1, 1))
        case t.Decimal(precision, scale):
            top = 10**precision - 1
            return st.integers(-top, top).map(lambda n: D(n).scaleb(-scale, WIDE))
        case t.Time(precision):
            return st.times().map(lambda v: _cut(v, precision))
        case t.Timestamp(precision) | t.TimestampLtz(precision):
            return st.datetimes(datetime(1, 1, 1)).map(lambda v: _cut(v, precision))
        case t.Array(element):
            return st.lists(values(element), max_size=3)
        case t.Map(_, value):
            return st.dictionaries(NAMES, values(value), max_size=3).map(lambda d: list(d.items()))
        case t.Row(names, types):
            return st.tuples(*map(values, types)).map(lambda row: dict(zip(names, row, strict=True)))
    raise AssertionError(type_)


def _cut(value: Any, precision: int) -> Any:
    unit = 10 ** (6 - precision)
    return value.replace(microsecond=value.microsecond // unit * unit)


ROWS = st.tuples(*map(values, TYPES))
COLUMNS = {f"c{i}": type_ for i, type_ in enumerate(TYPES)}
JSON = Format("json")
SINKS = {
    "json": table(COLUMNS),
    "json in ISO, plain": table(
        COLUMNS, options={"timestamp-format.standard": "ISO-8601", "encode.decimal-as-plain-number": "true"}
    ),
    "json without nulls": table(COLUMNS, options={"encode.ignore-null-fields": "true"}),
    "debezium-json": table({"key": t.INT, **COLUMNS}, "debezium-json", key=["key"]),
    "debezium-json as Flink": table(
        {"key": t.INT, **COLUMNS}, "debezium-json", {"tailrace.update": "d-c"}, key=["key"]
    ),
    "changelog-json": table({"key": t.INT, **COLUMNS}, "changelog-json", key=["key"]),
    "upsert": table({"key": t.INT, **COLUMNS}, kind="upsert-kafka", key=["key"], key_format=JSON),
}
APPEND = [name for name in SINKS if name.startswith("json")]
RETRACT = [name for name in SINKS if name.startswith(("debezium", "changelog"))]


def _read_again(name: str, *given_rows: tuple[int, Any]) -> Any:
    sink = SINKS[name]
    written = encode(sink, *given_rows)
    found = decode(sink, records(*written["value"].to_pylist(), key=written["key"].to_pylist()))
    assert found.dead.to_pylist() == []
    return found.changes


@pytest.mark.parametrize("name", APPEND)
@FEW
@given(st.lists(ROWS, min_size=1, max_size=4))
def test_added_rows_come_back(name, rows):
    if "without nulls" in name:
        rows = [_without_nested_nulls(row) for row in rows]
    wanted = changes(SINKS[name], *((1, row) for row in rows))
    assert _read_again(name, *((1, row) for row in rows)).equals(wanted)


def _without_nested_nulls(row: Any) -> Any:
    return [None if isinstance(x, t.Map | t.Array) else cell for cell, x in zip(row, TYPES, strict=True)]


@pytest.mark.parametrize("name", RETRACT)
@FEW
@given(st.lists(st.tuples(st.sampled_from(["insert", "delete", "update"]), ROWS, ROWS), min_size=1, max_size=3))
def test_changes_come_back(name, happened):
    given_rows: list[tuple[int, Any]] = []
    for key, (what, before, after) in enumerate(happened):
        if what != "insert":
            given_rows.append((-1, (key, *before)))
        if what != "delete":
            given_rows.append((1, (key, *after)))
    assert _read_again(name, *given_rows).equals(changes(SINKS[name], *given_rows))


@FEW
@given(st.lists(st.tuples(st.booleans(), ROWS), min_size=1, max_size=3))
def test_upserts_come_back_as_the_row_or_the_end_of_a_key(happened):
    given_rows = [(1 if there else -1, (key, *row)) for key, (there, row) in enumerate(happened)]
    wanted = [(w, row if w > 0 else (row[0], *[None] * len(TYPES))) for w, row in given_rows]
    assert _read_again("upsert", *given_rows).equals(changes(SINKS["upsert"], *wanted))


NUMBERS = (
    st.integers().map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.decimals(allow_nan=False, allow_infinity=False, places=12).map(str)
)
SCALARS = NUMBERS | st.sampled_from(
    [
        "null",
        "true",
        "false",
        '"true"',
        '"12"',
        '" 7 "',
        '"1.50"',
        '"2020-01-01 12:00:00"',
        '"2020-01-01 12:00:00.1234Z"',
        '"2020-01-01"',
        '"12:00:00"',
        '"aGk="',
        "0",
        "1",
        "1.0",
        "0.0",
        "-0",
        "1e2",
        '"x"',
        '""',
        '"\\u0061"',
        "NaN",
        "[",
        "01",
    ]
)
JSON_TEXT = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[" + ", ".join(items) + "]")
        | st.lists(st.tuples(st.sampled_from(["a", "b", "x", "Y"]), inner), max_size=3).map(
            lambda members: "{" + ",".join(f"{json.dumps(k)}: {v}" for k, v in members) + "}"
        )
    ),
    max_leaves=4,
)
ASKED: dict[str, DataType] = {
    **{f"i{i}": type_ for i, type_ in enumerate([t.INT, t.BIGINT, t.DOUBLE, t.FLOAT, t.BOOLEAN, t.DATE, t.BYTES])},
    "s": t.STRING,
    "d": t.Decimal(20, 6),
    "m": t.Timestamp(3),
    "z": t.TimestampLtz(6),
    "h": t.Time(3),
    "l": t.Array(t.DOUBLE),
    "p": t.Map(t.STRING, t.STRING),
    "r": t.Row(("a", "x"), (t.INT, t.STRING)),
    "q": t.Array(t.Row(("Y",), (t.INT,))),
}


@pytest.mark.parametrize("options", [JsonOptions(), JsonOptions(ignore_errors=True), JsonOptions(fail_on_missing=True)])
@pytest.mark.parametrize("name", ASKED)
@FEW
@given(st.data())
def test_the_fast_way_reads_what_the_exact_way_reads(name, options, data):
    member = st.tuples(st.sampled_from([name, name, name.upper(), "a"]), JSON_TEXT)
    texts = data.draw(
        st.lists(
            st.lists(member, max_size=3).map(lambda m: "{" + ",".join(f"{json.dumps(k)}:{v}" for k, v in m) + "}"),
            min_size=1,
            max_size=4,
        )
    )
    source = table(
        {name: ASKED[name]},
        options={
            "ignore-parse-errors": str(options.ignore_errors),
            "fail-on-missing-field": str(options.fail_on_missing),
        },
    )
    found = decode(source, records(*texts))
    wanted: list[tuple[int, Any]] = []
    dead: list[tuple[int, str]] = []
    for offset, text in enumerate(texts):
        try:
            wanted.append((1, reference_record(text, (name,), (ASKED[name],), options)))
        except Unreadable as error:
            if not options.ignore_errors:
                dead.append((offset, error.reason))
    assert [(r["offset"], r["reason"]) for r in found.dead.to_pylist()] == dead
    assert found.changes.equals(changes(source, *wanted))
