"""Avro in and out, against fastavro: each type, schema resolution, bad records, the framing of schema registries."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal as Number
from typing import Any, cast

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.formats.avro.part import schema_text
from service.formats.record_parts import value_part
from service.formats.registry import decoder
from service.plan.table import Format, Table
from service.plan.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    Array,
    DataType,
    Decimal,
    Map,
    Row,
    Time,
    Timestamp,
    TimestampLtz,
)
from service.runtime.dead_rows import without_dead_rows
from service.schema_registry import client
from service.schema_registry.errors import RegistryUnreachable
from tests.formats.wire import SQL, dead, decode, encode, keys, records, rows, shown, table
from tests.schema_registry.server import SmallRegistry, served

NOON = datetime(2024, 2, 29, 12, 30, 0, 123456)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallRegistry]:
    monkeypatch.setattr(client, "_PAUSE", 0.001)
    with served() as small:
        yield small


def record(*fields: object, name: str = "r") -> dict[str, Any]:
    """The schema of a record of fields a, b, ... of these types."""
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": chr(97 + i), "type": each} for i, each in enumerate(fields)],
    }


def logical(kind: str, name: str, **more: int) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def written(schema: object, value: object) -> bytes:
    """A value as fastavro writes it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(cast("dict[str, Any]", schema)), value)
    return out.getvalue()


def framed(number: int, data: bytes) -> bytes:
    return struct.pack(">bI", 0, number) + data


def confluent(small: SmallRegistry, columns: Mapping[str, DataType], **more: Any) -> Table:
    """A table of avro-confluent."""
    made = table(columns, "avro-confluent", more.pop("options", {}), **more)
    return with_registry(made, small)


def with_registry(made: Table, small: SmallRegistry) -> Table:
    def form(each: Format | None, part: str) -> Format | None:
        if each is None or "avro" not in each.kind:
            return each
        return Format(each.kind, {"subject": f"t-{part}", **each.options}, {"url": small.url})

    connector = made.connector
    return replace(
        made,
        connector=replace(
            connector,
            key_format=form(connector.key_format, "key"),
            value_format=form(connector.value_format, "value"),
        ),
    )


@pytest.mark.parametrize(
    ("schema", "value", "type_", "read"),
    [
        ("boolean", True, BOOLEAN, True),
        ("int", -5, TINYINT, -5),
        ("int", 300, SMALLINT, 300),
        ("int", -(2**31), INT, -(2**31)),
        ("int", 7, BIGINT, 7),
        ("int", 7, FLOAT, 7.0),
        ("int", 7, DOUBLE, 7.0),
        ("long", -(2**63), BIGINT, -(2**63)),
        ("long", 2**63 - 1, BIGINT, 2**63 - 1),
        ("long", 2**40, DOUBLE, float(2**40)),
        ("float", 1.5, FLOAT, 1.5),
        ("float", 1.5, DOUBLE, 1.5),
        ("double", -2.25, DOUBLE, -2.25),
        ("string", "Grüße", STRING, "Grüße"),
        ("string", "ab", BYTES, b"ab"),
        ("bytes", b"a\0b", BYTES, b"a\0b"),
        ("bytes", b"ab", STRING, "ab"),
        (logical("string", "uuid"), "5ecf4e19-2f0d-4e0c-a0b4-8d5c3b3c7a11", STRING, None),
        ({"type": "fixed", "name": "f", "size": 3}, b"abc", BYTES, b"abc"),
        ({"type": "enum", "name": "e", "symbols": ["LOW", "HIGH"]}, "HIGH", STRING, "HIGH"),
        (logical("bytes", "decimal", precision=10, scale=2), Number("-1.28"), Decimal(10, 2), Number("-1.28")),
        (logical("bytes", "decimal", precision=6, scale=1), Number("12345.6"), Decimal(12, 3), Number("12345.600")),
        (logical("bytes", "decimal", precision=38, scale=0), Number("9" * 38), Decimal(38, 0), Number("9" * 38)),
        (
            {"type": "fixed", "name": "f", "size": 8, "logicalType": "decimal", "precision": 9, "scale": 4},
            Number("-3.1415"),
            Decimal(9, 4),
            Number("-3.1415"),
        ),
        (logical("int", "date"), date(1969, 12, 31), DATE, date(1969, 12, 31)),
        (logical("int", "time-millis"), time(12, 30, 0, 123000), Time(3), time(12, 30, 0, 123000)),
        (logical("long", "time-micros"), time(12, 30, 0, 123456), Time(6), time(12, 30, 0, 123456)),
        (logical("long", "timestamp-millis"), NOON.replace(tzinfo=UTC), Timestamp(3), NOON.replace(microsecond=123000)),
        (logical("long", "timestamp-micros"), NOON.replace(tzinfo=UTC), TimestampLtz(6), NOON),
        (logical("long", "timestamp-micros"), NOON.replace(tzinfo=UTC), Timestamp(3), NOON.replace(microsecond=123000)),
        (logical("long", "local-timestamp-millis"), NOON, Timestamp(3), NOON.replace(microsecond=123000)),
        (logical("long", "local-timestamp-micros"), NOON, Timestamp(6), NOON),
        ("long", 1000, Timestamp(3), datetime(1970, 1, 1, 0, 0, 1)),
        (["null", "long"], None, BIGINT, None),
        (["null", "long"], 5, BIGINT, 5),
        (["string", "null"], "x", STRING, "x"),
        (["null", "int", "long"], 2**40, BIGINT, 2**40),
        ({"type": "array", "items": "int"}, [1, 2, 3], Array(BIGINT), [1, 2, 3]),
        ({"type": "array", "items": ["null", "string"]}, ["a", None], Array(STRING), ["a", None]),
        ({"type": "array", "items": "double"}, [], Array(DOUBLE), []),
        ({"type": "map", "values": "long"}, {"x": 1, "y": 2}, Map(STRING, BIGINT), [("x", 1), ("y", 2)]),
        (record("int", "string", name="s"), {"a": 1, "b": "x"}, Row(("b", "a"), (STRING, BIGINT)), {"b": "x", "a": 1}),
        (
            {"type": "array", "items": {"type": "array", "items": record("long", name="s")}},
            [[{"a": 1}], [], [{"a": 2}, {"a": 3}]],
            Array(Array(Row(("a",), (BIGINT,)))),
            [[{"a": 1}], [], [{"a": 2}, {"a": 3}]],
        ),
    ],
)
def test_a_value_is_read_as_the_column_has_it(
    registry: SmallRegistry, schema: object, value: object, type_: DataType, read: object
):
    whole = record("long", schema, "string")
    number = registry.add(fastavro.schema.parse_schema(whole, _write_hint=False))
    source = confluent(registry, {"c": STRING, "b": type_, "a": BIGINT})
    line = framed(number, written(whole, {"a": -1, "b": value, "c": "end"}))
    wanted = value if read is None and value is not None else read
    assert rows(source, line, line) == [("end", wanted, -1)] * 2


@pytest.mark.parametrize(
    ("writer", "type_", "why"),
    [
        ("long", INT, 'column "a" is INT, but the schema of the record has long'),
        ("double", FLOAT, 'column "a" is FLOAT, but the schema of the record has double'),
        ("string", BIGINT, 'column "a" is BIGINT, but the schema of the record has string'),
        (
            logical("bytes", "decimal", precision=9, scale=3),
            Decimal(9, 2),
            'column "a" is DECIMAL(9, 2), but the schema of the record has bytes (decimal(9, 3))',
        ),
        ("bytes", Decimal(9, 2), 'column "a" is DECIMAL(9, 2), but the schema of the record has bytes'),
        (
            {"type": "array", "items": "string"},
            Array(INT),
            'column "a" is INT, but the schema of the record has string',
        ),
        (
            record("string", name="s"),
            Row(("a",), (INT,)),
            'column "a.a" is INT, but the schema of the record has string',
        ),
    ],
)
def test_a_schema_that_cannot_be_resolved_is_reported_with_its_id(
    registry: SmallRegistry, writer: object, type_: DataType, why: str
):
    old = record("long" if type_ == BIGINT else "null", "string")
    fits = registry.add(old)
    number = registry.add(record(writer, "string"))
    value = {"long": 1, "double": 1.5, "string": "x", "bytes": b"x"}.get(writer if isinstance(writer, str) else "", "")
    if isinstance(writer, dict):
        value = {"array": ["x"], "record": {"a": "x"}, "bytes": Number("1.125")}[writer["type"]]
    source = confluent(registry, {"a": type_, "b": STRING})
    good = framed(fits, written(old, {"a": 1 if type_ == BIGINT else None, "b": "good"}))
    bad = framed(number, written(record(writer, "string"), {"a": value, "b": "bad"}))
    assert [row[1] for row in rows(source, good, bad, good)] == ["good", "good"]
    assert dead(source, good, bad, good) == [(1, "schema-mismatch", f"schema {number}: {why}")]


def test_only_the_branch_of_a_union_that_a_record_has_must_fit(registry: SmallRegistry):
    schema = record(["null", "long", "string"])
    number = registry.add(schema)
    source = confluent(registry, {"a": BIGINT})
    lines = [framed(number, written(schema, {"a": each})) for each in (1, None, "x", 2)]
    assert rows(source, *lines) == [1, None, 2]
    assert [(at, reason) for at, reason, _ in dead(source, *lines)] == [(2, "schema-mismatch")]


def test_a_schema_may_change_under_a_running_job(registry: SmallRegistry):
    source = confluent(registry, {"a": BIGINT, "b": STRING, "c": DOUBLE})
    reader = decoder(source, (0, 1, 2))
    versions = [
        (record("int", "string"), {"a": 1, "b": "x"}),
        (record("long", ["null", "string"], "float"), {"a": 2, "b": None, "c": 0.5}),
        (record("long"), {"a": 3}),
    ]
    found: list[Any] = []
    for schema, value in versions:
        line = framed(registry.add(schema), written(schema, value))
        found += shown(reader.decode(records(line), SQL).changes)
    assert found == [(1, "x", None), (2, None, 0.5), (3, None, None)]
    assert len(registry.calls) == 3


def test_the_schema_of_the_table_gives_aliases_and_defaults(registry: SmallRegistry):
    own = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "id", "type": "long", "aliases": ["number"]},
            {"name": "kind", "type": {"type": "enum", "name": "k", "symbols": ["A", "B"]}, "default": "B"},
            {"name": "tags", "type": {"type": "array", "items": "string"}, "default": ["x", "y"]},
            {"name": "price", "type": logical("bytes", "decimal", precision=6, scale=2), "default": "\u0001\u0000"},
            {
                "name": "at",
                "type": {"type": "record", "name": "place", "fields": [{"name": "x", "type": "int", "default": 7}]},
                "default": {},
            },
        ],
    }
    writer = {"type": "record", "name": "r", "fields": [{"name": "number", "type": "int"}]}
    number = registry.add(writer)
    columns: dict[str, DataType] = {
        "id": BIGINT,
        "kind": STRING,
        "tags": Array(STRING),
        "price": Decimal(6, 2),
        "at": Row(("x",), (INT,)),
    }
    source = confluent(registry, columns, options={"schema": json.dumps(own)})
    assert rows(source, framed(number, written(writer, {"number": 5}))) == [
        (5, "B", ["x", "y"], Number("2.56"), {"x": 7})
    ]


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        (b"", "bad-avro", "the record does not begin with a zero byte and the id of its schema"),
        (b'{"a": 1}', "bad-avro", "the record does not begin with a zero byte and the id of its schema"),
        (framed(1, b""), "bad-avro", "schema 1: the record ends in the middle of a value"),
        (framed(1, b"\x02"), "bad-avro", "schema 1: the record ends in the middle of a value"),
        (framed(1, b"\x02\x04a"), "bad-avro", "schema 1: the length of a text or of bytes is not possible"),
        (framed(1, b"\x02\x01a"), "bad-avro", "schema 1: the length of a text or of bytes is not possible"),
        (framed(1, b"\xff" * 11 + b"\x02a"), "bad-avro", "schema 1: a number has more than ten bytes"),
        (framed(1, b"\x02\x02\xff\x00"), "bad-utf8", "schema 1: a text is not UTF-8"),
        (framed(1, b"\x02\x02ab"), "bad-avro", "schema 1: the record has more bytes than its schema has values"),
        (framed(77, b"\x02\x02a\x00"), "unknown-schema", "the schema registry has no schema 77"),
        (framed(2, b"\x02"), "unknown-schema", "schema 2: it is a schema of PROTOBUF, not of Avro"),
    ],
)
def test_a_bad_record_says_why_and_its_neighbours_go_on(registry: SmallRegistry, line: bytes, reason: str, detail: str):
    schema = record("long", "string")
    assert registry.add(schema) == 1
    registry.add("syntax = 'proto3';", kind="PROTOBUF")
    source = confluent(registry, {"a": BIGINT, "b": STRING})
    good = [framed(1, written(schema, {"a": i, "b": "x" * i})) for i in range(3)]
    assert rows(source, good[0], line, good[1], line, good[2]) == [(0, ""), (1, "x"), (2, "xx")]
    assert dead(source, good[0], line, good[1], line) == [(1, reason, detail), (3, reason, detail)]


HOSTILE = record(
    {"type": "array", "items": "null"}, {"type": "array", "items": record("long", "string", name="s")}, "boolean"
)


@pytest.mark.parametrize(
    "data",
    [
        b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00\x01",
        b"\x00\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x01",
        b"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x01",
        b"\x00\x80\x01" + b"\x00" * 20,
        b"\x00\x00\x02",
    ],
)
def test_a_hostile_record_costs_only_itself(registry: SmallRegistry, data: bytes):
    number = registry.add(HOSTILE)
    source = confluent(registry, {"b": Array(Row(("a", "b"), (BIGINT, STRING))), "c": BOOLEAN})
    good = framed(number, written(HOSTILE, {"a": [None], "b": [{"a": 1, "b": "x"}], "c": True}))
    assert rows(source, good, framed(number, data), good) == [([{"a": 1, "b": "x"}], True)] * 2
    assert [reason for _, reason, _ in dead(source, framed(number, data))] == ["bad-avro"]


def test_a_value_that_a_column_cannot_hold_is_a_dead_letter(registry: SmallRegistry):
    schema = record("int")
    number = registry.add(schema)
    source = confluent(registry, {"a": TINYINT})
    lines = [framed(number, written(schema, {"a": each})) for each in (5, 300, -128)]
    assert rows(source, *lines) == [5, -128]
    assert dead(source, *lines) == [(1, "wrong-type", f"schema {number}: 300 is no TINYINT")]


@pytest.mark.parametrize(
    ("schema", "type_", "good", "bad"),
    [
        (logical("int", "date"), DATE, (-719162, 2932896), (-719163, 2932897)),
        (logical("int", "time-millis"), Time(3), (0, 86399999), (-1, 86400000)),
        (
            logical("long", "timestamp-millis"),
            Timestamp(3),
            (-62135596800000, 253402300799999),
            (-62135596800001, 253402300800000, 2**62, -(2**63)),
        ),
        (
            logical("bytes", "decimal", precision=9, scale=0),
            Decimal(4, 0),
            (b"\x27\x0f", b""),
            (b"\x27\x10", b"\x01" * 17),
        ),
    ],
)
def test_dates_times_and_numbers_end_where_their_types_do(
    registry: SmallRegistry, schema: dict[str, Any], type_: DataType, good: tuple[Any, ...], bad: tuple[Any, ...]
):
    number = registry.add(record(schema))
    source = confluent(registry, {"a": type_})
    lines = [framed(number, written(schema["type"], each)) for each in (*good, *bad)]
    assert len(rows(source, *lines)) == len(good)
    assert [at for at, _, _ in dead(source, *lines)] == [*range(len(good), len(lines))]


def test_a_schema_may_refer_to_others(registry: SmallRegistry):
    city = {"type": "record", "name": "city", "namespace": "geo", "fields": [{"name": "name", "type": "string"}]}
    place = {"type": "record", "name": "geo.place", "fields": [{"name": "city", "type": "geo.city"}]}
    registry.add(city, "city")
    registry.references[registry.add(place, "place")] = [{"name": "geo.city", "subject": "city", "version": 1}]
    schema = {"type": "record", "name": "r", "fields": [{"name": "at", "type": "geo.place"}]}
    number = registry.add(schema)
    registry.references[number] = [{"name": "geo.place", "subject": "place", "version": 1}]
    source = confluent(registry, {"at": Row(("city",), (Row(("name",), (STRING,)),))})
    assert rows(source, framed(number, b"\x08Oslo")) == [{"city": {"name": "Oslo"}}]
    lost = registry.add({**schema, "name": "lost"})
    registry.references[lost] = [{"name": "geo.place", "subject": "place", "version": 2}]
    assert [reason for _, reason, _ in dead(source, framed(lost, b"\x08Oslo"))] == ["unknown-schema"]


def test_lists_of_very_different_lengths_are_read_alike(registry: SmallRegistry):
    schema = record({"type": "array", "items": record("long", "string", name="s")}, "long")
    number = registry.add(schema)
    source = confluent(registry, {"a": Array(Row(("b",), (STRING,))), "b": BIGINT})
    sizes = [0, 1, 500, 2, 0, 37, 3]
    lines = [
        framed(number, written(schema, {"a": [{"a": i, "b": f"{size}-{i}"} for i in range(size)], "b": size}))
        for size in sizes
    ]
    assert rows(source, *lines) == [([{"b": f"{size}-{i}"} for i in range(size)], size) for size in sizes]


def test_a_list_in_several_blocks_with_their_sizes_is_one_list(registry: SmallRegistry):
    schema = record({"type": "array", "items": "long"}, "long")
    number = registry.add(schema)
    source = confluent(registry, {"a": Array(BIGINT), "b": BIGINT})
    data = b"\x04\x02\x04" + b"\x01\x02\x06" + b"\x00" + b"\x08"
    assert rows(source, framed(number, data), framed(number, data)) == [([1, 2, 3], 4)] * 2


def test_what_no_column_takes_is_passed_over(registry: SmallRegistry):
    tree = {
        "type": "record",
        "name": "tree",
        "fields": [
            {"name": "n", "type": "int"},
            {"name": "left", "type": ["null", "tree"], "default": None},
        ],
    }
    odd = [
        {"type": "map", "values": {"type": "array", "items": "string"}},
        {"type": "fixed", "name": "f", "size": 5},
        ["null", "boolean", "bytes"],
        {"type": "enum", "name": "e", "symbols": ["A"]},
        tree,
        "float",
        "double",
    ]
    schema = record(*odd, "long")
    number = registry.add(schema)
    value = {
        "a": {"k": ["x", "y"]},
        "b": b"12345",
        "c": b"zz",
        "d": "A",
        "e": {"n": 1, "left": {"n": 2, "left": {"n": 3, "left": None}}},
        "f": 0.5,
        "g": 0.25,
        "h": 42,
    }
    source = confluent(registry, {"h": BIGINT})
    assert rows(source, *[framed(number, written(schema, value))] * 3) == [42, 42, 42]


COLUMNS: Mapping[str, DataType] = {
    "id": BIGINT,
    "small": TINYINT,
    "yes": BOOLEAN,
    "price": Decimal(20, 3),
    "ratio": DOUBLE,
    "near": FLOAT,
    "name": STRING,
    "data": BYTES,
    "day": DATE,
    "hour": Time(3),
    "at": Timestamp(3),
    "fine": Timestamp(6),
    "instant": TimestampLtz(3),
    "list": Array(STRING),
    "map": Map(STRING, BIGINT),
    "row": Row(("a", "b"), (INT, Array(DOUBLE))),
}

VALUES = st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.none() | st.integers(-128, 127),
    st.none() | st.booleans(),
    st.none() | st.integers(-(10**20) + 1, 10**20 - 1).map(lambda n: Number(n).scaleb(-3)),
    st.none() | st.floats(allow_nan=False),
    st.none() | st.floats(width=32, allow_nan=False),
    st.none() | st.text(max_size=20),
    st.none() | st.binary(max_size=20),
    st.none() | st.dates(),
    st.none() | st.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)),
    st.none() | st.datetimes().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)),
    st.none() | st.datetimes(),
    st.none() | st.datetimes().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)),
    st.none() | st.lists(st.none() | st.text(max_size=4), max_size=12),
    st.none()
    | st.dictionaries(st.text(max_size=4), st.none() | st.integers(0, 9), max_size=4).map(lambda d: [*d.items()]),
    st.none()
    | st.fixed_dictionaries(
        {"a": st.none() | st.integers(-(2**31), 2**31 - 1), "b": st.none() | st.lists(st.floats(allow_nan=False))}
    ),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=12))
def test_what_is_written_is_what_fastavro_and_we_read(given_rows: list[tuple[Any, ...]]):
    sink = table(COLUMNS, "avro", not_null=["id"])
    lines = encode(sink, *((1, row) for row in given_rows))["value"].to_pylist()
    assert rows(sink, *lines) == given_rows
    part = value_part(sink)
    assert sink.connector.value_format is not None
    schema = fastavro.parse_schema(json.loads(schema_text(part, sink.connector.value_format)))
    for line, row in zip(lines, given_rows, strict=True):
        data = io.BytesIO(line)
        found: Any = fastavro.schemaless_reader(data, schema)
        assert data.read() == b""
        for name, value in zip(COLUMNS, row, strict=True):
            read = found[name]
            if name == "map" and value is not None:
                read = [*read.items()]
            elif isinstance(read, datetime):
                read = read.replace(tzinfo=None)
            assert read == value, name


def test_the_schema_of_a_table_is_that_which_flink_derives():
    made = table({"id": BIGINT, "at": Timestamp(3), "row": Row(("x",), (Array(INT),))}, "avro", not_null=["id"])
    assert json.loads(schema_text(value_part(made), Format("avro"))) == {
        "type": "record",
        "name": "record",
        "namespace": "org.apache.flink.avro.generated",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "at", "type": ["null", logical("long", "timestamp-millis")], "default": None},
            {
                "name": "row",
                "type": [
                    "null",
                    {
                        "type": "record",
                        "name": "record_row",
                        "namespace": "org.apache.flink.avro.generated",
                        "fields": [
                            {
                                "name": "x",
                                "type": ["null", {"type": "array", "items": ["null", "int"]}],
                                "default": None,
                            }
                        ],
                    },
                ],
                "default": None,
            },
        ],
    }
    local = Format("avro", {"timestamp_mapping.legacy": "false"})
    assert "local-timestamp-millis" in schema_text(value_part(made), local)


def test_records_are_written_behind_the_id_of_their_schema(registry: SmallRegistry):
    sink = with_registry(
        table(
            {"k": STRING, "v": BIGINT},
            "avro-confluent",
            kind="upsert-kafka",
            key=["k"],
            key_format=Format("avro-confluent"),
        ),
        registry,
    )
    out = encode(sink, (1, ("x", 1)), (-1, ("y", 2)))
    assert sorted(registry.subjects) == ["t-key", "t-value"]
    value, key = (registry.subjects[f"t-{part}"][0] for part in ("value", "key"))
    assert out["value"].to_pylist() == [framed(value, b"\x02x\x02\x02"), None]
    assert out["key"].to_pylist() == [framed(key, b"\x02x"), framed(key, b"\x02y")]
    again = pa.table(
        {**{n: out[n] for n in ("key", "value")}, **{n: records(b"", b"")[n] for n in ("topic", "partition", "offset")}}
    )
    assert shown(decode(sink, again).changes) == [("x", 1), (-1, ("y", None))]


def test_a_key_that_is_no_record_is_its_only_column(registry: SmallRegistry):
    number = registry.add("string")
    registry.schemas[number] = ('"string"', "AVRO")
    schema = record("long")
    value = registry.add(schema)
    source = with_registry(
        table(
            {"k": STRING, "a": BIGINT},
            "avro-confluent",
            key_format=Format("avro-confluent"),
            key_fields=("k",),
            value_fields_include="EXCEPT_KEY",
        ),
        registry,
    )
    line = framed(value, written(schema, {"a": 1}))
    assert rows(source, line, key=[framed(number, b"\x02x")]) == [("x", 1)]


@pytest.mark.parametrize("updates", ["u", "d-c"])
def test_changes_are_written_and_read_as_debezium_does(registry: SmallRegistry, updates: str):
    columns: dict[str, DataType] = {"k": BIGINT, "v": STRING}
    sink = with_registry(
        table(columns, "debezium-avro-confluent", {"tailrace.update": updates}, key=["k"], not_null=["k"]), registry
    )
    out = encode(sink, (1, (1, "a")), (-1, (2, "b")), (1, (2, "c")), (-1, (3, "d")))
    lines = out["value"].to_pylist()
    (number,) = registry.subjects["t-value"]
    schema = fastavro.parse_schema(json.loads(registry.schemas[number][0]))
    read = [fastavro.schemaless_reader(io.BytesIO(line[5:]), schema) for line in lines]
    b, c = {"k": 2, "v": "b"}, {"k": 2, "v": "c"}
    updated = (
        [{"before": b, "after": c, "op": "u"}]
        if updates == "u"
        else [{"before": b, "after": None, "op": "d"}, {"before": None, "after": c, "op": "c"}]
    )
    assert read == [
        {"before": None, "after": {"k": 1, "v": "a"}, "op": "c"},
        *updated,
        {"before": {"k": 3, "v": "d"}, "after": None, "op": "d"},
    ]
    assert rows(sink, *lines) == [(1, "a"), (-1, (2, "b")), (2, "c"), (-1, (3, "d"))]
    assert keys(out) == [None] * len(lines)


def test_a_registry_that_is_away_is_no_reason_to_throw_records_away(registry: SmallRegistry):
    schema = record("long")
    number = registry.add(schema)
    reader = decoder(confluent(registry, {"a": BIGINT}), (0,))
    lines = records(*[framed(number, written(schema, {"a": i})) for i in range(4)])
    registry.faults += [(503, {})] * 4
    with pytest.raises(RegistryUnreachable):
        without_dead_rows(lines, lambda block: reader.decode(block, SQL))
    found, failed = without_dead_rows(lines, lambda block: reader.decode(block, SQL))
    assert not failed
    assert shown(found[0].changes) == [0, 1, 2, 3]
