"""The mistakes of a wrong query: what, what we know, what to do. Each mistake once, and all of them."""

from __future__ import annotations

import pytest

from operators.aggregates.functions import AGGREGATES
from service.sql.expressions.aggregate_types import AGGREGATES as AGGREGATE_TYPES
from service.sql.pipeline import PipelineErrors, read
from tests.sql.outline import TABLES, mistakes

LOST = (
    "a time attribute is declared with its table, and lost in a regular join, a window, an aggregate or an expression"
)


@pytest.mark.parametrize(
    ("query", "mistake"),
    [
        (
            "SELECT amout FROM pay",
            'column "amout" does not exist in "pay"\n  detail: pay has the columns who, amount, id, ts, at\n'
            '  hint:   did you mean "amount"?',
        ),
        (
            "SELECT payy.amount FROM pay",
            'table or column "payy" does not exist here\n  detail: the query reads pay\n  hint:   did you mean "pay"?',
        ),
        (
            "SELECT Amount FROM pay",
            'column "Amount" does not exist in "pay"\n  detail: pay has the columns who, amount, id, ts, at\n'
            '  hint:   did you mean "amount"?',
        ),
        (
            "SELECT ts FROM pay JOIN ship ON id = pay_id",
            'column "ts" is ambiguous\n  detail: it is a column of pay and of ship\n  hint:   write pay.ts or ship.ts',
        ),
        (
            "SELECT * FROM payments",
            'table "payments" does not exist\n  detail: known here: pay, ship, item, shelf, a, b',
        ),
        ("SELECT x.* FROM a", "x.* stands for no columns\n  detail: the query reads a"),
        (
            "SELECT a2 FROM a GROUP BY a1",
            'column "a2" is neither grouped by nor aggregated\n  detail: the query groups by a1\n'
            "  hint:   add a2 to GROUP BY, or take MAX(a2)",
        ),
        (
            "SELECT a2, COUNT(*) FROM a",
            'column "a2" is neither grouped by nor aggregated\n  detail: the query has one group, of all rows\n'
            "  hint:   add a2 to GROUP BY, or take MAX(a2)",
        ),
        (
            "SELECT COUNT(*) FROM a GROUP BY 1",
            "GROUP BY takes columns and expressions, not positions\n  hint:   write the expression itself",
        ),
        (
            "SELECT COUNT(*) FROM a GROUP BY SUM(a1)",
            "an aggregate cannot be grouped by\n  detail: it is computed of each group\n"
            "  hint:   aggregate in a query inside FROM, and group by its column",
        ),
        ("SELECT 1 WHERE TRUE", "WHERE needs FROM\n  detail: without it the query has one row"),
        (
            "SELECT GROUPING(a2) FROM a GROUP BY ROLLUP (a1)",
            "GROUPING is about what the query groups by, and this is not among it",
        ),
        (
            "SELECT GROUPING(a1) FROM a",
            "GROUPING is not allowed here\n  hint:   it stands in SELECT and HAVING of a query with GROUP BY",
        ),
        (
            "SELECT COUNT(*) FROM a GROUP BY CUBE (a1, a2, a3), CUBE (a1, a2, a3), CUBE (a1, a2, a3)",
            "GROUP BY has more than 256 grouping sets\n  detail: each of them groups all rows once more\n"
            "  hint:   list the sets that are needed: GROUPING SETS ((a, b), (a))",
        ),
        (
            "SELECT COUNT(*) FROM pay GROUP BY GROUPING SETS ((who, TUMBLE(ts, INTERVAL '1' HOUR)), (who))",
            "a grouping set lacks the window\n  detail: each set is answered once, when its window closes\n"
            "  hint:   write the window beside the sets: GROUP BY window_start, window_end, GROUPING SETS ((a), ())",
        ),
        (
            "SELECT a2 FROM a GROUP BY ROLLUP (a1)",
            'column "a2" is neither grouped by nor aggregated\n  detail: the query groups by a1\n'
            "  hint:   add a2 to GROUP BY, or take MAX(a2)",
        ),
        (
            "SELECT a1 FROM a WHERE COUNT(*) > 1",
            "the aggregate COUNT is not allowed here\n  hint:   aggregates stand in SELECT and HAVING",
        ),
        ("SELECT a1 FROM a HAVING a1 > 1", "HAVING without GROUP BY or an aggregate\n  hint:   write WHERE"),
        (
            "SELECT a1 FROM a WHERE a1 IS 5",
            "IS is followed by NULL, TRUE, FALSE, UNKNOWN or JSON\n  hint:   for a value write =",
        ),
        (
            "SELECT JSON_QUERY('[]', '$.a' RETURNING ARRAY<STRING> EMPTY OBJECT ON EMPTY) FROM a",
            "JSON_QUERY cannot give EMPTY OBJECT of type ARRAY<STRING>\n"
            "  detail: ON EMPTY and ON ERROR take NULL or EMPTY ARRAY or ERROR",
        ),
        ("SELECT a1 FROM a WHERE a2", "a condition must be BOOLEAN, this is INT"),
        (
            "SELECT BITAND(a1, 1) FROM a",
            "the function BITAND does not exist\n"
            "  hint:   write MOD(number / 4, 2) for its third bit; there are no operators on bits",
        ),
        ("SELECT NVL(a1, 1) FROM a", "the function NVL does not exist\n  hint:   write COALESCE(a, b)"),
        (
            "SELECT DATE_ADD(ts, 1) FROM pay",
            "the function DATE_ADD does not exist\n"
            "  hint:   write time + INTERVAL '1' DAY, or TIMESTAMPADD(DAY, 1, time)",
        ),
        (
            "SELECT TO_CHAR(ts, 'YYYY-MM-DD') FROM pay",
            "the function TO_CHAR does not exist\n"
            "  hint:   write DATE_FORMAT(time, 'yyyy-MM-dd'), or CAST(number AS STRING)",
        ),
        (
            "SELECT DATEDIFF(ts, ts) FROM pay",
            "the function DATEDIFF does not exist\n  hint:   write TIMESTAMPDIFF(DAY, start, end)",
        ),
        (
            "SELECT CURRENT_WATERMARK(ts) FROM pay",
            "the function CURRENT_WATERMARK is not supported yet\n  detail: a watermark belongs to a batch, not to"
            " a row; late rows go to TAILRACE_TOPICS__LATE",
        ),
        (
            "SELECT SOURCE_WATERMARK() FROM a",
            "the function SOURCE_WATERMARK is not supported yet\n"
            "  detail: the watermark of a table is an expression over its columns",
        ),
        ("SELECT PERCENTILE(a1, 0.5, a2) FROM a", "the frequency of PERCENTILE is not supported yet"),
        (
            "SELECT * FROM TO_CHANGELOG(input => TABLE a PARTITION BY a1)",
            "the table function TO_CHANGELOG does not exist\n  detail: there is TUMBLE, HOP, CUMULATE, SESSION",
        ),
        ("SELECT CAST(a1 AS VARIANT) FROM a", "the type VARIANT is not supported"),
        ("SELECT SUM(*) FROM a", "SUM(*) has no meaning\n  hint:   write SUM(column); COUNT(*) counts all rows"),
        (
            "SELECT COUNT(DISTINCT *) FROM a",
            "COUNT(DISTINCT *) has no meaning\n  detail: * stands for rows, not for a value of theirs\n"
            "  hint:   write COUNT(DISTINCT column), or COUNT(*)",
        ),
        ("SELECT COUNT(a1, *) FROM a", "* is no argument beside others in COUNT\n  hint:   name the columns"),
        (
            "SELECT ABS(*) FROM a",
            "* is not supported in an expression\n"
            "  hint:   it stands for all columns in SELECT, and for all rows in COUNT(*): write the column",
        ),
        *(
            (
                f"SELECT a1 FROM a WHERE a1 {condition}",
                "IN needs the values that it compares with\n  detail: there is none in parentheses behind it\n"
                "  hint:   write IN (1, 2), or IN (SELECT ...)",
            )
            for condition in ("IN ()", "NOT IN ()", "IN b")
        ),
        ("SELECT a1 FROM a WHERE NOT EXISTS (b)", "EXISTS needs a query\n  hint:   write EXISTS (SELECT ...)"),
        (
            "SELECT a1 FROM a WHERE a1 = ALL (1, 2)",
            "ALL needs a query\n  hint:   write = ALL (SELECT ...), or IN (1, 2) for values",
        ),
        (
            "SELECT a1 FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE b.bb = a.a1)",
            'column "bb" does not exist in "b"\n  detail: b has the columns b1, b2, b3',
        ),
        (
            "SELECT a1 FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE b.b1 = a.b1)",
            'column "b1" does not exist in "a"\n  detail: a has the columns a1, a2, a3',
        ),
        (
            "SELECT a1 FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE nope = a1)",
            'column "nope" does not exist in "b"\n'
            "  detail: b has the columns b1, b2, b3; the query around it has a1, a2, a3",
        ),
        (
            "SELECT a1 FROM a WHERE a1 > ANY (SELECT nope FROM b)",
            'column "nope" does not exist in "b"\n'
            "  detail: b has the columns b1, b2, b3; the query around it has a1, a2, a3",
        ),
        (
            "SELECT a1 FROM a WHERE a1 > (SELECT MAX(nope) FROM b WHERE b1 = a1)",
            'column "nope" does not exist in "b"\n'
            "  detail: b has the columns b1, b2, b3; the query around it has a1, a2, a3",
        ),
        (
            "SELECT a1[1:2] FROM a",
            "a slice in brackets is not supported in an expression\n  hint:   write ARRAY_SLICE(array, start, end)",
        ),
        (
            "SELECT {'x': 1} FROM a",
            "a value in braces is not supported in an expression\n"
            "  hint:   write MAP['key', value], or ROW(value, ...)",
        ),
        *(
            (
                f"SELECT a1, {parameter} FROM a",
                "a parameter is not supported in an expression\n"
                "  hint:   write the value, or ${NAME} for an environment variable",
            )
            for parameter in ("?", ":x", "@x")
        ),
        ("SELECT COUNT(a1, a2) FROM a", "COUNT takes 0 or 1 argument, not 2"),
        ("SELECT SINGLE_VALUE() FROM a", "SINGLE_VALUE takes 1 argument"),
        ("SELECT SINGLE_VALUE(*) FROM a", "SINGLE_VALUE takes 1 argument"),
        (
            "SELECT OBJECT_OF(a1) FROM a",
            "the function OBJECT_OF is not supported yet",
        ),
        (
            "SELECT * FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(a1), INTERVAL '1' HOUR))",
            f'the window TUMBLE needs a time attribute, and "a1" is none\n  detail: {LOST}\n'
            "  hint:   declare a WATERMARK for a column of type TIMESTAMP in CREATE TABLE, or proctime AS PROCTIME()",
        ),
        (
            "SELECT * FROM TABLE(TUMBLE(TABLE pay, DESCRIPTOR(id), INTERVAL '1' HOUR))",
            f'the window TUMBLE needs a time attribute, and "id" is none\n  detail: {LOST}\n'
            "  hint:   declare ts AS TO_TIMESTAMP_LTZ(id, 3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND in"
            " CREATE TABLE, or proctime AS PROCTIME()",
        ),
        (
            "SELECT * FROM TABLE(TUMBLE(TABLE b, DESCRIPTOR(b3), INTERVAL '1' HOUR))",
            f'the window TUMBLE needs a time attribute, and "b3" is none\n  detail: {LOST}\n'
            "  hint:   declare ts AS TO_TIMESTAMP(b3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND in"
            " CREATE TABLE, or proctime AS PROCTIME()",
        ),
        (
            "SELECT * FROM TABLE(TUMBLE(TABLE pay, DESCRIPTOR(ts)))",
            "TUMBLE lacks SIZE\n  detail: its arguments are DATA, TIMECOL, SIZE, OFFSET",
        ),
        (
            "SELECT * FROM TABLE(TUMBLE(TABLE pay, DESCRIPTOR(ts), SIZ => INTERVAL '1' HOUR))",
            "TUMBLE has no argument SIZ\n  detail: its arguments are DATA, TIMECOL, SIZE, OFFSET\n"
            '  hint:   did you mean "SIZE"?',
        ),
        (
            "SELECT * FROM TABLE(TUMBLE(TABLE pay, DESCRIPTOR(ts), INTERVAL '1' MONTH))",
            "the size of TUMBLE has no fixed length\n  detail: months and years differ in length\n"
            "  hint:   write it in days, hours, minutes or seconds",
        ),
        (
            "SELECT * FROM TABLE(CUMULATE(TABLE pay, DESCRIPTOR(ts), INTERVAL '3' HOUR, INTERVAL '10' HOUR))",
            "the size of CUMULATE is not a multiple of its step\n"
            "  detail: the size is 36000000 ms, the step 10800000 ms",
        ),
        (
            "SELECT * FROM TABLE(SESSION(TABLE pay PARTITION BY whom, DESCRIPTOR(ts), INTERVAL '1' HOUR))",
            'column "whom" does not exist in "pay"\n  detail: pay has the columns who, amount, id, ts, at\n'
            '  hint:   did you mean "who"?',
        ),
        (
            "SELECT * FROM TABLE(SESSION(TABLE pay, DESCRIPTOR(ts), INTERVAL '0' SECOND))",
            "the gap of SESSION is not positive",
        ),
        (
            "SELECT * FROM TABLE(SESSION(TABLE pay, DESCRIPTOR(ts), SIZE => INTERVAL '1' HOUR))",
            "SESSION has no argument SIZE\n  detail: its arguments are DATA, TIMECOL, GAP",
        ),
        (
            "SELECT * FROM TABLE(TUMBLE(TABLE pay PARTITION BY who, DESCRIPTOR(ts), INTERVAL '1' HOUR))",
            "PARTITION BY in TUMBLE has no meaning\n"
            "  detail: only where a session ends depends on the rows beside it\n"
            "  hint:   group by the column instead",
        ),
        (
            "SELECT * FROM TABLE(TUMBLE((SELECT * FROM pay) PARTITION BY who, DESCRIPTOR(ts), INTERVAL '1' HOUR))",
            "PARTITION BY in TUMBLE has no meaning\n"
            "  detail: only where a session ends depends on the rows beside it\n"
            "  hint:   group by the column instead",
        ),
        *(
            (query, f'the data of {name} is a table, and "pay" is read as a column\n  hint:   write TABLE pay')
            for name, query in (
                ("TUMBLE", "SELECT * FROM TABLE(TUMBLE(pay, DESCRIPTOR(ts), INTERVAL '1' HOUR))"),
                ("TUMBLE", "SELECT * FROM TUMBLE((pay), DESCRIPTOR(ts), INTERVAL '1' HOUR)"),
                ("HOP", "SELECT * FROM TABLE(HOP(pay, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '2' HOUR))"),
                ("CUMULATE", "SELECT * FROM CUMULATE(pay, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '2' HOUR)"),
                ("SESSION", "SELECT * FROM TABLE(SESSION(pay PARTITION BY who, DESCRIPTOR(ts), INTERVAL '1' HOUR))"),
                (
                    "TUMBLE",
                    "SELECT * FROM TABLE(TUMBLE(DATA => pay, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1' HOUR))",
                ),
            )
        ),
        (
            "SELECT * FROM TABLE(TUMBLE('pay', DESCRIPTOR(ts), INTERVAL '1' HOUR))",
            "the data of TUMBLE is a table or a query\n  hint:   write TABLE <table>, or (SELECT ...)",
        ),
        (
            "SELECT * FROM TABLE(SESSION(TABLE pay PARTITION BY, DESCRIPTOR(ts), INTERVAL '1' HOUR))",
            '"," is not expected here\n  detail: expected a column, or several in parentheses',
        ),
        (
            "SELECT * FROM TABLE(SESSION(TABLE pay PARTITION BY 1, DESCRIPTOR(ts), INTERVAL '1' HOUR))",
            '"," is not expected here\n  detail: expected a column, or several in parentheses',
        ),
        (
            "SELECT pay.id FROM pay JOIN shelf ON pay.id = shelf.id AND shelf.ts BETWEEN pay.ts - INTERVAL '1' HOUR AND"
            " pay.ts",
            "an interval join cannot read an updating input\n"
            '  detail: table "shelf" updates and deletes rows\n'
            "  hint:   compare CAST(<time> AS TIMESTAMP(3)) for a regular join, with a TTL, or join the version of a"
            " time, by FOR SYSTEM_TIME AS OF <left>.<time>",
        ),
        (
            "SELECT x.id FROM pay AS x JOIN (SELECT * FROM pay QUALIFY ROW_NUMBER() OVER (PARTITION BY who ORDER BY id)"
            " <= 3) AS y ON x.id = y.id AND y.ts BETWEEN x.ts - INTERVAL '1' HOUR AND x.ts",
            "an interval join cannot read an updating input\n"
            "  detail: the Top-N updates and deletes rows\n"
            "  hint:   put it before that step, or compare CAST(<time> AS TIMESTAMP(3)) for a regular join, with a TTL,"
            " or join the version of a time, by FOR SYSTEM_TIME AS OF <left>.<time>",
        ),
        (
            "SELECT TUMBLE_END(ts, INTERVAL '2' HOUR) FROM pay GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)",
            "TUMBLE_END is about another window than GROUP BY\n  hint:   give it the arguments of TUMBLE in GROUP BY",
        ),
        (
            "SELECT TUMBLE_ROWTIME(at, INTERVAL '1' HOUR) FROM pay GROUP BY TUMBLE(at, INTERVAL '1' HOUR)",
            "TUMBLE_ROWTIME does not fit the window\n  detail: it is a window in processing time\n"
            "  hint:   write TUMBLE_PROCTIME",
        ),
        (
            "SELECT SUM(a1) OVER (ORDER BY a2) FROM a",
            f'ORDER BY in OVER needs a time attribute, and "a2" is none\n  detail: {LOST}\n'
            "  hint:   declare a WATERMARK for a column of type TIMESTAMP in CREATE TABLE, or proctime AS PROCTIME()",
        ),
        ("SELECT SUM(id) OVER (ORDER BY ts DESC) FROM pay", "OVER is ordered by time, ascending"),
        (
            "SELECT SUM(id) OVER (PARTITION BY who) FROM pay",
            "OVER needs ORDER BY\n  hint:   order by the time attribute of the table",
        ),
        (
            "SELECT SUM(id) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING) FROM pay",
            "a frame ends at the current row, or a number of rows or an interval before or after it\n"
            "  detail: UNBOUNDED FOLLOWING needs all rows of a partition, which a stream never has\n"
            "  hint:   write how far it reaches: 10 FOLLOWING, INTERVAL '1' MINUTE FOLLOWING",
        ),
        (
            "SELECT SUM(id) OVER v FROM pay WINDOW w AS (ORDER BY ts)",
            'window "v" does not exist\n  detail: WINDOW declares w',
        ),
        (
            "SELECT * FROM a JOIN a ON a.a1 = a.a1",
            'the name "a" stands for two tables of the query\n  hint:   give one of them an alias: a AS other',
        ),
        (
            "SELECT a1 FROM a JOIN b ON a1 = b3 AND a2 = b2",
            "INT and STRING cannot be compared\n  hint:   use CAST",
        ),
        (
            "SELECT /*+ STATE_TTL('aa' = '1d') */ a1 FROM a JOIN b ON a1 = b1",
            'STATE_TTL names "aa", which the query does not read\n  detail: it reads a, b\n  hint:   did you mean "a"?',
        ),
        (
            "SELECT /*+ STATE_TLL('a' = '1d') */ a1 FROM a JOIN b ON a1 = b1",
            "the hint STATE_TLL has no meaning here\n  detail: SELECT takes STATE_TTL('alias' = '1d', ...),"
            " LEADING(alias, ...) and SKEW('alias', 'key', ...)\n"
            '  hint:   did you mean "STATE_TTL"?',
        ),
        (
            "SELECT a1 FROM a UNION ALL SELECT b1, b2 FROM b",
            "the queries of a UNION have different numbers of columns\n  detail: the first has 1, this one 2",
        ),
        (
            "SELECT a1 FROM a UNION ALL SELECT b3 FROM b",
            'column 1 ("a1") of a UNION has types that do not go together\n  detail: they are INT, STRING\n'
            "  hint:   use CAST",
        ),
        (
            "SELECT x.a1 FROM (SELECT a1 FROM a) AS x (u, v)",
            "2 column names are given for 1 columns\n  detail: the columns are a1",
        ),
    ],
)
def test_a_wrong_query_is_refused_with_a_reason(query: str, mistake: str):
    assert mistakes(query) == [mistake]


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT * FROM a FETCH FIRST 3 ROWS WITH TIES", "FETCH ... WITH TIES"),
        (
            "SELECT (SELECT MAX(b2) FROM b WHERE b1 = a1 GROUP BY ROLLUP(b3)) FROM a",
            "a grouping set in a query that reads the one around it",
        ),
        (
            "SELECT a1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b1 = a1 HAVING COUNT(*) = 0)",
            "HAVING without GROUP BY in a query that reads the one around it, which may hold of no rows",
        ),
        (
            "SELECT (SELECT MAX(b2) FROM b WHERE b1 = a1 LIMIT 1) FROM a",
            "LIMIT of an aggregate of all rows in a query that reads the one around it",
        ),
        (
            "SELECT a1 FROM a, LATERAL (SELECT * FROM b WHERE b1 = a1 ORDER BY 2 LIMIT 1) AS t",
            "a number in ORDER BY behind * in a query that reads the one around it",
        ),
        (
            "SELECT (SELECT MAX(b2) OVER (ORDER BY b3) FROM b WHERE b1 = a1) FROM a",
            "OVER in a query that reads the one around it",
        ),
        ("SELECT COUNT(*) FROM pay GROUP BY id EMIT CHANGES", "EMIT"),
        ("SELECT LISTAGG(name) WITHIN GROUP (ORDER BY id) FROM item", "WITHIN GROUP of an aggregate"),
        ("SELECT PERCENTILE(id, 0.5, 2) FROM item", "the frequency of PERCENTILE"),
        ("SELECT LISTAGG(name) IGNORE NULLS FROM item", "IGNORE NULLS of an aggregate"),
        ("SELECT LISTAGG(name RESPECT NULLS) FROM item", "RESPECT NULLS of an aggregate"),
        ("SELECT * FROM pay MATCH_RECOGNIZE (ORDER BY ts PATTERN (A) DEFINE A AS A.id > 1)", "MATCH_RECOGNIZE"),
        ("SELECT * FROM LATERAL (SELECT * FROM item) r", "LATERAL in FROM"),
        ("SELECT a1 FROM a FOR UPDATE", "a lock (FOR UPDATE, FOR SHARE)"),
        ("SELECT a1 FROM a LATERAL VIEW EXPLODE(a1) t AS x", "LATERAL VIEW"),
        ("SELECT * EXCEPT (a1) FROM a", "* EXCEPT"),
        ("SELECT a2 FROM a WHERE EXISTS (SELECT b.* REPLACE (1 AS b1) FROM b WHERE b1 = a1)", "* REPLACE"),
        (
            "SELECT t.n FROM a LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM b WHERE b1 = a1) t ON n > 1",
            "LEFT JOIN LATERAL with a condition on a query that has one row for each row before it",
        ),
    ],
)
def test_what_does_not_run_yet_says_so(query: str, what: str):
    assert [m.splitlines()[0] for m in mistakes(query)] == [f"{what} is not supported yet"]


def test_every_aggregate_that_has_a_type_is_computed():
    assert set(AGGREGATE_TYPES) == set(AGGREGATES)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT APPROX_COUNT_DISTINCT(n) FROM (SELECT a1, COUNT(*) AS n FROM a GROUP BY a1)",
        "SELECT LISTAGG(b3), FIRST_VALUE(b1), ARRAY_AGG(b2) FROM b",
        "SELECT FIRST_VALUE(id) FROM (SELECT * FROM shelf) GROUP BY SESSION(ts, INTERVAL '1' HOUR)",
        "SELECT LISTAGG(DISTINCT b3), ARRAY_AGG(DISTINCT b1) FROM b",
        "SELECT COUNT(DISTINCT b1, b2, b3), JSON_ARRAYAGG(b1), JSON_ARRAYAGG(JSON_ARRAY(b1, b3) NULL ON NULL) FROM b",
        "SELECT LISTAGG(t, '; '), ARRAY_AGG(n) FROM (SELECT a1, CAST(MAX(a2) AS STRING) AS t, COUNT(*) AS n"
        " FROM a GROUP BY a1)",
        "SELECT ARRAY_AGG(DISTINCT id) FROM TABLE(TUMBLE(TABLE pay, DESCRIPTOR(ts), INTERVAL '1' DAY))"
        " GROUP BY window_start, window_end",
        "SELECT COUNT(DISTINCT id) OVER (ORDER BY ts ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) FROM pay",
        "SELECT ROW_NUMBER() OVER w, LAG(id) OVER w, MAX(DISTINCT id) OVER w FROM pay WINDOW w AS (ORDER BY ts)",
    ],
)
def test_an_aggregate_that_can_be_computed_is_none(query: str):
    assert mistakes(query) == []


@pytest.mark.parametrize(
    ("item", "mistakes_of_it"),
    [
        ("MY_TOTAL(amount)", ["the function MY_TOTAL does not exist"]),
        ("COUNT(*) + MY_TOTAL(amount, id) + 1", ["the function MY_TOTAL does not exist"]),
        ("MY_TOTAL(DISTINCT amount) FILTER (WHERE id > 1)", ["the function MY_TOTAL does not exist"]),
        ("OBJECT_OF(amount)", ["the function OBJECT_OF is not supported yet"]),
        (
            "UPPER(FOO(amount)), id",
            [
                "the function FOO does not exist",
                'column "id" is neither grouped by nor aggregated',
            ],
        ),
        ("FOO(who)", ["the function FOO does not exist"]),
    ],
)
def test_a_function_that_does_not_exist_is_named_where_it_may_be_meant_as_an_aggregate(item, mistakes_of_it):
    found = mistakes(f"SELECT who, {item} FROM pay GROUP BY who")
    assert [m.splitlines()[0] for m in found] == mistakes_of_it


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("PERCENTILE(id, 1.5)", "a percentage of PERCENTILE is between 0 and 1, not 1.5"),
        ("PERCENTILE(id, ARRAY[0.5, -1])", "a percentage of PERCENTILE is between 0 and 1, not -1.0"),
        ("PERCENTILE(id, id)", "the percentage of PERCENTILE is a constant, a number or an ARRAY of numbers"),
        ("PERCENTILE(who, 0.5)", "PERCENTILE takes a number, not STRING"),
        ("JSON_OBJECTAGG(KEY who VALUE id, KEY who VALUE id)", "JSON_OBJECTAGG takes one key and one value"),
        ("JSON_OBJECTAGG(id VALUE who)", "the key of JSON_OBJECTAGG is a text, not BIGINT"),
        ("BIT_AND(who)", "BIT_AND takes a whole number, not STRING"),
    ],
)
def test_an_aggregate_says_which_arguments_it_takes(call, why):
    assert [m.splitlines()[0] for m in mistakes(f"SELECT {call} FROM pay")] == [why]


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("a2 IN (SELECT b1 FROM b)", "IN with a query"),
        ("EXISTS (SELECT 1 FROM b)", "EXISTS"),
        ("a2 > ANY (SELECT b1 FROM b)", "ANY"),
        ("a2 > ALL (SELECT b1 FROM b)", "ALL"),
    ],
)
def test_a_query_that_cannot_be_where_it_is_has_a_hint(key: str, shown: str):
    hint = "compute it as a column of a query inside FROM, and use that column"
    assert mistakes(f"SELECT COUNT(*) FROM a GROUP BY {key}") == [f"{shown} is not supported here\n  hint:   {hint}"]


def test_a_mistake_of_a_query_that_is_read_twice_is_listed_once():
    calls = "SUM(a1) OVER (ORDER BY a1) AS m, SUM(a1) OVER (ORDER BY a2) AS n"
    found = mistakes(f"WITH x AS (SELECT {calls} FROM a) SELECT * FROM x UNION ALL SELECT * FROM x")
    assert [each.split("\n")[0] for each in found] == [
        f'ORDER BY in OVER needs a time attribute, and "{column}" is none' for column in ("a1", "a2")
    ]


def test_all_mistakes_of_a_query_are_listed():
    found = mistakes("SELECT amout, FOO(id), SUM(who) FROM pay WHERE whoo = 'x' GROUP BY who, idd")
    assert [m.splitlines()[0] for m in found] == [
        'column "amout" does not exist in "pay"',
        "the function FOO does not exist",
        "SUM takes a number, not STRING",
        'column "whoo" does not exist in "pay"',
        'column "idd" does not exist in "pay"',
    ]


def test_all_mistakes_of_a_file_are_listed_in_its_order():
    text = TABLES.lstrip() + "\n".join(
        [
            "CREATE TABLE out (n INT, m STRIN) WITH ('connector' = 'prind');",
            "CREATE VIEW v AS SELECT a9 FROM a;",
            "INSERT INTO out SELECT * FROM v;",
            "INSERT INTO outt SELECT a8 FROM a;",
            "SET 'x' = 'y';",
        ]
    )
    first = TABLES.lstrip().count("\n") + 1
    with pytest.raises(PipelineErrors) as raised:
        read(text)
    assert [(m.place.line - first, m.place.column, m.primary) for m in raised.value.mistakes] == [
        (0, 28, '"STRIN" is not expected here'),
        (1, 25, 'column "a9" does not exist in "a"'),
        (3, 13, 'table "outt" does not exist'),
        (3, 25, 'column "a8" does not exist in "a"'),
        (4, 5, "the setting 'x' is not known"),
    ]


CDC = """CREATE TABLE c (k BIGINT, s STRING, ts TIMESTAMP(3)) WITH ('connector' = 'kafka', 'topic' = 'c',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'debezium-json');
CREATE TABLE o (k BIGINT, s STRING) WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'json');
"""
JSON = "WITH ('connector' = 'kafka', 'topic' = 'p', 'format' = 'json')"
ADDED, UNKNOWN = 'table "o" takes new rows only, but the query updates its answer', 'column "x" does not exist in "c"'
KEYED = "WITH ('connector' = 'upsert-kafka', 'topic' = 'p', 'key.format' = 'json', 'value.format' = 'json')"


@pytest.mark.parametrize(
    ("statements", "primaries"),
    [
        ("INSERT INTO o SELECT k, s FROM c; INSERT INTO o SELECT k, x FROM c;", [ADDED, UNKNOWN]),
        ("INSERT INTO o SELECT k, x FROM c; INSERT INTO o SELECT k, s FROM c;", [UNKNOWN, ADDED]),
        ("EXPLAIN INSERT INTO o SELECT k, s FROM c; EXPLAIN SELECT x FROM c;", [ADDED, UNKNOWN]),
        (
            "BEGIN STATEMENT SET; INSERT INTO o SELECT k, x FROM c; INSERT INTO o SELECT k, s FROM c; END;",
            [UNKNOWN, ADDED],
        ),
        (
            "BEGIN STATEMENT SET; INSERT INTO o SELECT k s x FROM c; INSERT INTO o SELECT k, s FROM c; END;",
            ['"x" is not expected here', ADDED],
        ),
        ("CREATE VIEW v AS SELECT x FROM c; INSERT INTO o SELECT k, s FROM c;", [UNKNOWN, ADDED]),
        ("DELETE FROM o; INSERT INTO o SELECT k, s FROM c;", ["DELETE is not supported", ADDED]),
        ("INSERT INTO o SELECT k, s FROM c; SET 'x' = 'y';", [ADDED, "the setting 'x' is not known"]),
        (
            f"CREATE TABLE p WITH ('format' = 'jso') LIKE o; CREATE TABLE q {JSON} LIKE p;"
            " INSERT INTO q SELECT k, s FROM c;",
            ["format 'jso' is not supported", ADDED.replace('"o"', '"q"')],
        ),
    ],
)
def test_what_a_plan_may_not_do_is_listed_beside_other_mistakes(statements: str, primaries: list[str]):
    with pytest.raises(PipelineErrors) as raised:
        read(CDC + statements)
    assert [m.primary for m in raised.value.mistakes] == primaries


@pytest.mark.parametrize(
    ("statements", "primary"),
    [
        (
            f"CREATE TABLE p (k BIGINT, s STRING, PRIMARY KEY (x) NOT ENFORCED) {KEYED};"
            "INSERT INTO p SELECT k, s FROM c; INSERT INTO o SELECT k, s FROM p;",
            'column "x" does not exist in table "p"',
        ),
        (
            f"CREATE TABLE p (k BIGINT, s STRING) {KEYED}; CREATE VIEW v AS SELECT k, s FROM p;"
            "INSERT INTO o SELECT k, s FROM v;",
            "connector 'upsert-kafka' needs a PRIMARY KEY",
        ),
        ("SET 'x' = 'y'; INSERT INTO o SELECT k, s FROM c;", "the setting 'x' is not known"),
        ("SET 'x' 'y'; INSERT INTO o SELECT k, s FROM c;", '"y" is not expected here'),
        ("SETT 'x' = 'y'; INSERT INTO o SELECT k, s FROM c;", 'a statement cannot start with "SETT"'),
        ("RESET x; INSERT INTO o SELECT k, s FROM c;", '"x" is not expected here'),
        ("CREATE TABLE o (k BIGINT) WITH (); INSERT INTO o SELECT k, s FROM c;", '"o" is declared already'),
        (
            "INSERT INTO o /*+ OPTIONS('format' = 'jso') */ SELECT k, s FROM c;",
            "format 'jso' is not supported",
        ),
    ],
)
def test_what_a_plan_may_not_do_is_not_listed_where_a_mistake_may_be_its_cause(statements: str, primary: str):
    with pytest.raises(PipelineErrors) as raised:
        read(CDC + statements)
    assert [m.primary for m in raised.value.mistakes] == [primary]
