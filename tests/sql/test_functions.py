"""The table of functions, and what the oracle does not say: zones, $now, mistakes, errors inside TRY."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal

import duckdb
import pytest

from service.plan import types
from service.plan.expressions import render
from service.plan.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, Array, Row, Timestamp, TimestampLtz
from service.sql.errors import SqlError
from service.sql.expressions.sharing import deterministic
from tests.sql.evaluation import SETTINGS, Columns, compiled, computed, evaluated

ROW: Columns = {
    "i": (INT, "7"),
    "big": (BIGINT, "3000000000"),
    "d": (types.Decimal(10, 2), "12.35"),
    "f": (DOUBLE, "2.5"),
    "s": (STRING, "'hello'"),
    "yes": (BOOLEAN, "true"),
    "ts": (Timestamp(3), "TIMESTAMP '2024-03-31 00:30:00.123'"),
    "at": (TimestampLtz(3), "TIMESTAMP '2024-03-31 00:30:00.123'"),
    "day": (DATE, "DATE '2024-01-31'"),
    "r": (Row(("x", "in"), (INT, Row(("y",), (STRING,)))), "{'x': 1, 'in': {'y': 'deep'}}"),
    "a": (Array(INT), "[3, NULL, 5]"),
    "none": (INT, "NULL"),
}


NOW_FUNCTIONS = [
    ("CURRENT_TIMESTAMP", "UTC", datetime(2024, 5, 6, 7, 8, 9, 123000)),
    ("NOW()", "Europe/Berlin", datetime(2024, 5, 6, 7, 8, 9, 123000)),
    ("PROCTIME()", "Europe/Berlin", datetime(2024, 5, 6, 7, 8, 9, 123000)),
    ("LOCALTIMESTAMP", "Europe/Berlin", datetime(2024, 5, 6, 9, 8, 9, 123000)),
    ("CURRENT_TIME", "Europe/Berlin", time(9, 8, 9)),
    ("CURRENT_DATE", "Pacific/Kiritimati", date(2024, 5, 6)),
    ("CURRENT_DATE", "America/Los_Angeles", date(2024, 5, 6)),
    ("UNIX_TIMESTAMP()", "Europe/Berlin", 1714979289),
]


@pytest.mark.parametrize(("text", "zone", "value"), NOW_FUNCTIONS)
def test_now_is_the_time_of_the_batch_and_local_times_are_the_sessions(text, zone, value):
    assert evaluated(text, zone=zone)[0] == value


ZONES = [
    # Summer time began at 01:00 UTC on this day.
    ("CAST(at AS STRING)", "Europe/Berlin", "2024-03-31 01:30:00.123"),
    ("CAST(at + INTERVAL '1' HOUR AS STRING)", "Europe/Berlin", "2024-03-31 03:30:00.123"),
    ("CAST(CAST(ts AS TIMESTAMP_LTZ(3)) AS STRING)", "Asia/Tokyo", "2024-03-31 00:30:00.123"),
    ("CAST(ts AS TIMESTAMP_LTZ(3))", "Asia/Tokyo", datetime(2024, 3, 30, 15, 30, 0, 123000)),
    ("EXTRACT(HOUR FROM at)", "Asia/Tokyo", 9),
    ("DATE_FORMAT(at, 'yyyy-MM-dd HH:mm')", "America/New_York", "2024-03-30 20:30"),
    ("FLOOR(at TO DAY)", "America/New_York", datetime(2024, 3, 30, 4, 0)),
    ("FROM_UNIXTIME(0)", "Asia/Kolkata", "1970-01-01 05:30:00"),
    (
        "TO_TIMESTAMP_LTZ('2024-07-01 12:00:00', 'yyyy-MM-dd HH:mm:ss', 'Europe/Berlin')",
        "UTC",
        datetime(2024, 7, 1, 10),
    ),
]


@pytest.mark.parametrize(("text", "zone", "value"), ZONES)
def test_an_instant_is_shown_by_the_clocks_of_the_session(text, zone, value):
    assert evaluated(text, ROW, zone)[0] == value


VALUES = [
    ("r.x", 1),
    ("t.r.`in`.y", "deep"),
    ("day + INTERVAL '1' MONTH", date(2024, 2, 29)),
    ("ts - INTERVAL '0.123' SECOND", datetime(2024, 3, 31, 0, 30)),
    ("ts + INTERVAL '1 02:03' DAY TO MINUTE", datetime(2024, 4, 1, 2, 33, 0, 123000)),
    ("ts + INTERVAL '1-1' YEAR TO MONTH", datetime(2025, 4, 30, 0, 30, 0, 123000)),
    ("ts - i * INTERVAL '1' SECOND", datetime(2024, 3, 31, 0, 29, 53, 123000)),
    ("a[2]", None),
    ("a[i - 4]", 5),
    ("a[i - 8]", None),
    ("ROW(i, s)", {"EXPR$0": 7, "EXPR$1": "hello"}),
    ("DATE_FORMAT(ts, 'yyyy''{}%''dd')", "2024{}%31"),
    ("CASE i WHEN 7 THEN 'seven' WHEN 8 THEN 'eight' END", "seven"),
    ("IF(none = 1, 1, 2)", 2),
    ("CAST(ROUND(f * 1.1, 1) AS STRING)", "2.8"),
    ("JSON_OBJECT('row' VALUE r, 'list' VALUE a)", '{"list":[3,null,5],"row":{"in":{"y":"deep"},"x":1}}'),
    ("JSON_VALUE('{\"a\":{}}', 'lax $.a' DEFAULT s ON EMPTY)", "hello"),
    ("x'00ff'", b"\x00\xff"),
    ("CURRENT_DATABASE()", "default_database"),
    ("d / 3", Decimal("4.1166666666667")),
    ("REGEXP_EXTRACT(s || '1', '([a-z]+)([0-9]{1})', 2)", "1"),
    ("s SIMILAR TO '(h|H)e[l]{2}_'", True),
    ("CAST(NULL AS INT) + 1", None),
    ("COALESCE(NULL, i)", 7),
    ("+i", 7),
    ("EXTRACT(EPOCH FROM ts)", 1711845000),
    # what an earlier operand decides is decided, even where a later one cannot be computed
    ("i = 7 OR i / (i - 7) > 1", True),
    ("i <> 7 AND i / (i - 7) > 1", False),
    ("i <> 7 AND s = 'hello' AND i / (i - 7) > 1 AND CAST(s AS INT) > 1", False),
    ("s IS NULL OR i / (i - 6) = 7 OR CAST(s AS INT) > 1", True),
    ("i = 7 OR (i <> 7 AND i / (i - 7) > 1) OR CAST(s AS INT) > 1", True),
    ("none > 1 AND i / (i - 6) > 100", False),
    ("none > 1 AND i / (i - 6) = 7", None),
    ("none > 1 OR i / (i - 6) = 7", True),
    ("none > 1 OR none > 2 OR i / (i - 6) > 100", None),
    ("none > 1 AND i / (i - 6) = 7 AND i / (i - 6) > 100", False),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_an_expression_has_a_value(text, value):
    assert evaluated(text, ROW)[0] == value


URL = "http://ann:pw@example.com:8080/p/q?x=1&y=2&x=3&é[=ü&a.b=4&e=&m=n=o#ref"


@pytest.mark.parametrize("part", ["PROTOCOL", "AUTHORITY", "USERINFO", "HOST", "PATH", "QUERY", "REF"])
@pytest.mark.parametrize("url", [URL, "file:/p", "http://h?", "no url", ""])
def test_a_part_of_a_url_that_a_row_names_is_what_a_constant_names(part: str, url: str):
    row: Columns = {"url": (STRING, f"'{url}'"), "part": (STRING, f"'{part}'")}
    assert evaluated("PARSE_URL(url, part)", row) == evaluated(f"PARSE_URL(url, '{part}')", row)
    assert evaluated("PARSE_URL(url, LOWER(part))", row)[0] is None


KEYS = [("x", "1"), ("y", "2"), ("é[", "ü"), ("a.b", "4"), ("a_b", None), ("e", ""), ("m", "n=o"), ("", None)]


@pytest.mark.parametrize(("key", "value"), KEYS)
@pytest.mark.parametrize("call", ["PARSE_URL(url, 'QUERY', {})", "PARSE_URL(url, part, {})"])
def test_a_key_of_a_url_may_come_from_a_row(key: str, value: str | None, call: str):
    row: Columns = {"url": (STRING, f"'{URL}'"), "part": (STRING, "'QUERY'"), "k": (STRING, f"'{key}'")}
    assert evaluated(call.format("k"), row)[0] == value
    assert evaluated(call.format(f"'{key}'"), row)[0] == value


def test_a_part_or_a_key_of_a_url_that_is_null_gives_null():
    row: Columns = {"url": (STRING, f"'{URL}'"), "part": (STRING, "'HOST'"), "none": (STRING, "NULL")}
    for call in ("(url, none)", "(url, NULL)", "(url, 'QUERY', none)", "(url, part, 'x')", "(none, part)"):
        assert evaluated(f"PARSE_URL{call}", row)[0] is None, call


FAILING = [
    "i / (i - 7)",
    "CAST(s AS INT)",
    "big * big * big",
    "CAST(big AS INT)",
    "CAST('maybe' || s AS BOOLEAN)",
    "CAST(s AS DATE)",
    "CAST(d * 1000000000 AS DECIMAL(5, 2))",
    "ELEMENT(a)",
    "JSON_VALUE(s, '$.a' ERROR ON ERROR)",
    "d / (d - d)",
    "i > 0 AND i / (i - 7) > 1",
    "none > 1 OR i / (i - 7) > 1",
    "i / (i - 7) > 1 AND i > 0",
]


@pytest.mark.parametrize("text", FAILING)
def test_what_cannot_be_computed_raises_and_is_null_inside_try(text):
    expression = compiled(text, ROW)
    with pytest.raises((duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException)):
        computed(expression, ROW)
    row = ", ".join(f"CAST({v} AS {types.duckdb(t)}) AS c{i}" for i, (t, v) in enumerate(ROW.values()))
    rendered = render(expression)
    # Twice, because DuckDB would take what two columns share out of TRY if nothing kept it from doing so.
    check = f"SELECT TRY(struct_pack(a := {rendered}, b := [{rendered}])) IS NULL FROM (SELECT {row})"
    with duckdb.connect(config=SETTINGS) as connection:
        assert connection.execute(check).fetchall() == [(True,)]


REFUSED = [
    ("UPER(s)", "the function UPER does not exist", "", 'did you mean "UPPER"?'),
    ("HASH_CODE(s)", "the function HASH_CODE is not supported yet", "MD5 and SHA256 are there", ""),
    ("SUM(i)", "the aggregate SUM is not allowed here", "", "aggregates stand in SELECT and HAVING"),
    (
        "TUMBLE_START(ts, INTERVAL '1' DAY)",
        "TUMBLE_START is not allowed here",
        "",
        "it needs a window in GROUP BY or an OVER clause",
    ),
    ("UPPER(i)", "UPPER cannot be applied to (INT)", "UPPER takes (STRING)", ""),
    ("s + 1", "+ cannot be applied to (STRING, INT)", None, "use CAST"),
    ("i = s", "INT and STRING cannot be compared", "", "use CAST"),
    ("r.z", 'the ROW has no field "z"', "its fields are x, in", ""),
    ("CAST(i AS TIMESTAMP_LTZ(3))", "a value of type INT cannot be cast to TIMESTAMP_LTZ(3)", "", None),
    ("CAST(s AS TIMESTAMP(10))", "10 is not between 0 and 9, in TIMESTAMP(10)", "", ""),
    ("EXTRACT(YEARS_ FROM ts)", '"YEARS_" is no unit of EXTRACT', None, 'did you mean "YEAR"?'),
    ("INTERVAL '5' FORTNIGHT", '"FORTNIGHT" is not a unit of an interval', None, ""),
    ("INTERVAL 'x' DAY", "'x' is not a length of an interval in DAY", "", "write INTERVAL '5' DAY"),
    ("DATE '2024-02-30'", "DATE '2024-02-30' is not a valid DATE", "", "write DATE '2024-12-31'"),
    ("DATE_FORMAT(ts, s)", "the pattern of DATE_FORMAT must be a constant", "", None),
    ("DATE_FORMAT(ts, 'YYYY')", "the letters YYYY in the pattern 'YYYY' are not supported", None, None),
    ("REGEXP(s, '(?=x)')", "the regular expression '(?=x)' cannot be used", None, None),
    ("JSON_VALUE(s, '$..a')", "the JSON path '$..a' is not supported", None, None),
    ("CONVERT_TZ(s, 'UTC', 'Mars')", '"Mars" is not a time zone', "", None),
    ("CASE WHEN i THEN 1 END", "a condition is a BOOLEAN, not INT", "", ""),
    ("COALESCE(i, s)", "COALESCE needs values of one type", "the types are INT, STRING", "use CAST"),
    ("f % f", "a remainder is defined for exact numbers only", "these are DOUBLE and DOUBLE", "CAST to DECIMAL"),
    (
        "DATE_FORMAT(ts, 'yyyy ''at')",
        "the pattern 'yyyy 'at' has a quotation that does not end",
        "it begins with 'at",
        "close it with ', and write '' for the sign itself",
    ),
    (
        "JSON_QUERY(s)",
        "JSON_QUERY takes a text and a path",
        "",
        "write JSON_QUERY(column, '$.field')",
    ),
    ("JSON_VALUE(s, s)", "the path of JSON_VALUE must be a constant", "", "write it out, such as '$.field'"),
    (
        "REGEXP_EXTRACT_ALL(s, '(a)b', 2)",
        "REGEXP_EXTRACT_ALL cannot take group 2 of the pattern '(a)b'",
        "the pattern has 1 group in parentheses",
        "0 takes the whole match",
    ),
    (
        "REGEXP_EXTRACT_ALL(s, s)",
        "the pattern of REGEXP_EXTRACT_ALL must be a constant",
        "",
        "write it out, such as '[a-z]+'",
    ),
    (
        "s LIKE 'a!b' ESCAPE '!'",
        "in the pattern 'a!b' the character ! is not followed by %, _ or !",
        "ESCAPE '!' makes it the sign before them",
        "write !! for the character itself",
    ),
    (
        "TO_TIMESTAMP_LTZ(i, 6)",
        "the precision of TO_TIMESTAMP_LTZ is 0 for seconds or 3 for milliseconds",
        "this is 6",
        "",
    ),
    (
        "EXTRACT(YEAR FROM i)",
        "EXTRACT takes a date or a time, not INT",
        "",
        "write TO_TIMESTAMP_LTZ(number, 3) for milliseconds since 1970",
    ),
    ("a['x']", "the position in an ARRAY is a number, not CHAR(1)", "", ""),
    ("TYPEOF(i, yes)", "the second argument of TYPEOF must be TRUE or FALSE", "", ""),
    ("PARSE_URL(s, 'HOST', s)", "a key of PARSE_URL needs the part 'QUERY'", "", "leave the key out"),
    (
        "PARSE_URL(s, 'PORT')",
        "the part of PARSE_URL must be one of 'PROTOCOL', 'AUTHORITY', 'USERINFO', 'HOST', 'PATH', 'QUERY', 'REF'",
        "",
        "",
    ),
    ("i REGEXP 'x'", None, None, None),
]


@pytest.mark.parametrize(("text", "primary", "detail", "hint"), REFUSED, ids=lambda v: str(v)[:40])
def test_a_mistake_says_what_is_wrong_and_what_to_do(text, primary, detail, hint):
    with pytest.raises(SqlError) as caught:
        compiled(text, ROW)
    for wanted, given in ((primary, str(caught.value)), (detail, caught.value.detail), (hint, caught.value.hint)):
        assert wanted in (None, given)


def test_random_values_are_marked_as_such():
    assert not deterministic(compiled("ROUND(RAND(), 2)"))
    assert not deterministic(compiled("UUID() || 'x'"))
    assert deterministic(compiled("UPPER('x')"))


def test_a_random_value_that_is_named_often_is_drawn_once():
    value, _ = evaluated("ROUND(RAND() * 1000, 0) = ROUND(CAST(CAST(RAND() AS STRING) AS DOUBLE), 30)")
    assert value in (True, False)
    assert render(compiled("ROUND(RAND(), 2)")).count("random()") == 1


def test_the_text_of_nested_casts_does_not_explode():
    nested = "f"
    for _ in range(6):
        nested = f"CAST(CAST({nested} AS STRING) AS DOUBLE)"
    assert len(render(compiled(nested, ROW))) < 20_000
    assert evaluated(nested, ROW)[0] == 2.5


def test_all_mistakes_of_a_call_are_found():
    from service.sql.compiler.compile import compile_expression
    from service.sql.errors import Mistakes
    from service.sql.expressions.context import Context
    from service.sql.parse.dialect import parse_tokens, tokenize
    from service.sql.parse.source import read_source
    from service.sql.scope import Scope

    text = "CONCAT(one, UPER('x'), three)"
    mistakes = Mistakes(read_source("p.sql", text, {}))
    node = parse_tokens(tokenize(text), text, lambda parser: parser._parse_expression())
    with pytest.raises(SqlError, match='"three"') as last:
        compile_expression(node, Scope(), Context(mistakes))
    mistakes.add_error(last.value)
    assert [(m.place.column, m.primary) for m in mistakes.all()] == [
        (8, 'column "one" does not exist'),
        (13, "the function UPER does not exist"),
        (24, 'column "three" does not exist'),
    ]
