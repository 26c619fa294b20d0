"""JSON behind the id of a schema, as serializers of Confluent's JSON Schema write it."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import replace

import pytest

from service.plan.table import Format, Table
from service.plan.types import BIGINT, DOUBLE, STRING, Array, Decimal, Map, Row
from tests.formats.wire import dead, encode, rows, table
from tests.schema_registry.server import SmallRegistry, served


@pytest.fixture
def registry() -> Iterator[SmallRegistry]:
    with served() as small:
        yield small


def framed(number: int, text: str) -> bytes:
    return struct.pack(">bI", 0, number) + text.encode()


def with_registry(made: Table, small: SmallRegistry, **options: str) -> Table:
    form = Format("json-registry", {"subject": "t-value", **options}, {"url": small.url})
    return replace(made, connector=replace(made.connector, value_format=form))


COLUMNS = {"k": BIGINT, "v": STRING}


def test_the_text_behind_the_id_is_read_and_no_registry_is_asked(registry: SmallRegistry):
    source = with_registry(table(COLUMNS), registry)
    good = framed(7, '{"k": 1, "v": "x"}')
    bad = [b'{"k": 1, "v": "x"}', b"", b"\0\0", framed(7, "{"), framed(7, '{"k": "many"}')]
    assert rows(source, good, *bad, good) == [(1, "x"), (1, "x")]
    assert [(at, reason) for at, reason, _ in dead(source, good, *bad)] == [
        (1, "bad-json"),
        (2, "bad-json"),
        (3, "bad-json"),
        (4, "bad-json"),
        (5, "wrong-type"),
    ]
    assert dead(source, *bad)[0][2] == "the record does not begin with a zero byte and the id of its schema"
    assert registry.calls == []


def test_rows_are_written_behind_the_id_of_the_schema_of_their_columns(registry: SmallRegistry):
    sink = with_registry(table(COLUMNS, not_null=["k"]), registry)
    lines = encode(sink, (1, (1, "a")), (1, (2, None)))["value"].to_pylist()
    assert lines == [framed(1, '{"k":1,"v":"a"}'), framed(1, '{"k":2,"v":null}')]
    assert rows(sink, *lines) == [(1, "a"), (2, None)]
    text, kind = registry.schemas[1]
    assert kind == "JSON"
    assert json.loads(text) == {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Record",
        "type": "object",
        "properties": {"k": {"type": "integer"}, "v": {"oneOf": [{"type": "null"}, {"type": "string"}]}},
        "required": ["k"],
    }


def test_an_upsert_deletes_without_a_value(registry: SmallRegistry):
    made = table(COLUMNS, kind="upsert-kafka", key=["k"], key_format=Format("json"))
    out = encode(with_registry(made, registry), (1, (1, "a")), (-1, (2, "b")))
    assert out["value"].to_pylist() == [framed(1, '{"k":1,"v":"a"}'), None]


def test_nested_columns_have_their_schema(registry: SmallRegistry):
    nested = Row(("a",), (Map(STRING, Decimal(5, 2)),))
    sink = with_registry(table({"x": Array(nested), "d": DOUBLE}, not_null=["x", "d"]), registry)
    encode(sink, (1, ([{"a": []}], 1.5)))
    members = json.loads(registry.schemas[1][0])["properties"]
    null = {"type": "null"}
    amounts = {"type": "object", "additionalProperties": {"oneOf": [null, {"type": "number"}]}}
    inner = {"type": "object", "properties": {"a": {"oneOf": [null, amounts]}}}
    assert members == {
        "x": {"type": "array", "items": {"oneOf": [null, inner]}},
        "d": {"type": ["number", "string"]},
    }
