"""Mistakes stand where they were made, and each is reported once."""

from __future__ import annotations

import re

import pytest

from service.sql.pipeline import PipelineErrors, read

SOURCE = """CREATE TABLE t (a INT, b STRING, ts TIMESTAMP(3), l TIMESTAMP_LTZ(3)) WITH ('connector' = 'datagen');
"""


@pytest.mark.parametrize(
    ("text", "place", "primary"),
    [
        ("EXPLAIN SELECT a,\n EXTRACT(MICROSECOND FROM ts) FROM t;", (3, 10), '"MICROSECOND" is no unit of EXTRACT'),
        ("EXPLAIN SELECT a,\n FLOOR(ts TO MICROSECOND) FROM t;", (3, 14), '"MICROSECOND" is no unit of FLOOR'),
        ("EXPLAIN SELECT a,\n CEIL(ts TO NANOSECOND) FROM t;", (3, 13), '"NANOSECOND" is no unit of CEIL'),
        ("EXPLAIN SELECT a,\n ? FROM t;", (3, 2), "a parameter is not supported in an expression"),
        ("EXPLAIN SELECT a,\n a + :x FROM t;", (3, 6), "a parameter is not supported in an expression"),
        ("EXPLAIN SELECT a FROM t WHERE\n NOT EXISTS (b);", (3, 6), "EXISTS needs a query"),
        (
            "EXPLAIN SELECT a FROM t WHERE NOT EXISTS (\n SELECT a FROM t AS u WHERE u.x = t.a);",
            (3, 29),
            'column "x" does not exist in "u"',
        ),
        ("EXPLAIN SELECT a FROM t WHERE\n a NOT IN ();", (3, 2), "IN needs the values that it compares with"),
        ("EXPLAIN SELECT JSON_VALUE(b, '$' RETURNING FOO) FROM t;", (2, 44), '"FOO" is not expected here'),
        (
            "CREATE TABLE x (a INT,\n c INTERVAL DAY) WITH ('connector' = 'print');",
            (3, 4),
            'column "c" has an unusable type',
        ),
        ("CREATE TABLE x (a INT,\n c RAW('a', 'b')) WITH ();", (3, 4), "the type RAW is not supported"),
        ("CREATE TABLE x (a INT,\n c VARIANT) WITH ();", (3, 4), "the type VARIANT is not supported"),
        ("INSERT INTO x PARTITION (a = 1) SELECT b FROM t;", (2, 15), "PARTITION has no meaning for a topic"),
        ("CREATE OR REPLACE TABLE x (a INT) WITH ();", (2, 1), "CREATE OR REPLACE is not supported"),
        ("CREATE MATERIALIZED TABLE x AS SELECT a FROM t;", (2, 1), "CREATE MATERIALIZED TABLE is not supported"),
    ],
)
def test_a_mistake_stands_where_it_was_made(text: str, place: tuple[int, int], primary: str):
    with pytest.raises(PipelineErrors) as raised:
        read(SOURCE + text)
    first = raised.value.mistakes[0]
    assert (first.place.line, first.place.column, first.primary) == (*place, primary)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE x (a INT) PARTITIONED BY (a) WITH ('connector' = 'print'); INSERT INTO x SELECT a FROM t;",
        "CREATE TABLE IF NOT EXISTS default_database.x (a INT) DISTRIBUTED BY (a); INSERT INTO x SELECT a FROM t;",
        "CREATE TEMPORARY VIEW x AS SELECT a FROM t WHERE; EXPLAIN SELECT a FROM x;",
        "CREATE TABLE x (a INT) WITH ('connector' = 'kafka', 'topic' = 'x', 'format' = 'orc', 'orc.compress' = 'y');",
    ],
)
def test_what_follows_from_a_mistake_is_none(text: str):
    with pytest.raises(PipelineErrors) as raised:
        read(SOURCE + text)
    assert len(raised.value.mistakes) == 1


@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN SELECT raw, COUNT(raw), MAX(variant) FROM (SELECT a AS raw, a AS variant FROM t) GROUP BY raw;",
        "CREATE TABLE x (raw INT, variant STRING, multiset AS raw + 1) WITH ('connector' = 'datagen');",
        "CREATE VIEW v (x COMMENT 'the first', y) COMMENT 'two' AS SELECT a, b FROM t; EXPLAIN SELECT x, y FROM v;",
    ],
)
def test_names_may_be_words_of_types_and_have_comments(text: str):
    read(SOURCE + text)


BACKQUOTES = "names are quoted with backquotes, and texts with single quotes"


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ('EXPLAIN SELECT a, "b" FROM t;', (2, 19), "write `b` for a name, or 'b' for a text"),
        ('EXPLAIN SELECT a FROM t\nWHERE b = "x y";', (3, 11), "write `x y` for a name, or 'x y' for a text"),
        ('EXPLAIN SELECT a FROM t WHERE b = "it\'s";', (2, 35), ""),
        ('EXPLAIN SELECT a FROM t WHERE b = "it\'s" OR b = "that\'s";', (2, 35), ""),
        ('EXPLAIN SELECT a FROM t WHERE b = "x;', (2, 35), ""),
        ('CREATE TABLE "x" (a INT) WITH (); EXPLAIN SELECT a FROM x;', (2, 14), "write `x` for a name"),
        ("SET \"x\" = 'y';", (2, 5), "write `x` for a name"),
        ("EXPLAIN SELECT /*+ STATE_TTL(\"t\" = '1d') */ COUNT(*) FROM t;", (2, 30), "write `t` for a name"),
        (f'EXPLAIN SELECT a FROM t WHERE b = "{"x" * 41}";', (2, 35), ""),
    ],
)
def test_a_double_quote_is_a_mistake_where_it_opens(text: str, place: tuple[int, int], hint: str):
    with pytest.raises(PipelineErrors) as raised:
        read(SOURCE + text)
    (only,) = raised.value.mistakes
    assert (only.place.line, only.place.column, only.primary) == (*place, "a double quote is not expected here")
    assert only.detail == BACKQUOTES
    assert only.hint.startswith(hint)
    assert bool(only.hint) == bool(hint)


def test_a_double_quote_inside_other_quotes_and_in_comments_is_a_character():
    read(SOURCE + 'EXPLAIN SELECT \'"\' AS `"`, \'"x"\' FROM t; -- "x\n/* " */')


LEAVE_OUT, NO_BITS = "leave the clause out", "there are no operators on bits"


@pytest.mark.parametrize(
    ("text", "primary", "hint"),
    [
        ("END;", 'a statement cannot start with "END"', "it ends a statement set, and none is open"),
        *(
            (text, f"{text.split()[0]} is not supported", "write INSERT INTO <table> SELECT ...")
            for text in (
                "DELETE FROM x;",
                "UPDATE x SET a = 1;",
                "MERGE INTO x USING t ON x.a = t.a WHEN MATCHED THEN DELETE;",
                "TRUNCATE TABLE x;",
            )
        ),
        ("BEGIN STATEMENT SET; DELETE FROM x; END;", "DELETE is not supported", "write INSERT INTO <table> SELECT"),
        ("CREATE FUNCTION f AS 'x.F';", "CREATE FUNCTION is not supported", "docs/functions.md"),
        ("CREATE TEMPORARY FUNCTION f AS 'x.F';", "CREATE FUNCTION is not supported", "docs/functions.md"),
        ("CREATE TEMPORARY SYSTEM FUNCTION f AS 'x.F';", "CREATE FUNCTION is not supported", "docs/functions.md"),
        ("INSERT INTO x PARTITION (p0) SELECT a FROM t;", "PARTITION has no meaning for a topic", LEAVE_OUT),
        ("INSERT INTO x PARTITION (a = 1) SELECT b FROM t;", "PARTITION has no meaning for a topic", "SELECT 1 AS a"),
        (
            "CREATE TABLE x (a INT, PRIMARY KEY (a) ENFORCED)"
            " WITH ('connector' = 'kafka', 'topic' = 'x', 'format' = 'json');",
            "a PRIMARY KEY cannot be enforced on a topic",
            "NOT ENFORCED",
        ),
        (
            "CREATE TABLE x (a INT PRIMARY KEY ENFORCED)"
            " WITH ('connector' = 'kafka', 'topic' = 'x', 'format' = 'json');",
            "a PRIMARY KEY cannot be enforced on a topic",
            "NOT ENFORCED",
        ),
        ("EXPLAIN SELECT a FROM t FOR SHARE;", "a lock (FOR UPDATE, FOR SHARE) is not supported yet", "leave it out"),
        ("EXPLAIN SELECT BITAND(a, 1) FROM t;", "the function BITAND does not exist", NO_BITS),
        ("EXPLAIN SELECT a & 1 FROM t;", "the operator & is not supported in an expression", "AND between conditions"),
        (
            "EXPLAIN SELECT a, w FROM t, LATERAL TABLE(STRING_SPLIT(b, ',')) AS x (w);",
            "the table function STRING_SPLIT does not exist",
            "UNNEST(SPLIT(text, ','))",
        ),
        (
            "EXPLAIN SELECT FIRST_VALUE(b) IGNORE NULLS OVER (ORDER BY ts) FROM t;",
            "IGNORE NULLS is not supported with OVER",
            "in a query inside",
        ),
        (
            "EXPLAIN SELECT LAG(b) RESPECT NULLS OVER (ORDER BY ts) FROM t;",
            "RESPECT NULLS is not supported with OVER",
            "leave it out",
        ),
        (
            "EXPLAIN SELECT CAST(b AS TIMESTAMP WITH TIME ZONE) FROM t;",
            "the type TIMESTAMP WITH TIME ZONE is not supported: write TIMESTAMP_LTZ(3)",
            "",
        ),
        (
            "EXPLAIN SELECT CAST(b AS TIMESTAMPTZ) FROM t;",
            "the type TIMESTAMP WITH TIME ZONE is not supported: write TIMESTAMP_LTZ(3)",
            "",
        ),
        ("EXPLAIN SELECT ts + INTERVAL '10001' YEAR FROM t;", "the interval is too long", ""),
        (
            "EXPLAIN SELECT COUNT(*) FROM t GROUP BY TUMBLINGWINDOW(dd, 2147483648);",
            "the size of TUMBLINGWINDOW is a whole number from 1 to 2147483647",
            "",
        ),
    ],
)
def test_a_mistake_says_what_to_write(text: str, primary: str, hint: str):
    with pytest.raises(PipelineErrors) as raised:
        read(SOURCE + text)
    first = raised.value.mistakes[0]
    assert first.primary == primary
    assert hint in first.hint


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) OVER (ORDER BY ts RANGE INTERVAL '{days}' DAY PRECEDING) FROM s",
        "SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '{days}' DAY)) GROUP BY window_start, "
        "window_end",
        "SELECT COUNT(*) FROM s GROUP BY SESSION(ts, INTERVAL '{days}' DAY)",
        "SELECT s.a FROM s JOIN s AS o ON s.a = o.a AND s.ts BETWEEN o.ts - INTERVAL '{days}' DAY AND o.ts",
    ],
)
def test_the_longest_interval_is_ten_thousand_years(query: str):
    stream = "CREATE TABLE s (a INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen');\n"
    assert read(f"{stream}EXPLAIN {query.format(days=3_652_500)};").explains
    with pytest.raises(PipelineErrors) as raised:
        read(f"{stream}EXPLAIN {query.format(days=3_652_501)};")
    assert [each.primary for each in raised.value.mistakes] == ["the interval is too long"]


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("SELECT a,\n CAST(pt AS STRING) FROM c", (3, 2)),
        ("SELECT a, b, UUID(),\n PROCTIME() FROM c", (2, 22)),
        ("SELECT x.b,\n  CONCAT(x.p, 'x') FROM (SELECT a, b, CAST(pt AS STRING) AS p FROM c) AS x WHERE a > 1", (3, 3)),
        ("SELECT b,\n p FROM (SELECT a,\n b,\n CAST(pt AS STRING) AS p FROM c) AS x", (5, 2)),
    ],
)
def test_a_value_that_would_be_another_later_is_reported_where_it_is_written(query: str, place: tuple[int, int]):
    source = "CREATE TABLE c (a INT, b STRING, pt AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 'c',"
    text = f"{source} 'format' = 'debezium-json', 'scan.startup.mode' = 'earliest-offset');\nEXPLAIN {query};"
    with pytest.raises(PipelineErrors) as raised:
        read(text)
    first = raised.value.mistakes[0]
    assert "would have another value when its row is retracted" in first.primary
    assert (first.place.line, first.place.column) == place


@pytest.mark.parametrize(
    "kind",
    ["INT", "BIGINT", "DOUBLE", "DECIMAL(5, 2)", "BOOLEAN", "DATE", "TIME", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"],
)
def test_a_cast_that_fails_says_which_text_it_was_of(kind: str):
    with pytest.raises(PipelineErrors) as raised:
        read(f"{SOURCE}EXPLAIN SELECT CAST('no such' AS {kind}) FROM t;")
    first = raised.value.mistakes[0]
    assert re.sub(r"TIME\(0\)", "TIME", first.primary) == f"CAST('no such' AS {kind}) cannot be computed"
    assert '"no such"' in first.detail


@pytest.mark.parametrize(
    ("expression", "primary", "detail"),
    [
        ("1 / 0", "(1 / 0) cannot be computed", "division by zero"),
        ("1.5 / (1 - 1)", "(1.5 / (1 - 1)) cannot be computed", "division by zero"),
        ("MOD(7, 0)", "(7 % 0) cannot be computed", "division by zero"),
        ("2147483647 + 1", "(2147483647 + 1) cannot be computed", "Overflow in addition of INT (2147483647 + 1)!"),
        (
            "CAST('2020-13-01' AS DATE)",
            "CAST('2020-13-01' AS DATE) cannot be computed",
            'date field value out of range: "2020-13-01"',
        ),
        (
            "CAST('INT32' AS INT)",
            "CAST('INT32' AS INT) cannot be computed",
            """Could not convert string '"INT32"' to INT""",
        ),
        ("s + 1", "+ cannot be applied to (STRING, INT)", "(TIMESTAMP, INTERVAL) or (TIMESTAMP_LTZ, INTERVAL)"),
        (
            "DATE_FORMAT(a, 'x')",
            "DATE_FORMAT cannot be applied to (INT, CHAR(1))",
            "DATE_FORMAT takes (TIMESTAMP, STRING) or (TIMESTAMP_LTZ, STRING) or (STRING, STRING) or (DATE, STRING)",
        ),
        ("CONCAT_WS(a, b)", "CONCAT_WS cannot be applied to (INT, STRING)", "CONCAT_WS takes (STRING, STRING...)"),
    ],
)
def test_a_message_speaks_of_expressions_and_types_in_the_words_of_sql(expression: str, primary: str, detail: str):
    with pytest.raises(PipelineErrors) as raised:
        read(f"{SOURCE}EXPLAIN SELECT {expression.replace('s +', 'b +')} FROM t;")
    first = raised.value.mistakes[0]
    assert first.primary == primary
    assert detail in first.detail


@pytest.mark.parametrize(
    "value",
    [
        "RAND_INTEGER(5)",
        "RAND_INTEGER(3, 5)",
        "CURRENT_DATE",
        "CAST(NOW() AS STRING)",
        "CASE WHEN (NOW() IS NULL) THEN 1 ELSE 2 END",
        "(NOT (NOW() IS NULL))",
        "(CURRENT_DATE BETWEEN d AND d)",
        "(CURRENT_DATE IN (d, d))",
        "EXTRACT(YEAR FROM CURRENT_DATE)",
        "FLOOR(CURRENT_DATE TO MONTH)",
        "TIMESTAMPDIFF(DAY, LOCALTIMESTAMP, LOCALTIMESTAMP)",
        "TIMESTAMPADD(DAY, a, LOCALTIMESTAMP)",
        "ARRAY[CURRENT_DATE, d]",
        "MAP[a, CURRENT_DATE]",
        "ARRAY[CURRENT_DATE, d][a]",
        "-(RAND() * RAND(1))",
        "(CAST(UUID() AS STRING) LIKE 'x')",
    ],
)
def test_a_message_shows_an_expression_as_it_is_written(value: str):
    source = "CREATE TABLE c (a INT, d DATE) WITH ('connector' = 'kafka', 'topic' = 'c', 'format' = 'debezium-json',"
    text = f"{source} 'scan.startup.mode' = 'earliest-offset');\nEXPLAIN SELECT {value} FROM c;"
    with pytest.raises(PipelineErrors) as raised:
        read(text)
    shown = f'"EXPR$0", which is {value}, would have another value when its row is retracted'
    assert raised.value.mistakes[0].primary == shown
