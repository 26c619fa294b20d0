"""JSON is read as Flink reads it, value by value, whatever stands beside it and in whatever mode."""

from __future__ import annotations

import json
from datetime import date, datetime, time
from decimal import Decimal as D

import pytest

from service.plan import types as t
from service.plan.table import Format
from tests.formats.wire import dead, decode, records, rows, shown, table

# What Flink 2.3 reads from these records, unless a comment says that it is stricter here on purpose.
READ = [
    (t.INT, "12", 12),
    (t.INT, '" 12 "', 12),
    (t.INT, '"+12"', 12),
    (t.INT, "1e3", 1000),
    (t.INT, "3.0", 3),
    (t.INT, "-2147483648", -(2**31)),
    (t.BIGINT, "9223372036854775807", 2**63 - 1),
    (t.TINYINT, '"-128"', -128),
    (t.BOOLEAN, "true", True),
    (t.BOOLEAN, '"TRUE"', True),
    (t.BOOLEAN, "false", False),
    (t.DOUBLE, "100", 100.0),
    (t.DOUBLE, "0", 0.0),
    (t.DOUBLE, "1", 1.0),
    (t.DOUBLE, '"1.5"', 1.5),
    (t.DOUBLE, '"Infinity"', float("inf")),
    (t.DOUBLE, "123456789012345678901234567890", 123456789012345678901234567890.0),
    (t.FLOAT, "0.5", 0.5),
    (t.STRING, '"é😀\\u00e9\\n\\""', 'é😀é\n"'),
    (t.STRING, '"1.50"', "1.50"),
    (t.STRING, "1.50", "1.50"),
    (t.STRING, "-0", "-0"),
    (t.STRING, "1E5", "1E5"),
    (t.STRING, "12345678901234567890123", "12345678901234567890123"),
    (t.STRING, "true", "true"),
    (t.STRING, '{"a": 1, "b": [1, "x\\/y"]}', '{"a":1,"b":[1,"x/y"]}'),
    (t.STRING, '""', ""),
    (t.STRING, '"{}"', "{}"),
    (t.STRING, '"a\tb"', "a\tb"),
    (t.Text(2), '"long"', "long"),
    (t.Decimal(10, 2), "1.005", D("1.01")),
    (t.Decimal(10, 2), "-2.345", D("-2.35")),
    (t.Decimal(10, 2), '" 1.5 "', D("1.50")),
    (t.Decimal(38, 18), "0.100000000000000005", D("0.100000000000000005")),
    (t.Decimal(38, 0), "99999999999999999999999999999999999999", D("99999999999999999999999999999999999999")),
    (t.Decimal(20, 8), "12345678.12345678", D("12345678.12345678")),
    (t.Decimal(10, 9), "1e-9", D("0.000000001")),
    (t.DATE, '"2020-02-29"', date(2020, 2, 29)),
    (t.Time(0), '"12:30:01"', time(12, 30, 1)),
    (t.Time(3), '"12:30:01.5"', time(12, 30, 1, 500_000)),
    (t.Timestamp(3), '"2020-01-01 12:00:00.120"', datetime(2020, 1, 1, 12, 0, 0, 120_000)),
    (t.Timestamp(6), '"2020-01-01 12:00:00.123456789"', datetime(2020, 1, 1, 12, 0, 0, 123_456)),
    (t.Timestamp(3), '"2020-01-01 12:00:00.123456"', datetime(2020, 1, 1, 12, 0, 0, 123_000)),
    (t.Timestamp(0), '"1969-12-31 23:59:59.9"', datetime(1969, 12, 31, 23, 59, 59)),
    (t.TimestampLtz(3), '"2020-01-01 12:00:00.5Z"', datetime(2020, 1, 1, 12, 0, 0, 500_000)),
    (t.BYTES, '"aGk="', b"hi"),
    (t.BYTES, '""', b""),
    (t.Array(t.INT), '[1, null, "3"]', [1, None, 3]),
    (t.Array(t.Array(t.DOUBLE)), "[[1], []]", [[1.0], []]),
    (t.Map(t.STRING, t.INT), '{"a": 1, "b": null}', [("a", 1), ("b", None)]),
    (t.Map(t.STRING, t.INT), '{"a": 1, "a": 2}', [("a", 2)]),
    (t.Row(("x", "y"), (t.INT, t.STRING)), '{"y": 1.50, "z": 0}', {"x": None, "y": "1.50"}),
    (t.Row(("x", "X"), (t.INT, t.INT)), '{"X": 1, "x": 2}', {"x": 2, "X": 1}),
    (t.INT, "null", None),
    (t.Array(t.INT), "null", None),
]

WRONG = [
    (t.INT, "3.7", "wrong-type"),  # Flink reads 3.
    (t.INT, '"3.7"', "wrong-type"),
    (t.INT, "true", "wrong-type"),
    (t.INT, '"abc"', "wrong-type"),
    (t.INT, '""', "wrong-type"),
    (t.INT, "[1]", "wrong-type"),
    (t.INT, "2147483648", "bad-value"),
    (t.INT, "1e1000000", "bad-value"),
    (t.BIGINT, "9223372036854775808", "bad-value"),
    (t.TINYINT, "128", "bad-value"),
    (t.BOOLEAN, '"yes"', "wrong-type"),  # Flink reads false.
    (t.BOOLEAN, "1", "wrong-type"),  # Flink reads false.
    (t.DOUBLE, "true", "wrong-type"),
    (t.DOUBLE, "false", "wrong-type"),
    (t.DOUBLE, '"nan"', "wrong-type"),
    (t.DOUBLE, '"x"', "wrong-type"),
    (t.Decimal(5, 2), "12345.67", "bad-value"),  # Flink reads NULL.
    (t.Decimal(5, 2), "true", "wrong-type"),
    (t.DATE, '"2020-1-1"', "wrong-type"),
    (t.DATE, '"2020-02-30"', "wrong-type"),
    (t.Time(0), '"12:00"', "wrong-type"),
    (t.Timestamp(3), '"2020-01-01T12:00:00"', "wrong-type"),
    (t.Timestamp(3), '"2020-01-01 12:00"', "wrong-type"),
    (t.Timestamp(3), '"2020-01-01"', "wrong-type"),
    (t.Timestamp(3), '"2020-02-30 12:00:00"', "wrong-type"),  # Flink reads 29 February.
    (t.Timestamp(3), '"2020-01-01 12:00:00+02:00"', "wrong-type"),
    (t.Timestamp(3), '"2020-01-01 12:00:00Z"', "wrong-type"),
    (t.Timestamp(3), "1577880000000", "wrong-type"),
    (t.TimestampLtz(3), '"2020-01-01 12:00:00"', "wrong-type"),
    (t.TimestampLtz(3), '"2020-01-01 12:00:00+01:00"', "wrong-type"),
    (t.BYTES, '"aGk"', "wrong-type"),
    (t.BYTES, "1", "wrong-type"),
    (t.BYTES, "1234", "wrong-type"),
    (t.BYTES, "true", "wrong-type"),
    (t.Array(t.BYTES), '["aGk=", true]', "wrong-type"),
    (t.Array(t.INT), "1", "wrong-type"),
    (t.Array(t.INT), "[1.5]", "wrong-type"),
    (t.Map(t.STRING, t.INT), "[1]", "wrong-type"),
    (t.Row(("x",), (t.INT,)), "7", "wrong-type"),
    (t.Row(("x",), (t.INT,)), '{"x": "a"}', "wrong-type"),
]


@pytest.mark.parametrize(("type_", "text", "value"), READ)
def test_a_value_is_read_as_flink_reads_it(type_, text, value):
    assert rows(table({"k": type_}), f'{{"k":{text}}}') == [value]


@pytest.mark.parametrize(("type_", "text", "reason"), WRONG)
def test_a_value_of_another_type_is_dead_and_says_which_column(type_, text, reason):
    [(offset, found, detail)] = dead(table({"k": type_}), f'{{"k":{text}}}')
    assert (offset, found) == (0, reason)
    assert 'column "k' in detail


@pytest.mark.parametrize("other", ['{"k":null}', "{}", '{"k":0', '{"k":7,"k":8}'])
@pytest.mark.parametrize(("type_", "text", "value"), READ)
def test_what_stands_beside_a_record_does_not_change_how_it_is_read(type_, text, value, other):
    found = decode(table({"k": type_}), records(f'{{"k":{text}}}', other))
    assert shown(found.changes)[0] == value


@pytest.mark.parametrize("other", ['{"k":null}', "{}", '{"k":0', '{"k":7,"k":8}'])
@pytest.mark.parametrize(("type_", "text", "reason"), WRONG)
def test_a_wrong_value_is_dead_whatever_stands_beside_it(type_, text, reason, other):
    assert dead(table({"k": type_}), other, f'{{"k":{text}}}')[-1][:2] == (1, reason)


NO_OBJECT = [
    *("", " ", "{", '{"k":1', '{"k":1,}', '{"k":1}}', '{"k":1} x', '{"k":NaN}', "[1]", "1", "null", "{'k':1}"),
    *('{"k":"\\ud83d"}', "\ufeff{}", '{"k":01}', "[" * 100_000),
]


@pytest.mark.parametrize("text", NO_OBJECT)
def test_a_record_that_is_no_json_object_is_dead(text):
    assert [reason for _, reason, _ in dead(table({"k": t.STRING}), text)] == ["bad-json"]


def test_bytes_that_are_no_text_are_dead_and_kept():
    bad = decode(table({"k": t.INT}), records('{"k":1}', b'{"k":\xff}', '{"k":2}')).dead.to_pylist()
    assert [(r["reason"], r["value"], r["topic"], r["partition"], r["offset"]) for r in bad] == [
        ("bad-utf8", b'{"k":\xff}', "t", 3, 1)
    ]


def test_bad_records_leave_their_neighbours_alone_and_in_order():
    source = table({"a": t.INT, "b": t.STRING})
    texts: list[bytes | str | None] = [f'{{"a":{i},"b":"{i}"}}' for i in range(5000)]
    bad: dict[int, bytes | str] = {7: "{", 8: '{"a":"x"}', 4000: b"\xff", 4001: '{"a":1.5,"b":"q"}', 4999: "[]"}
    for place, text in bad.items():
        texts[place] = text
    found = decode(source, records(*texts))
    assert shown(found.changes) == [(i, str(i)) for i in range(5000) if i not in bad]
    assert found.dead["offset"].to_pylist() == list(bad)


def test_a_missing_field_is_null_unless_missing_fields_fail():
    columns = {"a": t.INT, "b": t.INT}
    assert rows(table(columns), '{"a":1}', '{"b":2}') == [(1, None), (None, 2)]
    failing = table(columns, options={"fail-on-missing-field": "true"})
    assert dead(failing, '{"a":1,"b":null}', '{"a":1}') == [(1, "missing-field", 'field "b" is missing')]


def test_a_missing_value_of_a_not_null_column_is_dead():
    source = table({"a": t.INT, "b": t.INT}, not_null=["b"])
    assert dead(source, '{"a":1,"b":1}', '{"a":1}', '{"a":1,"b":null}') == [
        (1, "missing-not-null", 'column "b" is NOT NULL, but has no value'),
        (2, "missing-not-null", 'column "b" is NOT NULL, but has no value'),
    ]


def test_names_are_case_sensitive_even_beside_each_other():
    assert rows(table({"a": t.INT, "A": t.INT}), '{"A":1,"a":2}') == [(2, 1)]
    assert rows(table({"a": t.INT}), '{"A":1}') == [None]


@pytest.mark.parametrize("name", ["it's", 'q"uote', "é", "a b", "sel.ect", "[x]", "\\", "ключ", "$", ""])
def test_any_name_will_do(name):
    text = json.dumps({"x": 0, name: 5})
    assert rows(table({name: t.INT}), text, json.dumps({name: 6}, ensure_ascii=False), "{}") == [5, 6, None]


def test_the_last_of_a_repeated_name_counts():
    assert rows(table({"a": t.INT, "b": t.INT}), '{"a":1,"a":2,"b":3}', '{"b":1}') == [(2, 3), (None, 1)]
    assert rows(table({"a": t.INT}), '{"\\u0061":1,"a":2}', "{}") == [2, None]


def test_parse_errors_that_are_ignored_become_null_or_pass_over_the_record():
    source = table({"a": t.INT, "b": t.Array(t.INT)}, options={"ignore-parse-errors": "true"})
    found = decode(source, records('{"a":"x","b":[1,"y"]}', "{", '{"a":1}'))
    assert shown(found.changes) == [(None, [1, None]), (1, None)]
    assert found.dead.num_rows == 0


def test_iso_timestamps_have_a_t_and_may_leave_the_seconds_out():
    source = table({"a": t.Timestamp(3), "b": t.TimestampLtz(3)}, options={"timestamp-format.standard": "ISO-8601"})
    assert rows(source, '{"a":"2020-01-01T12:00:00.5","b":"2020-01-01T12:00:00Z"}', '{"a":"2020-01-01T12:00"}') == [
        (datetime(2020, 1, 1, 12, 0, 0, 500_000), datetime(2020, 1, 1, 12)),
        (datetime(2020, 1, 1, 12), None),
    ]
    assert dead(source, '{"a":"2020-01-01 12:00:00"}')[0][1] == "wrong-type"


def test_a_record_without_a_value_is_dead_in_a_format_that_only_adds_rows():
    assert [d[:2] for d in dead(table({"k": t.INT}), '{"k":1}', None)] == [(1, "tombstone")]


def test_metadata_columns_come_from_the_record():
    source = table(
        {"p": t.INT, "k": t.INT, "ts": t.TimestampLtz(3), "h": t.Map(t.STRING, t.BYTES), "o": t.BIGINT, "tt": t.STRING},
        metadata={"p": "partition", "ts": "timestamp", "h": "headers", "o": "offset", "tt": "timestamp-type"},
    )
    found = rows(
        source,
        '{"k":1}',
        timestamp=[datetime(2020, 1, 1)],
        timestamp_type=[0],
        headers=[[{"key": "a", "value": b"x"}, {"key": "a", "value": b"y"}]],
    )
    assert found == [(3, 1, datetime(2020, 1, 1), [("a", b"y")], 0, "CreateTime")]


def test_only_the_wanted_columns_are_read_in_the_wanted_order():
    source = table({"a": t.INT, "b": t.INT, "c": t.INT})
    assert shown(decode(source, records('{"a":"not read","b":2,"c":3}'), [2, 1]).changes) == [(3, 2)]
    assert shown(decode(source, records('{"a":1}', "{}"), []).changes) == [(), ()]


def test_a_block_may_be_empty():
    found = decode(table({"a": t.INT, "b": t.Array(t.INT)}), records())
    assert (found.changes.num_rows, found.dead.num_rows) == (0, 0)
    assert found.changes.schema.names == ["c0", "c1", "_weight"]


def test_key_columns_are_read_from_the_key_when_the_value_has_them_not():
    source = table(
        {"k_id": t.INT, "v": t.STRING},
        key_format=Format("json"),
        key_fields=("k_id",),
        key_fields_prefix="k_",
        value_fields_include="EXCEPT_KEY",
    )
    assert rows(source, '{"v":"a","k_id":9}', '{"v":"b"}', key=[b'{"id":1}', None]) == [(1, "a"), (None, "b")]
    assert [d[:2] for d in dead(source, '{"v":"a"}', key=[b"\xff"])] == [(0, "bad-utf8")]


WIDE = {f"c{i}": t.BIGINT for i in range(40)}
NESTED: dict[str, t.DataType] = {"r": t.Row(tuple(f"c{i}" for i in range(40)), (t.BIGINT,) * 40), "n": t.BIGINT}


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ('{"c0":1,"c1":2}', 1),
        ('{"c0":1,"c1":2,"c0":3}', 3),
        ('{"c0":1,"unread":{"c0":7,"c0":8},"c1":2}', 1),
        ('{"\\u00630":1,"c0":5}', 5),
    ],
)
def test_of_a_name_that_repeats_in_a_wide_record_the_last_one_counts(text: str, first: int):
    (row,) = rows(table(WIDE), text)
    assert row[0] == first


@pytest.mark.parametrize(
    ("text", "first"), [('{"r":{"c0":1}}', 1), ('{"r":{"c0":1,"c0":2}}', 2), ('{"r":{"c0":1},"n":1,"r":{"c0":3}}', 3)]
)
def test_of_a_name_that_repeats_in_a_wide_row_the_last_one_counts(text: str, first: int):
    ((row, _),) = rows(table(NESTED), text)
    assert row["c0"] == first
