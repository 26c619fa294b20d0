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
    ("JSON_QUERY('{\"a\":null}', '$.a' WITH WRAPPER)", None),
    ("JSON_QUERY('{\"a\":null}', '$.a' WITH CONDITIONAL WRAPPER)", None),
    # Text, as Java's libraries have it.
    ("URL_ENCODE('*~ a')", "*%7E+a"),
    ("URL_DECODE('%zz')", None),
    ("URL_DECODE('a%20b+c')", "a b c"),
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
        ("1e", '"1e" is no number'),
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
