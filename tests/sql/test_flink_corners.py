"""Corners of functions where Java or Flink answers otherwise than one would guess; each answer is Flink's."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from service.plan.types import DOUBLE, INT, STRING, Map, Row
from service.sql.pipeline import PipelineErrors, read
from tests.sql.evaluation import Columns, evaluated
from tests.sql.outline import TABLES, mistakes

ROW: Columns = {
    "d": (DOUBLE, "2.5"),
    "i": (INT, "7"),
    "e": (STRING, "''"),
    "sub": (STRING, "'o'"),
    "zone": (STRING, "'Europe/Berlin'"),
    "r": (Row(("b", "a"), (INT, INT)), "{'b': 1, 'a': 2}"),
    "m": (Map(STRING, INT), "map {'b': 1, 'a': 2}"),
}

ANSWERS = [
    # A sign after an exponent's digits is an operator.
    ("1e0+1", 2.0),
    ("d-1e0+2", 3.5),
    ("i*1e0-1", 6.0),
    ("1E1+1E1", 20.0),
    ("1e-1-1.5e+1", -14.9),
    ("'1e0+1'", "1e0+1"),
    # The keys of JSON are sorted; of a key that is given twice the last one counts.
    ("JSON_OBJECT('b' VALUE 1, 'a' VALUE 2)", '{"a":2,"b":1}'),
    ("JSON_OBJECT('a' VALUE 1, 'a' VALUE 2)", '{"a":2}'),
    ("JSON_OBJECT('a' VALUE 1, 'a' VALUE CAST(NULL AS INT) ABSENT ON NULL)", '{"a":1}'),
    ("JSON_STRING(r)", '{"a":2,"b":1}'),
    ("JSON_STRING(m)", '{"a":2,"b":1}'),
    ('JSON_QUERY(\'{"b":1,"a":[{"d":1,"c":2}]}\', \'$\')', '{"a":[{"c":2,"d":1}],"b":1}'),
    ('JSON_QUERY(\'{"a":[{"d":1,"c":2}]}\', \'$.a[*]\' WITH WRAPPER)', '[[{"c":2,"d":1}]]'),
    ("JSON_QUERY('{\"a\":null}', '$.a' WITH WRAPPER)", None),
    ("JSON_QUERY('{\"a\":null}', '$.a' WITH CONDITIONAL WRAPPER)", None),
    # Text, as Java's libraries have it.
    ("URL_ENCODE('*~ a')", "*%7E+a"),
    ("URL_DECODE('%zz')", None),
    ("URL_DECODE('a%20b+c')", "a b c"),
    ("URL_DECODE_RECURSIVE('Hello%2520World')", "Hello World"),
    ("URL_DECODE_RECURSIVE('Hello%252520World', 2)", "Hello%20World"),
    ("URL_DECODE_RECURSIVE('test%253A%25', 10)", "test%3A%"),
    ("URL_DECODE_RECURSIVE('a%zz')", None),
    ("URL_DECODE_RECURSIVE('+')", " "),
    ("URL_DECODE_RECURSIVE(CAST(NULL AS STRING))", None),
    ("IS_VALID_UTF8(x'48656C6C6F')", True),
    ("IS_VALID_UTF8(x'80')", False),
    ("IS_VALID_UTF8(x'EDA080')", False),
    ("IS_VALID_UTF8(x'C080')", False),
    ("IS_VALID_UTF8(CAST(NULL AS BYTES))", None),
    ("MAKE_VALID_UTF8(x'48656C6C6F')", "Hello"),
    ("MAKE_VALID_UTF8(x'')", ""),
    ("MAKE_VALID_UTF8(x'61C262')", "a\ufffdb"),
    # As Java reads them: a surrogate is one mistake, of a number too large each byte is one.
    ("MAKE_VALID_UTF8(x'EDA08041')", "\ufffdA"),
    ("MAKE_VALID_UTF8(x'F4908080')", "\ufffd" * 4),
    ("MAKE_VALID_UTF8(x'E18041F09F98')", "\ufffdA\ufffd"),
    ("MAKE_VALID_UTF8(CAST(NULL AS BYTES))", None),
    # The full names of types are those that a catalog stores.
    ("TYPEOF(i, FALSE)", "INT"),
    ("TYPEOF(e, FALSE)", "STRING"),
    ("TYPEOF(e, TRUE)", "VARCHAR(2147483647)"),
    ("TYPEOF(1.5, TRUE)", "DECIMAL(2, 1) NOT NULL"),
    ("TYPEOF('abc', TRUE)", "CHAR(3) NOT NULL"),
    ("TYPEOF('', TRUE)", None),
    ("TYPEOF(NULL, TRUE)", "NULL"),
    ("TYPEOF(CAST(e AS BYTES), TRUE)", "VARBINARY(2147483647)"),
    ("TYPEOF(CURRENT_TIMESTAMP)", "TIMESTAMP_LTZ(3)"),
    ("TYPEOF(CURRENT_TIMESTAMP, TRUE)", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
    ("TYPEOF(r, TRUE)", "ROW<`b` INT, `a` INT>"),
    ("TYPEOF(m, TRUE)", "MAP<VARCHAR(2147483647), INT>"),
    ("TYPEOF(SPLIT(e, ','), TRUE)", "ARRAY<VARCHAR(2147483647)>"),
    ("FROM_BASE64('YQ')", "a"),
    ("FROM_BASE64('YQ==')", "a"),
    ("LOCATE(sub, 'Hello World', 0)", 5),
    ("LOCATE(sub, 'Hello World', 6)", 8),
    ("LOCATE(e, 'Hello', 5)", 1),
    ("CARDINALITY(SPLIT(e, ','))", 0),
    ("SPLIT_INDEX('a b', e, 1)", "b"),
    ("ARRAY_SLICE(ARRAY[1, 2], 1, 0)", [1]),
    # Patterns without a year start in 1970; a year of two digits is of this century.
    ("TO_TIMESTAMP('12-25', 'MM-dd')", datetime(1970, 12, 25)),
    ("TO_TIMESTAMP('02:03', 'HH:mm')", datetime(1970, 1, 1, 2, 3)),
    ("TO_DATE('12-25', 'MM-dd')", date(1970, 12, 25)),
    ("UNIX_TIMESTAMP('02:03', 'HH:mm')", 7380),
    ("TO_TIMESTAMP('99', 'yy')", datetime(2099, 1, 1)),
    ("TO_TIMESTAMP('25.12.71', 'dd.MM.yy')", datetime(2071, 12, 25)),
    # Names of months and days are read as they are written, and a weekday must be that of its day.
    ("TO_TIMESTAMP('Feb 29 2024', 'MMM dd yyyy')", datetime(2024, 2, 29)),
    ("TO_TIMESTAMP('FEB 29 2024', 'MMM dd yyyy')", None),
    ("TO_TIMESTAMP('Thu 2024-02-29', 'EEE yyyy-MM-dd')", datetime(2024, 2, 29)),
    ("TO_TIMESTAMP('Fri 2024-02-29', 'EEE yyyy-MM-dd')", None),
    ("TO_DATE('2024-02-29 x', 'yyyy-MM-dd')", date(2024, 2, 29)),
    # A text is formatted as SimpleDateFormat reads it: a date and a time, no fraction.
    ("DATE_FORMAT('2024-02-29', 'yyyy')", None),
    ("DATE_FORMAT('2024-02-29 01:02:03.789', 'HH:mm:ss.SSS')", "01:02:03.000"),
    # What is almost JSON is none; in a text anything may stand.
    ("'[1, 2, ]' IS JSON", False),
    ("'{\"a\":1,}' IS JSON OBJECT", False),
    ("'[NaN]' IS JSON", False),
    ("'{\"a\":-Infinity}' IS JSON", False),
    ('\'["a,]", "NaN", "\\",]", null, false, 1e5]\' IS JSON ARRAY', True),
    # Text of a distance from UTC: newer functions pass it over, older ones count with it.
    ("TO_TIMESTAMP('2024-02-29T01:02:03+02:00', 'yyyy-MM-dd''T''HH:mm:ssXXX')", datetime(2024, 2, 29, 1, 2, 3)),
    ("TO_TIMESTAMP_LTZ('2024-02-29 01:02:03Z', 'yyyy-MM-dd HH:mm:ssX')", datetime(2024, 2, 29, 1, 2, 3)),
    ("TO_TIMESTAMP('2024-02-29 01:02:03', 'yyyy-MM-dd HH:mm:ssX')", datetime(2024, 2, 29, 1, 2, 3)),
    ("TO_TIMESTAMP('Thu 2024-02-29 -05', 'EEE yyyy-MM-dd X')", datetime(2024, 2, 29)),
    ("UNIX_TIMESTAMP('1970-01-01 02:00:00 +02', 'yyyy-MM-dd HH:mm:ss X')", 0),
    ("UNIX_TIMESTAMP('1970-01-01 02:00:00 +0130', 'yyyy-MM-dd HH:mm:ss XX')", 1800),
    ("UNIX_TIMESTAMP('1970-01-01 02:00:00 -05:30', 'yyyy-MM-dd HH:mm:ss XXX')", 27000),
    ("UNIX_TIMESTAMP('1970-01-01 02:00:00 -0530', 'yyyy-MM-dd HH:mm:ss Z')", 27000),
    ("UNIX_TIMESTAMP('1970-01-01 02:00:00 Z', 'yyyy-MM-dd HH:mm:ss X')", 7200),
    # A zone of a row that is none is UTC.
    ("CONVERT_TZ('1970-01-01 00:00:00', 'UTC', zone)", "1970-01-01 01:00:00"),
    ("CONVERT_TZ('1970-01-01 00:00:00', zone, 'America/Los_Angeles')", "1969-12-31 15:00:00"),
    ("CONVERT_TZ('1970-01-01 00:00:00', 'UTC', sub)", "1970-01-01 00:00:00"),
    ("CONVERT_TZ('1970-01-01 00:00:00', 'UTC', 'GMT-08:00')", "1969-12-31 16:00:00"),
    # Months are those between the days, one less where the days fit and the hour is earlier.
    ("TIMESTAMPDIFF(MONTH, TIMESTAMP '2024-03-15 12:00:00', TIMESTAMP '2024-02-15 06:00:00')", -2),
    ("TIMESTAMPDIFF(MONTH, TIMESTAMP '2024-03-15 06:00:00', TIMESTAMP '2024-02-15 12:00:00')", -1),
    ("TIMESTAMPDIFF(MONTH, TIMESTAMP '2024-02-15 12:00:00', TIMESTAMP '2024-03-15 06:00:00')", 0),
    ("TIMESTAMPDIFF(MONTH, DATE '2024-01-31', DATE '2024-02-29')", 1),
    ("CASE i WHEN 1, 2 THEN 'few' WHEN 7, 8 THEN 'many' END", "many"),
    # The separators are regular expressions; what is empty at the end is no entry, of one key the last value counts.
    ("STR_TO_MAP('a=1,b=2')", {"a": "1", "b": "2"}),
    ("STR_TO_MAP('a:1;b:2;c;a:3;;', ';', ':')", {"b": "2", "c": None, "a": "3"}),
    ("STR_TO_MAP('a=1=2|b=', '[|]', '=')", {"a": "1=2", "b": ""}),
    ("STR_TO_MAP('a  1', ',', '( )+')", {"a": "1"}),
    ("STR_TO_MAP(e)", {}),
    ("MAP_UNION(MAP['a', 1], MAP['b', 2, 'a', 3])", {"a": 3, "b": 2}),
    ("MAP_KEYS(MAP_UNION(MAP['z', 1, 'a', 1], MAP['b', 2, 'a', 3]))", ["z", "a", "b"]),
    ("ARRAY_DISTINCT(ARRAY[ARRAY[2], NULL, ARRAY[1, NULL], ARRAY[2], NULL])", [[2], None, [1, None]]),
    ("ARRAY_DISTINCT(ARRAY[CAST(2 AS DOUBLE), -CAST(0 AS DOUBLE), 0, 2])", [2.0, -0.0]),
    ("ARRAY_INTERSECT(ARRAY['b', NULL, 'a', 'b', NULL], ARRAY[NULL, 'b', 'b'])", ["b", None]),
    ("ARRAY_EXCEPT(ARRAY['c', NULL, 'a', 'c', NULL], ARRAY['a', 'x'])", ["c", None]),
    ("ARRAY_UNION(ARRAY[ROW(1, 'a'), ROW(0, 'b')], ARRAY[ROW(0, 'b'), ROW(2, 'c')])[3]", {"EXPR$0": 2, "EXPR$1": "c"}),
    ("MAP_UNION(MAP['a', 1], CAST(NULL AS MAP<STRING, INT>))", None),
    ("ARRAY_SORT(ARRAY[2, NULL, 1], TRUE, FALSE)", [1, 2, None]),
    ("ARRAY_SORT(ARRAY[2, NULL, 1], FALSE, TRUE)", [None, 2, 1]),
    ("JSON_QUOTE('a\"b/\\ü😀')", '"a\\"b\\/\\\\\\u00fc\\ud83d\\ude00"'),
    ('JSON_QUERY(\'{"a":[1,null,{"z":1,"b":2}]}\', \'$.a\' RETURNING ARRAY<STRING>)', ["1", None, '{"b":2,"z":1}']),
    ("JSON_QUERY('{\"a\":{\"b\":1}}', '$.a' RETURNING ARRAY<STRING> WITH WRAPPER)", ['{"b":1}']),
    ("JSON_QUERY('{\"a\":{\"b\":1}}', '$.a' RETURNING ARRAY<STRING> EMPTY ARRAY ON ERROR)", []),
    ("PRINTF('%05d|%-4s|%4s|%,d|%+d|%x', -3, 'ab', 'cd', 1234567, i, -1)", "-0003|ab  |  cd|1,234,567|+7|ffffffff"),
    ("PRINTF('%.2f|%6.1f|%.0f', 2.675e0, d, 1e30)", "2.68|   2.5|1000000000000000019884624838656"),
    ("PRINTF('%s %d %b%%', CAST(NULL AS STRING), CAST(NULL AS INT), TRUE)", "null null true%"),
    ("(TIME '09:00:00', TIME '10:00:00') OVERLAPS (TIME '10:15:00', INTERVAL '3' HOUR)", False),
    ("(DATE '2024-01-01', DATE '2023-01-01') OVERLAPS (DATE '2024-01-01', INTERVAL '1' DAY)", True),
]


@pytest.mark.parametrize(("text", "value"), ANSWERS)
def test_a_corner_is_answered_as_flink_answers_it(text, value):
    assert evaluated(text, ROW)[0] == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # The clocks of Berlin showed this time at 00:30 and again at 01:30 UTC.
        ("CAST(TIMESTAMP '2024-10-27 02:30:00' AS TIMESTAMP_LTZ(3))", datetime(2024, 10, 27, 0, 30)),
        ("CAST('2024-10-27 02:30:00' AS TIMESTAMP_LTZ(3))", datetime(2024, 10, 27, 0, 30)),
        ("CAST(TIMESTAMP '2024-10-27 03:30:00' AS TIMESTAMP_LTZ(3))", datetime(2024, 10, 27, 2, 30)),
        ("CAST(TIMESTAMP '2024-10-27 01:30:00' AS TIMESTAMP_LTZ(3))", datetime(2024, 10, 26, 23, 30)),
        (
            "TO_TIMESTAMP_LTZ('2024-10-27 02:30:00', 'yyyy-MM-dd HH:mm:ss', 'Europe/Berlin')",
            datetime(2024, 10, 27, 0, 30),
        ),
        # They never showed this one.
        ("CAST(TIMESTAMP '2024-03-31 02:30:00' AS TIMESTAMP_LTZ(3))", datetime(2024, 3, 31, 1, 30)),
        ("UNIX_TIMESTAMP('2024-10-27 02:30:00')", 1729992600),
    ],
)
def test_a_local_time_that_comes_twice_is_the_first_but_for_older_functions(text, value):
    assert evaluated(text, zone="Europe/Berlin")[0] == value


@pytest.mark.parametrize(
    ("text", "primary"),
    [
        ("1e", '"1e" is not a number'),
        ("1e400", "the number 1e400 is too large for a DOUBLE"),
    ],
)
def test_a_number_that_is_none_is_a_mistake(text, primary):
    assert mistakes(f"SELECT {text} FROM a")[0].startswith(primary)


def test_a_mistake_behind_such_a_number_has_its_own_place():
    with pytest.raises(PipelineErrors) as raised:
        read(f"{TABLES} EXPLAIN SELECT 1e0+1, 2e0-nosuch FROM a")
    (mistake,) = raised.value.mistakes
    assert mistake.place.column == len(" EXPLAIN SELECT 1e0+1, 2e0-") + 1
