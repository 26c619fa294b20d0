"""The format raw: the bytes are the value, as key and as value, both ways."""

from __future__ import annotations

import pytest

from service.plan.table import Format
from service.plan.types import BIGINT, BOOLEAN, BYTES, DOUBLE, INT, SMALLINT, STRING, DataType
from tests.formats.wire import dead, encode, keys, rows, table, values

VALUES: list[tuple[DataType, dict[str, str], bytes, object]] = [
    (STRING, {}, "grüße".encode(), "grüße"),
    (BYTES, {}, b"\x00\xff", b"\x00\xff"),
    (BOOLEAN, {}, b"\x01", True),
    (SMALLINT, {}, b"\x01\x02", 258),
    (INT, {}, b"\xff\xff\xff\xff", -1),
    (BIGINT, {}, b"\x00\x00\x00\x00\x00\x00\x00\x05", 5),
    (BIGINT, {"endianness": "little-endian"}, b"\x05\x00\x00\x00\x00\x00\x00\x00", 5),
    (DOUBLE, {}, b"\x3f\xf8\x00\x00\x00\x00\x00\x00", 1.5),
]


@pytest.mark.parametrize(("type_", "options", "data", "value"), VALUES)
def test_bytes_are_read_and_written_as_the_only_column(
    type_: DataType, options: dict[str, str], data: bytes, value: object
):
    topic = table({"a": type_}, "raw", options)
    assert rows(topic, data) == [value]
    assert encode(topic, (1, [value]))["value"].to_pylist() == [data]


def test_a_number_of_another_width_is_a_dead_letter():
    topic = table({"a": BIGINT}, "raw")
    good = b"\0" * 7 + b"\x07"
    assert rows(topic, good, b"\x01", good) == [7, 7]
    assert dead(topic, good, b"\x01", good) == [(1, "wrong-type", "BIGINT is 8 bytes, but the record has 1 bytes")]


def test_text_that_is_no_utf8_is_a_dead_letter():
    assert dead(table({"a": STRING}, "raw"), b"\xff") == [(0, "bad-utf8", "the value is not UTF-8 text")]


def test_a_raw_key_stands_beside_a_json_value():
    topic = table(
        {"id": STRING, "n": BIGINT}, key_format=Format("raw"), key_fields=("id",), value_fields_include="EXCEPT_KEY"
    )
    assert rows(topic, '{"n":1}', key=[b"ann"]) == [("ann", 1)]
    written = encode(topic, (1, ("ann", 1)))
    assert (keys(written), values(written)) == (["ann"], ['{"n":1}'])


def test_a_raw_key_says_whose_row_is_replaced():
    topic = table(
        {"id": STRING, "n": BIGINT},
        kind="upsert-kafka",
        key=("id",),
        key_format=Format("raw"),
        value_fields_include="EXCEPT_KEY",
    )
    assert rows(topic, '{"n":1}', None, key=[b"ann", b"ann"]) == [("ann", 1), (-1, ("ann", None))]
