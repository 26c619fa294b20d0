"""Rows become keys and values as Flink writes them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal as D

import pytest

from service.formats.registry import encoder
from service.plan import types as t
from service.plan.table import Format
from tests.formats.wire import SQL, changes, encode, keys, table, values

JSON = Format("json")
COLUMNS = {"k": t.INT, "v": t.INT}
INSERT, UPDATE, DELETE = [(1, (1, 10))], [(-1, (1, 10)), (1, (1, 20))], [(-1, (1, 20))]

# What Flink 2.3 writes for these values.
WRITTEN = [
    (t.BOOLEAN, True, "true"),
    (t.TINYINT, -128, "-128"),
    (t.BIGINT, 2**63 - 1, "9223372036854775807"),
    (t.DOUBLE, 1e7, "1.0E7"),
    (t.DOUBLE, 9999999.5, "9999999.5"),
    (t.DOUBLE, 1e-3, "0.001"),
    (t.DOUBLE, 1e-4, "1.0E-4"),
    (t.DOUBLE, 123456789.125, "1.23456789125E8"),
    (t.DOUBLE, 2e22, "2.0E22"),
    (t.DOUBLE, -1.5e-10, "-1.5E-10"),
    (t.DOUBLE, 100.0, "100.0"),
    (t.DOUBLE, -0.0, "-0.0"),
    (t.DOUBLE, 2.2250738585072014e-308, "2.2250738585072014E-308"),
    (t.DOUBLE, 9007199254740992.0, "9.007199254740992E15"),
    (t.DOUBLE, float("nan"), '"NaN"'),
    (t.DOUBLE, float("-inf"), '"-Infinity"'),
    (t.FLOAT, 0.1, "0.1"),
    (t.FLOAT, 16777216.0, "1.6777216E7"),
    (t.FLOAT, 3.4e38, "3.4E38"),
    (t.Decimal(10, 2), D("1.50"), "1.5"),
    (t.Decimal(10, 2), D("100.00"), "1E+2"),
    (t.Decimal(10, 2), D("120.00"), "1.2E+2"),
    (t.Decimal(10, 2), D("0.00"), "0"),
    (t.Decimal(10, 2), D("-0.05"), "-0.05"),
    (t.Decimal(10, 0), D("100"), "1E+2"),
    (t.Decimal(10, 0), D("-7"), "-7"),
    (t.Decimal(20, 10), D("0.0000000270"), "2.7E-8"),
    (t.Decimal(20, 7), D("0.0000010"), "0.000001"),
    (t.Decimal(20, 7), D("-0.0000001"), "-1E-7"),
    (t.Decimal(5, 5), D("-0.00395"), "-0.00395"),
    (t.Decimal(5, 5), D("0.00000"), "0"),
    (t.Decimal(38, 18), D("0.100000000000000005"), "0.100000000000000005"),
    (t.STRING, 'a\x01"\\/\u2028é\b\f\n\r\t\x7f', '"a\\u0001\\"\\\\/\u2028é\\b\\f\\n\\r\\t\x7f"'),
    (t.STRING, "", '""'),
    (t.Text(3, fixed=True), "abc", '"abc"'),
    (t.DATE, date(2020, 1, 1), '"2020-01-01"'),
    (t.Time(3), time(12, 0, 0, 500_000), '"12:00:00.5"'),
    (t.Time(0), time(12, 0, 0), '"12:00:00"'),
    (t.Timestamp(3), datetime(2020, 1, 1, 12), '"2020-01-01 12:00:00"'),
    (t.Timestamp(3), datetime(2020, 1, 1, 12, 0, 0, 120_000), '"2020-01-01 12:00:00.12"'),
    (t.Timestamp(6), datetime(1969, 12, 31, 23, 59, 59, 999_999), '"1969-12-31 23:59:59.999999"'),
    (t.TimestampLtz(3), datetime(2020, 1, 1, 12, 0, 0, 500_000), '"2020-01-01 12:00:00.5Z"'),
    (t.BYTES, b"hi", '"aGk="'),
    (t.Array(t.INT), [1, None, 3], "[1,null,3]"),
    (t.Array(t.Timestamp(3)), [datetime(2020, 1, 1)], '["2020-01-01 00:00:00"]'),
    (t.Map(t.STRING, t.DOUBLE), [("k", 1.0), ('"', None)], '{"k":1.0,"\\"":null}'),
    (t.Row(("x", "y z"), (t.INT, t.Array(t.STRING))), {"x": None, "y z": ["a"]}, '{"x":null,"y z":["a"]}'),
    (t.INT, None, "null"),
    (t.Array(t.INT), None, "null"),
    (t.Row(("x",), (t.INT,)), None, "null"),
]


@pytest.mark.parametrize(("type_", "value", "text"), WRITTEN)
def test_a_value_is_written_as_flink_writes_it(type_, value, text):
    assert values(encode(table({"k": type_}), (1, [value]))) == [f'{{"k":{text}}}']


def test_decimals_are_plain_on_request():
    sink = table({"k": t.Decimal(20, 10)}, options={"encode.decimal-as-plain-number": "true"})
    assert values(encode(sink, (1, [D("0.0000000270")]))) == ['{"k":0.0000000270}']


def test_iso_timestamps_have_a_t():
    sink = table({"a": t.Timestamp(3), "b": t.TimestampLtz(3)}, options={"timestamp-format.standard": "ISO-8601"})
    moment = datetime(2020, 1, 1, 12, 0, 0, 120_000)
    assert values(encode(sink, (1, [moment, moment]))) == [
        '{"a":"2020-01-01T12:00:00.12","b":"2020-01-01T12:00:00.12Z"}'
    ]


def test_nulls_are_left_out_on_request_at_every_depth():
    sink = table(
        {"a": t.INT, "r": t.Row(("x", "y"), (t.INT, t.INT)), "m": t.Map(t.STRING, t.INT), "z": t.INT},
        options={"encode.ignore-null-fields": "true"},
    )
    row = [None, {"x": 1, "y": None}, [("p", None), ("q", 2)], None]
    assert values(encode(sink, (1, row), (1, [None] * 4))) == ['{"r":{"x":1},"m":{"q":2}}', "{}"]


@pytest.mark.parametrize("name", ["it's", 'q"uote', "é", "a b", "sel.ect", "\\", ""])
def test_any_name_will_do(name):
    [text] = values(encode(table({name: t.INT}), (1, [5])))
    assert json.loads(text or "") == {name: 5}


def test_a_row_of_weight_two_is_written_twice():
    assert values(encode(table({"k": t.INT}), (2, [1]), (1, [2]))) == ['{"k":1}', '{"k":1}', '{"k":2}']


def test_an_insert_only_format_refuses_a_retraction():
    with pytest.raises(ValueError, match="insert-only format was given a retraction"):
        encode(table({"k": t.INT}), (-1, [1]))


def test_debezium_writes_an_update_as_one_change_and_a_tombstone_after_a_delete():
    sink = table(COLUMNS, "debezium-json", key=["k"], key_format=JSON, key_fields=("k",))
    assert values(encode(sink, *INSERT)) == ['{"before":null,"after":{"k":1,"v":10},"op":"c"}']
    assert values(encode(sink, *UPDATE)) == ['{"before":{"k":1,"v":10},"after":{"k":1,"v":20},"op":"u"}']
    deleted = encode(sink, *DELETE)
    assert values(deleted) == ['{"before":{"k":1,"v":20},"after":null,"op":"d"}', None]
    assert keys(deleted) == ['{"k":1}', '{"k":1}']


def test_debezium_writes_updates_in_flinks_way_on_request():
    sink = table(COLUMNS, "debezium-json", {"tailrace.update": "d-c"}, key=["k"])
    assert values(encode(sink, *UPDATE)) == [
        '{"before":{"k":1,"v":10},"after":null,"op":"d"}',
        '{"before":null,"after":{"k":1,"v":20},"op":"c"}',
    ]


def test_without_a_key_no_tombstone_and_no_update():
    sink = table(COLUMNS, "debezium-json")
    assert values(encode(sink, *UPDATE)) == [
        '{"before":{"k":1,"v":10},"after":null,"op":"d"}',
        '{"before":null,"after":{"k":1,"v":20},"op":"c"}',
    ]


def test_changelog_says_the_kind_of_each_row():
    sink = table(COLUMNS, "changelog-json", key=["k"])
    assert values(encode(sink, *INSERT, *[(w, (k + 1, v)) for w, (k, v) in UPDATE], (-1, (3, 0)))) == [
        '{"data":{"k":1,"v":10},"op":"+I"}',
        '{"data":{"k":2,"v":10},"op":"-U"}',
        '{"data":{"k":2,"v":20},"op":"+U"}',
        '{"data":{"k":3,"v":0},"op":"-D"}',
    ]


def test_upsert_writes_the_row_of_a_key_or_nothing():
    sink = table(COLUMNS, kind="upsert-kafka", key=["k"], key_format=JSON)
    written = encode(sink, *INSERT, *[(w, (k + 1, v)) for w, (k, v) in UPDATE], (-1, (3, 0)))
    assert keys(written) == ['{"k":1}', '{"k":2}', '{"k":3}']
    assert values(written) == ['{"k":1,"v":10}', '{"k":2,"v":20}', None]


def test_a_row_that_was_only_written_again_travels_as_an_update_of_itself():
    again = [(0, (1, 10))]
    assert values(encode(table(COLUMNS, "debezium-json", key=["k"]), *again)) == [
        '{"before":{"k":1,"v":10},"after":{"k":1,"v":10},"op":"u"}'
    ]
    assert values(encode(table(COLUMNS, kind="upsert-kafka", key=["k"], key_format=JSON), *again)) == ['{"k":1,"v":10}']


def test_neighbours_with_other_keys_are_not_one_update():
    sink = table(COLUMNS, "changelog-json", key=["k"])
    assert [
        v and v[-5:-2] for v in values(encode(sink, (-1, (1, 0)), (1, (2, 0)), (-1, (None, 0)), (1, (None, 1))))
    ] == [
        '"-D',
        '"+I',
        '"-U',
        '"+U',
    ]


def test_rows_whose_key_is_nested_are_one_update_if_their_keys_agree():
    sink = table({"k": t.Array(t.INT), "v": t.INT}, "changelog-json", key=["k"])
    changes = [(-1, ([1, 2], 0)), (1, ([1, 2], 1)), (-1, ([1], 0)), (1, ([3], 0)), (-1, (None, 0)), (1, (None, 1))]
    assert [v and v[-5:-2] for v in values(encode(sink, *changes))] == ['"-U', '"+U', '"-D', '"+I', '"-U', '"+U']


def test_the_key_has_its_own_names_and_may_leave_the_value():
    sink = table(
        {"k_id": t.INT, "v": t.INT},
        key_format=JSON,
        key_fields=("k_id",),
        key_fields_prefix="k_",
        value_fields_include="EXCEPT_KEY",
    )
    written = encode(sink, (1, (1, 2)))
    assert (keys(written), values(written)) == (['{"id":1}'], ['{"v":2}'])


def test_headers_hold_kind_query_and_event_time():
    quiet = replace(table({"k": t.INT, "at": t.Timestamp(3)}, "changelog-json", key=["k"]), rowtime=1)
    sink = replace(quiet, connector=replace(quiet.connector, options={"tailrace.headers": "true"}))
    written = encode(
        sink, (-1, (1, datetime(1970, 1, 1, 0, 0, 1))), (1, (1, datetime(1970, 1, 1, 0, 0, 2))), query="sums"
    )
    headers = [{h["key"]: h["value"] for h in row} for row in written["headers"].to_pylist()]
    assert headers == [
        {"tailrace-kind": b"-U", "tailrace-query": b"sums", "tailrace-event-time": b"1000"},
        {"tailrace-kind": b"+U", "tailrace-query": b"sums", "tailrace-event-time": b"2000"},
    ]


def test_there_are_no_headers_unless_they_are_asked_for():
    sink = table({"k": t.INT})
    assert encode(sink, (1, [1]))["headers"].null_count == 1


def test_written_metadata_goes_beside_the_value():
    sink = table(
        {"v": t.INT, "at": t.TimestampLtz(3), "h": t.Map(t.STRING, t.BYTES)},
        metadata={"at": "timestamp", "h": "headers"},
    )
    [record] = encode(sink, (1, (1, datetime(1970, 1, 1, 0, 0, 5), [("a", b"x")]))).to_pylist()
    assert (record["value"], record["timestamp"]) == (b'{"v":1}', 5000)
    assert {"key": "a", "value": b"x"} in record["headers"]


def test_a_key_that_is_not_written_still_chooses_the_partition():
    sink = table(COLUMNS, "changelog-json", key=["k"])
    made = encoder(sink, (0, 1), "q", None, 7)
    rows = changes(sink, *((1, (i % 5, i)) for i in range(50)))
    chosen = made.encode(rows, SQL)["partition"].to_pylist()
    assert [chosen[i] for i in range(5)] * 10 == chosen
    assert all(0 <= p < 7 for p in chosen)


def test_print_shows_one_line_a_row():
    sink = table({"k": t.INT, "s": t.STRING, "at": t.Timestamp(3)}, kind="print", key=["k"])
    at = datetime(2020, 1, 1)
    assert values(encode(sink, (-1, (1, "a", at)), (1, (1, None, at)))) == [
        "-U[1, a, 2020-01-01T00:00:00]",
        "+U[1, null, 2020-01-01T00:00:00]",
    ]


def test_nothing_is_written_for_nothing():
    assert encode(table({"k": t.INT}, "debezium-json")).num_rows == 0
