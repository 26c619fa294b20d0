"""Protocol Buffers in and out, against Google's own library: every kind of field, bad records, changing schemas."""

from __future__ import annotations

import math
import random
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal as Number
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import given, settings
from hypothesis import strategies as st

from service.formats.not_encodable import NotEncodable
from service.formats.protobuf.part import check_message_writable, schema_text
from service.formats.protobuf.schemas.compiler import compiled, described
from service.formats.protobuf.schemas.schema import ProtobufSchemaError
from service.formats.record_parts import value_part
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
    Timestamp,
    TimestampLtz,
)
from service.schema_registry import client
from tests.formats.wire import dead, decode, encode, records, rows, shown, table
from tests.schema_registry.server import SmallRegistry, served

WHOLE_SCHEMA = """
syntax = "proto3";
package shop.v1;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";

enum Color { RED = 0; GREEN = 1; ALSO_GREEN = 1; DARK = -3; option allow_alias = true; }
message Other { int32 x = 1; message Deep { int64 y = 1; } }
message Inner { int64 a = 1; optional string b = 2; repeated sint32 c = 3; Inner more = 4; }
message Whole {
  int32 i32 = 1; int64 i64 = 2; uint32 u32 = 3; uint64 u64 = 4; sint32 s32 = 5; sint64 s64 = 6;
  fixed32 f32 = 7; fixed64 f64 = 8; sfixed32 sf32 = 9; sfixed64 sf64 = 10;
  float f = 11; double d = 12; bool b = 13; string s = 14; bytes y = 15; Color color = 16;
  optional int64 maybe = 17; optional string maybe_s = 18; optional Color maybe_color = 19;
  Inner inner = 20;
  repeated int32 packed = 21; repeated uint64 apart = 22 [packed = false]; repeated double doubles = 23;
  repeated string texts = 24; repeated Inner inners = 25; repeated Color colors = 26; repeated bool flags = 27;
  map<string, int64> counts = 28; map<int32, Inner> by_number = 29;
  oneof one { string os = 30; int64 oi = 31; Inner om = 32; }
  google.protobuf.Timestamp at = 33; google.protobuf.Int64Value wrapped = 34;
  google.protobuf.StringValue wrapped_s = 35; repeated google.protobuf.Timestamp times = 36;
  string amount = 500; string day = 70000;
}
"""

INNER = Row(("a", "b", "c"), (BIGINT, STRING, Array(INT)))

WHOLE: dict[str, DataType] = {
    "i32": INT,
    "i64": BIGINT,
    "u32": BIGINT,
    "u64": Decimal(20, 0),
    "s32": INT,
    "s64": BIGINT,
    "f32": BIGINT,
    "f64": Decimal(20, 0),
    "sf32": INT,
    "sf64": BIGINT,
    "f": FLOAT,
    "d": DOUBLE,
    "b": BOOLEAN,
    "s": STRING,
    "y": BYTES,
    "color": STRING,
    "maybe": BIGINT,
    "maybe_s": STRING,
    "maybe_color": INT,
    "inner": INNER,
    "packed": Array(INT),
    "apart": Array(Decimal(20, 0)),
    "doubles": Array(DOUBLE),
    "texts": Array(STRING),
    "inners": Array(INNER),
    "colors": Array(STRING),
    "flags": Array(BOOLEAN),
    "counts": Map(STRING, BIGINT),
    "by_number": Map(INT, INNER),
    "os": STRING,
    "oi": BIGINT,
    "om": INNER,
    "at": Timestamp(6),
    "wrapped": BIGINT,
    "wrapped_s": STRING,
    "times": Array(TimestampLtz(3)),
}

MAPS = {"counts": 28, "by_number": 29}
"""The fields that are maps, and their numbers."""


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallRegistry]:
    monkeypatch.setattr(client, "_PAUSE", 0.001)
    with served() as small:
        yield small


@cache
def descriptors(text: str) -> bytes:
    """A set of descriptors as protoc makes it."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "made.proto").write_text(text)
        paths = [f"--proto_path={folder}", f"--proto_path={Path(str(files('grpc_tools'))) / '_proto'}"]
        out = f"{folder}/out"
        command = [sys.executable, "-m", "grpc_tools.protoc", *paths, "--include_imports"]
        subprocess.run([*command, f"--descriptor_set_out={out}", "made.proto"], check=True)
        return Path(out).read_bytes()


@cache
def pool(text: str) -> descriptor_pool.DescriptorPool:
    made = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors(text)).file:
        made.Add(file)
    return made


def message(text: str, name: str) -> Any:
    """The class of a message."""
    return message_factory.GetMessageClass(pool(text).FindMessageTypeByName(name))


def plain(columns: Mapping[str, DataType], schema: str = WHOLE_SCHEMA, name: str = "Whole", **options: str) -> Table:
    """A table of protobuf."""
    more = {key.replace("_", "-"): value for key, value in options.items()}
    return table(columns, "protobuf", {"schema": schema, "message-name": name, **more})


def of_one(kind: str, more: str = "") -> str:
    return f'syntax = "proto3"; import "google/protobuf/timestamp.proto"; {more} message M {{ {kind} a = 1; }}'


def inner_row(inner: Any) -> dict[str, Any]:
    return {"a": inner.a, "b": inner.b if inner.HasField("b") else None, "c": list(inner.c) or None}


def moment(instant: Any, precision: int) -> datetime:
    step = 10 ** (6 - precision)
    micros = (instant.seconds * 1_000_000 + instant.nanos // 1000) // step * step
    made: datetime = pa.scalar(micros, pa.timestamp("us")).as_py()
    return made


def as_google(parsed: Any) -> tuple[Any, ...]:
    """The row of a Whole, as Google's library reads it."""
    names = {0: "RED", 1: "GREEN", -3: "DARK"}

    def there(name: str) -> bool:
        return bool(parsed.HasField(name))

    whole = [getattr(parsed, n) for n in list(WHOLE)[:15]]
    for place in (3, 7):
        whole[place] = Number(whole[place])
    return (
        *whole,
        names.get(parsed.color, str(parsed.color)),
        parsed.maybe if there("maybe") else None,
        parsed.maybe_s if there("maybe_s") else None,
        parsed.maybe_color if there("maybe_color") else None,
        inner_row(parsed.inner) if there("inner") else None,
        list(parsed.packed) or None,
        [*map(Number, parsed.apart)] or None,
        list(parsed.doubles) or None,
        list(parsed.texts) or None,
        [*map(inner_row, parsed.inners)] or None,
        [names.get(each, str(each)) for each in parsed.colors] or None,
        list(parsed.flags) or None,
        sorted(parsed.counts.items()) or None,
        sorted(((k, inner_row(v)) for k, v in parsed.by_number.items()), key=lambda pair: pair[0]) or None,
        parsed.os if there("os") else None,
        parsed.oi if there("oi") else None,
        inner_row(parsed.om) if there("om") else None,
        moment(parsed.at, 6) if there("at") else None,
        parsed.wrapped.value if there("wrapped") else None,
        parsed.wrapped_s.value if there("wrapped_s") else None,
        [moment(each, 3) for each in parsed.times] or None,
    )


def in_order(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row with the entries of its maps in order, which they do not have."""
    maps = [i for i, type_ in enumerate(WHOLE.values()) if isinstance(type_, Map)]
    return tuple(sorted(v, key=lambda p: p[0]) if i in maps and v is not None else v for i, v in enumerate(row))


def random_whole(source: random.Random, depth: int = 0) -> Any:
    """A message with some of its fields, with values at the edges of their types among them."""
    whole = message(WHOLE_SCHEMA, "shop.v1.Whole")()

    def some() -> bool:
        return source.random() < 0.4

    def number(bits: int, signed: bool) -> int:
        made = source.choice([0, 1, 127, 128, 300, (1 << bits - 1) - 1, source.getrandbits(bits - 1)])
        return source.choice([made, -made - 1]) if signed else source.choice([made, (1 << bits) - 1 - made])

    def inner() -> Any:
        made = message(WHOLE_SCHEMA, "shop.v1.Inner")()
        if some():
            made.a = number(64, True)
        if some():
            made.b = source.choice(["", "é", "x" * 200])
        made.c.extend(number(32, True) for _ in range(source.randrange(3)))
        if some():
            made.more.a = 5
        return made

    for name, bits, signed in (
        *(("i32", 32, True), ("i64", 64, True), ("u32", 32, False), ("u64", 64, False), ("s32", 32, True)),
        *(("s64", 64, True), ("f32", 32, False), ("f64", 64, False), ("sf32", 32, True), ("sf64", 64, True)),
        *(("maybe", 64, True), ("oi", 64, True)),
    ):
        if some():
            setattr(whole, name, number(bits, signed))
    if some():
        whole.f, whole.d = 1.5, source.choice([0.1, -0.0, math.inf])
    if some():
        whole.b, whole.s, whole.y = True, "Grüße\0", bytes(range(source.randrange(256)))
    if some():
        whole.color, whole.maybe_color = source.choice([1, -3, 77]), source.choice([0, 1, -9])
    if some():
        whole.maybe_s = source.choice(["", "b"])
    for name in ("inner", "om"):
        if some():
            getattr(whole, name).CopyFrom(inner())
    if some():
        whole.os = "s"
    whole.packed.extend(number(32, True) for _ in range(source.choice([0, 0, 1, 40])))
    whole.apart.extend(number(64, False) for _ in range(source.choice([0, 0, 3])))
    whole.doubles.extend(source.random() for _ in range(source.choice([0, 0, 2])))
    whole.texts.extend(source.choice(["", "a", "ß"]) for _ in range(source.choice([0, 0, 2])))
    whole.inners.extend(inner() for _ in range(source.choice([0, 0, 2])))
    whole.colors.extend(source.choice([0, 1, 9]) for _ in range(source.choice([0, 2])))
    whole.flags.extend([True, False][: source.randrange(3)])
    for _ in range(source.choice([0, 0, 3])):
        whole.counts[source.choice("abc")] = number(64, True)
        whole.by_number[number(32, True)].CopyFrom(inner())
    if some():
        whole.at.seconds, whole.at.nanos = source.randrange(-(10**10), 10**10), source.randrange(10**9)
        whole.wrapped.value = source.choice([0, -5])
        whole.times.add().seconds = 5
    if some():
        whole.wrapped_s.value = ""
    return whole


@pytest.mark.parametrize("count", [1, 7, 400])
def test_what_google_writes_is_read_as_google_reads_it(count: int):
    source = random.Random(count)
    messages = [random_whole(source) for _ in range(count)]
    found = [in_order(row) for row in rows(plain(WHOLE), *(each.SerializeToString() for each in messages))]
    assert found == [as_google(each) for each in messages]


@pytest.mark.parametrize("count", [1, 400])
def test_fields_may_come_in_any_order_and_in_parts(count: int):
    """Two messages behind each other are one in which what comes later counts, and messages are put together."""
    source = random.Random(count)
    kind = message(WHOLE_SCHEMA, "shop.v1.Whole")
    lines = [
        b"".join(random_whole(source).SerializeToString() for _ in range(source.randrange(1, 4))) for _ in range(count)
    ]
    found = [in_order(row) for row in rows(plain(WHOLE), *lines)]
    assert found == [as_google(kind.FromString(line)) for line in lines]


def test_what_is_written_is_what_google_and_we_read():
    source = random.Random(5)
    kind = message(WHOLE_SCHEMA, "shop.v1.Whole")
    given_rows = [as_google(random_whole(source)) for _ in range(60)]
    # Numbers without a name are read as digits, which no enum takes.
    given_rows = [
        (*row[:15], "GREEN" if row[15].isdigit() else row[15], *row[16:25], None, *row[26:]) for row in given_rows
    ]
    lines = encode(plain(WHOLE), *((1, row) for row in given_rows))["value"].to_pylist()
    assert [in_order(row) for row in rows(plain(WHOLE), *lines)] == given_rows
    read = [as_google(kind.FromString(line)) for line in lines]
    assert [row[:33] for row in read] == [row[:33] for row in given_rows]


def test_a_message_is_written_byte_for_byte_as_google_writes_it():
    text = 'syntax = "proto3"; message M { int64 a = 1; string s = 2; repeated int32 r = 3; double d = 20; M m = 4; }'
    columns: dict[str, DataType] = {"a": BIGINT, "s": STRING, "d": DOUBLE, "r": Array(INT), "m": Row(("a",), (BIGINT,))}
    sink = plain(columns, text, "M")
    given_rows = [(1, "x", 0.0, [1, -1], {"a": 0}), (0, "", -0.0, None, None), (None, None, None, [], {"a": 2**40})]
    kind = message(text, "M")
    expected = []
    for a, s, d, r, m in given_rows:
        built = kind(a=a, s=s, d=d, r=r)
        if m is not None:
            built.m.SetInParent()
            built.m.a = m["a"]
        expected.append(built.SerializeToString())
    assert encode(sink, *((1, row) for row in given_rows))["value"].to_pylist() == expected


TWO = """
syntax = "proto2";
enum E { A = 1; B = 2; }
message M {
  optional int32 i = 1 [default = 7]; optional string s = 2 [default = "x"]; optional E e = 3 [default = B];
  repeated E es = 4; repeated int32 old = 5; optional bool b = 6; required int64 r = 7;
  optional group G = 9 { optional int32 z = 1; }
}
"""
OF_TWO: dict[str, DataType] = {"i": INT, "s": STRING, "e": STRING, "es": Array(STRING), "old": Array(INT), "b": BOOLEAN}


def test_proto2_knows_what_is_not_written_and_has_defaults_of_its_own():
    kind = message(TWO, "M")
    empty = kind(r=1).SerializeToString()
    assert rows(plain(OF_TWO, TWO, "M"), empty) == [(None, None, None, None, None, None)]
    assert rows(plain(OF_TWO, TWO, "M", read_default_values="true"), empty) == [(7, "x", "B", [], [], False)]
    full = kind(r=1, i=0, s="", e=1, es=[1, 2], old=[1, 2], b=False)
    full.g.z = 5
    assert rows(plain(OF_TWO, TWO, "M"), full.SerializeToString()) == [(0, "", "A", ["A", "B"], [1, 2], False)]


def test_a_closed_enum_takes_a_number_that_it_does_not_know_for_no_value():
    columns: dict[str, DataType] = {"e": STRING, "es": Array(STRING)}
    assert rows(plain(columns, TWO, "M"), b"\x18\x01\x18\x09\x20\x09\x20\x02\x22\x02\x01\x09") == [("A", ["B", "A"])]


def test_defaults_of_proto3_are_read_if_they_are_wanted():
    columns = {name: WHOLE[name] for name in ("i32", "s", "maybe", "inner", "packed", "counts", "os", "at", "color")}
    assert rows(plain(columns), b"") == [(0, "", None, None, None, None, None, None, "RED")]
    wanted = plain(columns, read_default_values="true")
    nothing = {"a": 0, "b": "", "c": []}
    assert rows(wanted, b"") == [(0, "", 0, nothing, [], [], "", datetime(1970, 1, 1), "RED")]


@pytest.mark.parametrize(
    ("kind", "type_", "data", "read"),
    [
        ("int32", BIGINT, b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", -1),
        ("int32", DOUBLE, None, None),
        ("int32", TINYINT, b"\x08\x7f", 127),
        ("int32", SMALLINT, b"\x08\x80\x01", 128),
        ("int32", INT, b"\x08\x80\x80\x80\x80\x20", 0),
        ("uint64", BIGINT, b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 2**63 - 1),
        ("bool", BOOLEAN, b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", True),
        ("float", DOUBLE, b"\x0d" + struct.pack("<f", 1.5), 1.5),
        ("string", BYTES, b"\x0a\x01a", b"a"),
        ("bytes", STRING, b"\x0a\x01a", "a"),
        ("string", Decimal(6, 2), b"\x0a\x05-12.5", Number("-12.50")),
        ("string", DATE, b"\x0a\x0a2024-02-29", date(2024, 2, 29)),
        ("string", DATE, b"\x0a\x00", None),
        ("google.protobuf.Timestamp", Timestamp(0), b"\x0a\x04\x08\x05\x10\x09", datetime(1970, 1, 1, 0, 0, 5)),
        ("google.protobuf.Timestamp", Row(("nanos",), (INT,)), b"\x0a\x04\x08\x05\x10\x09", {"nanos": 9}),
        ("int32", INT, b"\x0b\x0c", 0),
        ("int32", INT, b"\x13\x1b\x08\x05\x1c\x14\x08\x06", 6),
        ("int32", INT, b"\x0d\x01\x02\x03\x04", 0),
        ("int32", INT, b"\x0a\x01a", 0),
        ("repeated int32", Array(INT), b"\x08\x01\x0a\x02\x02\x03\x08\x04\x0a\x00", [1, 2, 3, 4]),
        ("repeated float", Array(FLOAT), b"\x0a\x04" + struct.pack("<f", 2.5), [2.5]),
        ("map<string, string>", Map(STRING, STRING), b"\x0a\x00\x0a\x03\x12\x01v", [("", "v")]),
        ("map<string, int32>", Map(STRING, INT), b"\x0a\x05\x0a\x01a\x10\x01\x0a\x05\x0a\x01a\x10\x02", [("a", 2)]),
    ],
)
def test_a_field_is_read_into_a_column(kind: str, type_: DataType, data: bytes | None, read: Any):
    source = plain({"a": type_}, of_one(kind), "M")
    if data is None:
        assert [each[1] for each in dead(source, b"\x08\x01")] == ["schema-mismatch"]
        return
    # Alone, and among enough that they are read together.
    assert rows(source, data) == [read]
    assert rows(source, *([data] * 100)) == [read] * 100


@pytest.mark.parametrize(
    ("kind", "type_", "data", "reason", "detail"),
    [
        ("int32", INT, b"\x08", "bad-protobuf", "the record ends in the middle of a value (at byte 1)"),
        ("int32", INT, b"\x08\xff", "bad-protobuf", "the record ends in the middle of a value (at byte 1)"),
        ("int32", INT, b"\x10\x01\x08" + b"\xff" * 10 + b"\x01", "bad-protobuf", None),
        ("double", DOUBLE, b"\x09\x01", "bad-protobuf", "the record ends in the middle of a value (at byte 1)"),
        ("string", STRING, b"\x0a\x05ab", "bad-protobuf", None),
        ("string", STRING, b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "bad-protobuf", None),
        ("string", STRING, b"\x0a\x02\xff\xfe", "bad-utf8", "a text is not UTF-8 (at byte 2)"),
        ("int32", INT, b"\x00\x01", "bad-protobuf", "there is no tag of a field (at byte 0)"),
        ("int32", INT, b"\x0c", "bad-protobuf", None),
        ("int32", INT, b"\x0f\x01", "bad-protobuf", None),
        ("int32", INT, b"\x0b\x08\x01", "bad-protobuf", None),
        ("int32", INT, b"\x0b" * 200 + b"\x0c" * 200, "bad-protobuf", None),
        ("int32", INT, b"\x0b\x14", "bad-protobuf", None),
        ("int32", INT, b"\xf8\xff\xff\xff\xff\x01\x01", "bad-protobuf", None),
        ("repeated int32", Array(INT), b"\x0a\x02\x01\xff", "bad-protobuf", None),
        ("repeated int32", Array(INT), b"\x0a\x0b" + b"\xff" * 10 + b"\x01", "bad-protobuf", None),
        ("repeated double", Array(DOUBLE), b"\x0a\x03abc", "bad-protobuf", None),
        ("google.protobuf.Timestamp", Timestamp(3), b"\x0a\x01\x08", "bad-protobuf", None),
        ("google.protobuf.Timestamp", Timestamp(3), b"\x0a\x06\x10\xff\xff\xff\xff\x07", "wrong-type", None),
        ("int32", TINYINT, b"\x08\x80\x01", "wrong-type", "128 is no TINYINT (at byte 1)"),
        ("uint64", BIGINT, b"\x08" + b"\xff" * 9 + b"\x01", "wrong-type", None),
        ("uint32", INT, b"\x08\xff\xff\xff\xff\x0f", "wrong-type", "4294967295 is no INT (at byte 1)"),
        ("string", Decimal(4, 2), b"\x0a\x01x", "wrong-type", "x is no DECIMAL(4, 2) (at byte 2)"),
        ("string", Decimal(4, 2), b"\x0a\x05123.4", "wrong-type", None),
        ("map<string, int32>", Map(STRING, INT), b"\x0a\x03\x0a\x01\xff", "bad-utf8", None),
    ],
)
def test_a_bad_record_is_a_dead_letter_and_its_neighbours_are_not(
    kind: str, type_: DataType, data: bytes, reason: str, detail: str | None
):
    source = plain({"a": type_}, of_one(kind), "M")
    (_, shown, message_text) = dead(source, data)[0]
    assert shown == reason
    assert detail in (message_text, None)
    for many in (1, 100):
        found = decode(source, records(*[b"", data] * many))
        assert found.changes.num_rows == many
        assert found.dead["reason"].to_pylist() == [reason] * many


def test_more_bytes_of_one_message_than_a_stack_holds_are_one_dead_letter():
    line = b"\xa3\x06" * 1_000_000
    assert [each[:2] for each in dead(plain({"i32": INT}), line, b"")] == [(0, "bad-protobuf")]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_bytes_that_nobody_has_written_are_read_as_google_reads_them(drawn: st.DataObject):
    source = random.Random(drawn.draw(st.integers(0, 10**6)))
    kind = message(WHOLE_SCHEMA, "shop.v1.Whole")
    lines: list[bytes] = []
    for _ in range(source.choice([1, 3, 130])):
        hurt = bytearray(random_whole(source).SerializeToString())
        for _ in range(source.randrange(3)):
            if hurt:
                place = source.randrange(len(hurt))
                action = source.randrange(3)
                if action == 0:
                    hurt[place] = source.randrange(256)
                elif action == 1:
                    del hurt[place : place + source.randrange(1, 9)]
                else:
                    hurt[place:place] = bytes(source.randrange(256) for _ in range(source.randrange(1, 9)))
        lines.append(bytes(hurt))
    found = decode(plain(WHOLE), records(*lines))
    refused = {each["offset"]: each["reason"] for each in found.dead.to_pylist()}
    good = iter(shown(found.changes))
    for offset, line in enumerate(lines):
        row = None if offset in refused else in_order(next(good))
        try:
            made = kind.FromString(line)
            theirs = as_google(made)
        except (DecodeError, UnicodeDecodeError, OverflowError, ValueError):
            continue  # a time that Python does not have, or what Google refuses: some of it we need not look at
        if refused.get(offset) != "wrong-type" and not (row is not None and _has_nan(row)):
            # A map's entry with a field that no entry has is none to Google's library for Python, and one to Java's.
            odd = {each.field_number for each in UnknownFieldSet(made)}
            kept = [i for i, name in enumerate(WHOLE) if MAPS.get(name) not in odd]
            assert row is not None, line.hex()
            assert [row[i] for i in kept] == [theirs[i] for i in kept], line.hex()


def _has_nan(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_nan, value.values()))
    return any(map(_has_nan, value)) if isinstance(value, list | tuple) else value != value


def test_nothing_is_read_of_what_no_column_wants():
    line = message(WHOLE_SCHEMA, "shop.v1.Whole")(i32=5, s="x").SerializeToString() + b"\xa2\x01\x01\xff"
    assert rows(plain({"i32": INT}), line) == [5]
    assert [each[1] for each in dead(plain({"i32": INT, "inner": INNER}), line)] == ["bad-protobuf"]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, "shop.v1.Other"),
        ({"message-name": "Inner"}, "shop.v1.Inner"),
        ({"message-name": "shop.v1.Inner"}, "shop.v1.Inner"),
        ({"message-name": "Deep"}, "shop.v1.Other.Deep"),
        ({"message-class-name": "com.shop.Inner"}, "shop.v1.Inner"),
        ({"message-class-name": "com.shop.ShopProtos$Inner"}, "shop.v1.Inner"),
        ({"message-class-name": "com.shop.Other$Deep"}, "shop.v1.Other.Deep"),
        ({"message-class-name": "com.shop.ShopProtos$Other$Deep"}, "shop.v1.Other.Deep"),
        ({"message-name": "Nobody"}, None),
        ({"message-class-name": "com.shop.Nobody"}, None),
    ],
)
def test_a_message_is_named_as_here_or_as_its_class_in_java(options: dict[str, str], found: str | None):
    schema = described(descriptors(WHOLE_SCHEMA))
    name, class_ = options.get("message-name"), options.get("message-class-name")
    if found is None:
        with pytest.raises(ProtobufSchemaError, match="the schema has no message"):
            schema.of_class(class_) if class_ else schema.named(name)
    else:
        assert (schema.of_class(class_) if class_ else schema.named(name)).name == found


def test_a_null_in_an_array_or_a_map_is_written_as_a_default():
    columns: dict[str, DataType] = {"texts": Array(STRING), "packed": Array(INT), "inners": Array(INNER), "i64": BIGINT}
    line = encode(plain(columns, write_null_string_literal="-"), (1, (["a", None], [None, 1], [None], None)))
    (value,) = line["value"].to_pylist()
    parsed = message(WHOLE_SCHEMA, "shop.v1.Whole").FromString(value)
    assert (list(parsed.texts), list(parsed.packed), len(parsed.inners)) == (["a", "-"], [0, 1], 1)


@pytest.mark.parametrize(
    ("columns", "text", "message_text"),
    [
        ({"b": INT}, of_one("int32"), 'column "b" has no field in the message M'),
        ({"a": STRING}, of_one("int32"), 'the field "a", int32, cannot take a column of string'),
        (
            {"a": INT},
            'syntax = "proto2"; message M { required int32 a = 1; }',
            "its column may be NULL",
        ),
        ({"a": INT}, 'syntax = "proto2"; message M { optional int32 a = 1; required int32 b = 2; }', "has no column"),
        ({"a": Array(STRING)}, of_one("repeated int32"), "cannot take a column of string"),
        ({"a": Array(INT)}, of_one("int32"), "cannot take a column of list"),
        ({"a": INT}, of_one("repeated int32"), "cannot take a column of int32"),
        ({"a": INT}, of_one("map<string, int32>"), "cannot take a column of int32"),
    ],
)
def test_columns_that_cannot_be_written_are_refused(columns: dict[str, DataType], text: str, message_text: str):
    made = plain(columns, text, "M")
    assert made.connector.value_format is not None
    with pytest.raises(ProtobufSchemaError, match=message_text):
        check_message_writable(value_part(made), made.connector.value_format)


@pytest.mark.parametrize(
    ("type_", "kind", "value"),
    [(BIGINT, "int32", 2**31), (BIGINT, "uint32", -1), (Decimal(20, 0), "uint64", Number(-1)), (STRING, "E", "NOT")],
)
def test_a_value_that_its_field_cannot_hold_is_not_written(type_: DataType, kind: str, value: Any):
    sink = plain({"a": type_}, of_one(kind, "enum E { NO = 0; }"), "M")
    with pytest.raises(NotEncodable, match=r'^column "a" is .*, which '):
        encode(sink, (1, (value,)))


def test_the_schema_of_a_table_is_made_of_its_columns():
    columns: dict[str, DataType] = {
        "id": BIGINT,
        "at": Timestamp(3),
        "price": Decimal(10, 2),
        "day": DATE,
        "tags": Array(STRING),
        "row": Row(("x", "y"), (INT, Map(STRING, DOUBLE))),
    }
    made = table(columns, "protobuf-confluent", not_null=["id"])
    assert schema_text(value_part(made), Format("protobuf-confluent")) == (
        'syntax = "proto3";\n'
        'import "google/protobuf/timestamp.proto";\n'
        "\n"
        "message Record {\n"
        "  message row_row {\n"
        "    optional int32 x = 1;\n"
        "    map<string, double> y = 2;\n"
        "  }\n"
        "  int64 id = 1;\n"
        "  optional google.protobuf.Timestamp at = 2;\n"
        "  optional string price = 3;\n"
        "  optional string day = 4;\n"
        "  repeated string tags = 5;\n"
        "  optional row_row row = 6;\n"
        "}\n"
    )
    with pytest.raises(ProtobufSchemaError, match=r'column "a b" cannot be the name of a field'):
        schema_text(value_part(table({"a b": INT})), Format("protobuf-confluent"))


def confluent(small: SmallRegistry, columns: Mapping[str, DataType], **more: Any) -> Table:
    """A table of protobuf-confluent."""
    made = table(columns, "protobuf-confluent", **more)

    def form(each: Format | None, part: str) -> Format | None:
        if each is None or "protobuf" not in each.kind:
            return each
        return Format(each.kind, {"subject": f"t-{part}", **each.options}, {"url": small.url})

    given_connector = made.connector
    return replace(
        made,
        connector=replace(
            given_connector,
            key_format=form(given_connector.key_format, "key"),
            value_format=form(given_connector.value_format, "value"),
        ),
    )


def framed(number: int, path: bytes, data: bytes) -> bytes:
    return struct.pack(">bI", 0, number) + path + data


def test_records_go_out_behind_the_id_of_their_schema_and_come_back(registry: SmallRegistry):
    columns: dict[str, DataType] = {
        "k": STRING,
        "v": BIGINT,
        "at": TimestampLtz(3),
        "price": Decimal(10, 2),
        "day": DATE,
        "tags": Array(STRING),
        "row": Row(("x",), (Array(DOUBLE),)),
    }
    sink = confluent(registry, columns, kind="upsert-kafka", key=["k"], key_format=Format("protobuf-confluent"))
    row = ("x", None, datetime(2024, 2, 29, 12), Number("1.50"), date(2024, 2, 29), ["a", "b"], {"x": [1.5]})
    empty = ("z", 0, None, None, None, None, None)
    out = encode(sink, (1, row), (1, empty), (-1, ("y", 2, None, None, None, None, None)))
    assert sorted(registry.subjects) == ["t-key", "t-value"]
    value, key = (registry.subjects[f"t-{part}"][0] for part in ("value", "key"))
    assert registry.schemas[value][1] == "PROTOBUF"
    assert out["value"].to_pylist()[2] is None
    assert all(line.startswith(framed(value, b"\0", b"")) for line in out["value"].to_pylist()[:2])
    assert out["key"].to_pylist() == [framed(key, b"\0", b"\x0a\x01" + k) for k in (b"x", b"z", b"y")]
    again = pa.table(
        {
            **{n: out[n] for n in ("key", "value")},
            **{n: records(b"", b"", b"")[n] for n in ("topic", "partition", "offset")},
        }
    )
    assert shown(decode(sink, again).changes) == [row, empty, (-1, ("y", *[None] * 6))]


def test_a_topic_may_hold_any_message_of_any_schema(registry: SmallRegistry):
    first = registry.add('syntax = "proto3"; message A { int64 id = 1; }', kind="PROTOBUF")
    second = registry.add(
        'syntax = "proto3"; message B { message C { message D { string x = 4; int32 id = 9; } } } message A {}',
        kind="PROTOBUF",
    )
    wrong = registry.add('syntax = "proto3"; message A { string id = 1; }', kind="PROTOBUF")
    avro = registry.add('"string"')
    broken = registry.add("message A {", kind="PROTOBUF")
    source = confluent(registry, {"id": BIGINT, "x": STRING})
    lines = [
        framed(first, b"\0", b"\x08\x01"),
        framed(second, b"\x06\x00\x00\x00", b"\x48\x02"),
        framed(second, b"\x02\x02", b""),
        framed(first, b"\x02\x00", b"\x08\x03"),
        framed(wrong, b"\0", b"\x0a\x01a"),
        framed(avro, b"\0", b""),
        framed(broken, b"\0", b""),
        framed(first, b"\x02\x02", b""),
        framed(first, b"", b""),
        framed(first, b"\x01", b""),
        b"\x01",
        framed(999, b"\0", b""),
        framed(first, b"\0", b"\x08"),
    ] * 40
    found = decode(source, records(*lines))
    assert shown(found.changes) == [(1, None), (2, ""), (None, None), (3, None)] * 40
    letters = [(each["offset"] % 13, each["reason"], each["detail"]) for each in found.dead.to_pylist()][:9]
    assert [each[:2] for each in letters] == [
        (4, "schema-mismatch"),
        (5, "unknown-schema"),
        (6, "unknown-schema"),
        (7, "unknown-schema"),
        (8, "bad-protobuf"),
        (9, "bad-protobuf"),
        (10, "bad-protobuf"),
        (11, "unknown-schema"),
        (12, "bad-protobuf"),
    ]
    assert letters[0][2] == f'schema {wrong}: column "id" is BIGINT, but its field is string'
    assert letters[3][2] == f"schema {first}: the schema has no message at [1]"
    assert letters[8][2] == f"schema {first}: the record ends in the middle of a value (at byte 1)"


def test_a_schema_may_import_others_of_the_registry(registry: SmallRegistry):
    other = registry.add('syntax = "proto3"; package o; message Money { int64 cents = 1; }', "money", "PROTOBUF")
    text = 'syntax = "proto3"; import "lib/money.proto"; message A { o.Money price = 1; }'
    number = registry.add(text, kind="PROTOBUF")
    registry.references[number] = [{"name": "lib/money.proto", "subject": "money", "version": 1}]
    source = confluent(registry, {"price": Row(("cents",), (BIGINT,))})
    assert rows(source, framed(number, b"\0", b"\x0a\x02\x08\x05")) == [{"cents": 5}]
    assert other != number


def test_a_schema_of_ones_own_names_the_message_that_is_written(registry: SmallRegistry):
    text = 'syntax = "proto3"; message A {} message B { message C { int64 v = 3; } }'
    sink = confluent(registry, {"v": BIGINT}, options={"schema": text, "message-name": "C"})
    (line,) = encode(sink, (1, (5,)))["value"].to_pylist()
    (number,) = registry.subjects["t-value"]
    assert line == framed(number, b"\x04\x02\x00", b"\x18\x05")
    assert rows(sink, line) == [5]


def test_a_file_cannot_be_imported_from_elsewhere():
    with pytest.raises(ProtobufSchemaError, match="cannot be imported"):
        compiled('syntax = "proto3";', (("../../etc/x.proto", ""),))
