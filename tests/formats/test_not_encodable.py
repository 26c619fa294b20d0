"""Rows that a format cannot hold: each is a dead letter that names column and value, and its neighbours are written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa
import pytest

from service.formats.avro.part import check_writable
from service.formats.avro.schema import AvroSchemaError
from service.formats.contract import OUT
from service.formats.dead_letters import NOT_ENCODABLE, row_records
from service.formats.record_parts import value_part
from service.formats.registry import encoder
from service.plan.table import Format, Table
from service.plan.types import (
    BIGINT,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    Array,
    DataType,
    Decimal,
    Map,
    Row,
    Time,
    Timestamp,
    TimestampLtz,
)
from service.runtime.encoding import EncodedBlock, encode_changes
from service.schema_registry import client
from service.schema_registry.errors import RegistryUnreachable
from tests.formats.wire import SQL, changes, encode, table, values
from tests.schema_registry.server import SmallRegistry, served

ENUM = {"type": "enum", "name": "Status", "symbols": ["OPEN", "PAID"]}
FOUR = {"type": "fixed", "name": "four", "size": 4}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}
SMALL = {"type": "fixed", "name": "small", "size": 2, "logicalType": "decimal", "precision": 9, "scale": 0}
INNER = {"type": "record", "name": "inner", "fields": [{"name": "n", "type": "int"}]}

AVRO: list[tuple[DataType, Any, Any, Any, str]] = [
    (BIGINT, "int", 7, 2**31, "2147483648, which does not fit in the 32 bits of an int"),
    (BIGINT, "int", 7, -(2**63), "-9223372036854775808, which does not fit in the 32 bits of an int"),
    (BIGINT, ["null", "int"], None, 2**31, "2147483648, which does not fit in the 32 bits of an int"),
    (BIGINT, "long", 7, None, "NULL, but long in its schema has no null"),
    (BIGINT, ["long"], 7, None, "NULL, but its union has no null"),
    (BIGINT, "double", 7, 2**53 + 1, "9007199254740993, which does not fit in a double"),
    (BIGINT, "double", 7, 2**63 - 1, "9223372036854775807, which does not fit in a double"),
    (INT, "float", 7, 2**24 + 1, "16777217, which does not fit in a float"),
    (DOUBLE, "float", float("inf"), 1e300, "1e+300, which does not fit in a float"),
    (Timestamp(6), "int", datetime(1970, 1, 1), datetime(9999, 1, 1), "9999-01-01 00:00:00.000000, which does not fit"),
    (STRING, ENUM, "OPEN", 'GO"NE', '"GO\\"NE", which is no symbol of the enum Status'),
    (STRING, ["null", ENUM], None, "", '"", which is no symbol of the enum Status'),
    (STRING, ENUM, "OPEN", "x" * 1000, f'"{"x" * 99}…, which is no symbol'),
    (STRING, "string", "", None, "NULL, but string in its schema has no null"),
    (BYTES, "string", "é".encode(), b"\xff\xfe", "0xfffe, which is not UTF-8"),
    (BYTES, FOUR, b"1234", b"12345", "0x3132333435, which has not the 4 bytes of four"),
    (Decimal(10, 2), MONEY, Number("999.9"), Number("1.25"), "1.25, which does not fit in a decimal of 4 digits, 1 of"),
    (Decimal(10, 2), MONEY, Number("999.9"), Number("1000.00"), "1000.00, which does not fit in a decimal of 4 digits"),
    (Decimal(9, 0), SMALL, Number(32767), Number(32768), "32768, which needs more than the 2 bytes of small"),
    (Array(BIGINT), {"type": "array", "items": "int"}, [1, 2], [3, 2**40], "1099511627776, which does not fit"),
    (Array(BIGINT), {"type": "array", "items": "int"}, [], [None], "NULL, but int in its schema has no null"),
    (Map(STRING, BIGINT), {"type": "map", "values": "int"}, [("a", 1)], [("a", 2**40)], "1099511627776, which does"),
    (Row(("n",), (BIGINT,)), ["null", INNER], None, {"n": 2**40}, "1099511627776, which does not fit in the 32 bits"),
    (Row(("n",), (BIGINT,)), INNER, {"n": 1}, {"n": None}, "NULL, but int in its schema has no null"),
]

PROTOBUF: list[tuple[DataType, str, Any, Any, str]] = [
    (BIGINT, "int32", -(2**31), 2**31, '2147483648, which does not fit in the field "a", int32'),
    (BIGINT, "optional sint32", None, -(2**40), '-1099511627776, which does not fit in the field "a", sint32'),
    (BIGINT, "uint32", 2**32 - 1, -1, '-1, which does not fit in the field "a", uint32'),
    (BIGINT, "fixed64", 0, -(2**63), '-9223372036854775808, which does not fit in the field "a", fixed64'),
    (Decimal(20, 0), "uint64", Number(2**64 - 1), Number(2**64), "18446744073709551616, which does not fit in the"),
    (STRING, "E", "NO", "NOT", '"NOT", which is no name of the enum E'),
    (STRING, "optional E", None, "", '"", which is no name of the enum E'),
    (BYTES, "string", b"ok", b"\xff", '0xff, which is not UTF-8, as the string "a" is'),
    (Array(STRING), "repeated E", [None, "NO"], ["NO", "NOT"], '"NOT", which is no name of the enum E'),
    (Array(BIGINT), "repeated int32", [1], [1, 2**31], '2147483648, which does not fit in the field "a", int32'),
    (Map(STRING, BIGINT), "map<string, int32>", [("a", 1)], [("a", 2**31)], "2147483648, which does not fit in the fi"),
    (Row(("n",), (BIGINT,)), "Inner", None, {"n": 2**31}, '2147483648, which does not fit in the field "n", int32'),
]

ANYTHING: list[tuple[DataType, Any]] = [
    (DOUBLE, float("nan")),
    (DOUBLE, float("-inf")),
    (FLOAT, 1e-45),
    (BIGINT, -(2**63)),
    (STRING, "\x00\x1f\"'\\,\r\n\u2028\U0001f600"),
    (STRING, ""),
    (STRING, None),
    (BYTES, b"\x00\xff"),
    (Decimal(38, 0), Number(10**38 - 1)),
    (Decimal(38, 38), Number(-1).scaleb(-38)),
    (DATE, date(1, 1, 1)),
    (DATE, date(9999, 12, 31)),
    (Time(0), time(23, 59, 59)),
    (Timestamp(6), datetime(1, 1, 1)),
    (TimestampLtz(3), datetime(9999, 12, 31, 23, 59, 59)),
    (Array(STRING), [None, "", ","]),
]
"""Values at the ends of their types, all of which the formats of text can hold."""


def avro(type_: DataType, schema: Any) -> Table:
    whole = {"type": "record", "name": "r", "fields": [{"name": "a", "type": schema}]}
    return table({"a": type_}, "avro", {"schema": json.dumps(whole)})


def protobuf(type_: DataType, field: str) -> Table:
    inner = "enum E { NO = 0; } message Inner { int32 n = 1; }"
    text = f'syntax = "proto3"; {inner} message M {{ {field} a = 1; }}'
    return table({"a": type_}, "protobuf", {"schema": text, "message-name": "M"})


def block(sink: Table, given: pa.Table) -> EncodedBlock:
    return encode_changes(given, encoder(sink, tuple(range(len(sink.columns))), "q"), SQL)


def check(sink: Table, good: Any, bad: Any, message: str) -> None:
    """One block of good and bad rows: the good ones are written as they are alone, each bad one says why."""
    given = [good, bad, good, good, bad]
    found = block(sink, changes(sink, *((1, (each,)) for each in given)))
    assert found.records.equals(encode(sink, *[(1, (good,))] * 3))
    assert found.dead is not None
    rows = changes(sink, *[(1, (bad,))] * 2)
    assert found.dead.drop_columns("_reason").to_pylist() == rows.to_pylist()
    for reason in found.dead["_reason"].to_pylist():
        assert reason.startswith('column "a')
        assert message in reason
    letters = row_records(found.dead, ["a"], "sink t", NOT_ENCODABLE, SQL)
    headers = [{h["key"]: h["value"] for h in each} for each in letters["headers"].to_pylist()]
    assert {each["tailrace-reason"] for each in headers} == {b"not-encodable"}
    assert {each["tailrace-operator"] for each in headers} == {b"sink t"}
    assert [each["tailrace-detail"].decode() for each in headers] == found.dead["_reason"].to_pylist()
    assert all(set(json.loads(value or "")) == {"a", "_weight"} for value in values(letters))


@pytest.mark.parametrize(("type_", "schema", "good", "bad", "message"), AVRO)
def test_what_an_avro_schema_cannot_hold_is_a_dead_letter(
    type_: DataType, schema: Any, good: Any, bad: Any, message: str
):
    check(avro(type_, schema), good, bad, message)


@pytest.mark.parametrize(("type_", "field", "good", "bad", "message"), PROTOBUF)
def test_what_a_message_cannot_hold_is_a_dead_letter(type_: DataType, field: str, good: Any, bad: Any, message: str):
    check(protobuf(type_, field), good, bad, message)


@pytest.mark.parametrize("form", ["json", "csv", "debezium-json", "changelog-json", "raw"])
@pytest.mark.parametrize(("type_", "value"), ANYTHING)
def test_formats_of_text_hold_every_value(form: str, type_: DataType, value: Any):
    if form == "raw" and type_ not in (DOUBLE, FLOAT, BIGINT, STRING, BYTES):
        type_, value = STRING, str(value)
    sink = table({"a": type_}, form)
    found = block(sink, changes(sink, *[(1, (value,))] * 3))
    assert found.dead is None
    assert found.records.num_rows == 3


@pytest.mark.parametrize(
    ("type_", "schema"),
    [(DOUBLE, "int"), (STRING, "long"), (BIGINT, "string"), (STRING, "boolean"), (BIGINT, ENUM), (STRING, INNER)],
)
def test_a_column_that_a_schema_can_never_hold_is_refused_before_the_start(type_: DataType, schema: Any):
    sink = avro(type_, schema)
    form = sink.connector.value_format
    assert form is not None
    with pytest.raises(AvroSchemaError, match="cannot take a column of"):
        check_writable(value_part(sink), form)


UPSERT = table(
    {"k": STRING, "s": STRING},
    "avro",
    {
        "schema": json.dumps(
            {
                "type": "record",
                "name": "r",
                "fields": [{"name": "k", "type": ["null", "string"]}, {"name": "s", "type": ENUM}],
            }
        )
    },
    kind="upsert-kafka",
    key=["k"],
    key_format=Format("raw"),
)

OPEN = b"\x02\x02k\x00"
PAID = b"\x02\x02k\x02"


@pytest.mark.parametrize(
    ("given", "written", "dead"),
    [
        ([(1, "GONE")], [], [(1, "GONE")]),
        ([(-1, "GONE")], [], [(-1, "GONE")]),
        ([(-1, "OPEN"), (1, "GONE")], [None], [(1, "GONE")]),
        ([(-1, "GONE"), (1, "PAID")], [PAID], [(-1, "GONE")]),
        ([(-1, "GONE"), (1, "LOST")], [], [(-1, "GONE"), (1, "LOST")]),
        ([(-1, "OPEN"), (1, "PAID")], [PAID], []),
    ],
)
def test_the_rows_of_a_sink_are_those_that_can_be_encoded(
    given: Sequence[tuple[int, str]], written: Sequence[bytes | None], dead: Sequence[tuple[int, str]]
):
    found = block(UPSERT, changes(UPSERT, *((weight, ("k", status)) for weight, status in given)))
    assert found.records["value"].to_pylist() == list(written)
    letters = [] if found.dead is None else found.dead.to_pylist()
    assert [(row["_weight"], row["c1"]) for row in letters] == list(dead)


def test_an_update_of_other_rows_stays_one_beside_a_row_that_cannot_be_encoded():
    columns: dict[str, DataType] = {"k": BIGINT, "s": STRING}
    row = {
        "type": "record",
        "name": "row",
        "fields": [{"name": "k", "type": "long"}, {"name": "s", "type": ENUM}],
    }
    fields = [{"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "row"]}]
    whole = {"type": "record", "name": "e", "fields": [*fields, {"name": "op", "type": ["null", "string"]}]}
    sink = table(columns, "debezium-avro-confluent", {"schema": json.dumps(whole)}, key=["k"])
    updates = [(w, (k, s)) for k in range(7) for w, s in ((-1, "OPEN"), (1, "GONE" if k in (2, 5) else "PAID"))]
    found = block(sink, changes(sink, *updates))
    assert [value[-1:] for value in found.records["value"].to_pylist()] == [b"u", b"u", b"d", b"u", b"u", b"d", b"u"]
    assert found.dead is not None
    assert found.dead["c0"].to_pylist() == [2, 5]


def test_rows_of_which_none_can_be_encoded_are_reported_at_once(monkeypatch: pytest.MonkeyPatch):
    asked = 0
    sink = avro(STRING, ENUM)
    made = encoder(sink, (0,), "q")
    encode_block = type(made).encode

    def counted(self: Any, rows: pa.Table, sql: Any) -> pa.Table:
        nonlocal asked
        asked += 1
        return encode_block(self, rows, sql)

    monkeypatch.setattr(type(made), "encode", counted)
    found = encode_changes(changes(sink, *[(1, ("GONE",))] * 10_000), made, SQL)
    assert asked == 2
    assert found.records.equals(OUT.empty_table())
    assert found.dead is not None
    assert found.dead.num_rows == 10_000


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallRegistry]:
    monkeypatch.setattr(client, "_PAUSE", 0.001)
    with served() as small:
        yield small


@pytest.mark.parametrize(
    ("form", "kind", "schema"),
    [
        (
            "avro-confluent",
            "AVRO",
            json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}),
        ),
        ("protobuf-confluent", "PROTOBUF", 'syntax = "proto3"; message M { int32 a = 1; }'),
    ],
)
def test_the_schema_of_a_registry_is_named_by_its_id(registry: SmallRegistry, form: str, kind: str, schema: str):
    registry.add({}, "another")
    sink = table({"a": BIGINT}, "json")
    made = Format(form, {"subject": "t-value", "schema": schema}, {"url": registry.url})
    object.__setattr__(sink.connector, "value_format", made)
    given = changes(sink, (1, (2**40,)), (1, (1,)))
    registry.faults += [(503, {})] * 4
    with pytest.raises(RegistryUnreachable):
        block(sink, given)
    found = block(sink, given)
    assert found.records.num_rows == 1
    assert found.dead is not None
    (number,) = registry.subjects["t-value"]
    (reason,) = found.dead["_reason"].to_pylist()
    assert reason.startswith(f'schema {number}: column "a" is 1099511627776, which does not fit')
