"""CREATE TABLE: columns of every kind and type, the time attribute, the key."""

from __future__ import annotations

import pytest

from service.plan.expression_text import describe
from service.plan.table import ColumnKind, Table, TimeKind
from service.plan.types import flink
from service.plan.walk import fields
from service.sql.pipeline import PipelineErrors, read

KAFKA = "'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'b', 'format' = 'json'"


NANOSECONDS = [
    ("t TIMESTAMP(9)", "TIMESTAMP(6)", "TIMESTAMP(9)"),
    ("t TIMESTAMP_LTZ(7)", "TIMESTAMP_LTZ(6)", "TIMESTAMPLTZ(7)"),
    ("t TIME(8)", "TIME(6)", "TIME(8)"),
    ("t ROW<a ARRAY<TIMESTAMP(9)>>", "ROW<`a` ARRAY<TIMESTAMP(6)>>", "TIMESTAMP(9)"),
    ("x STRING, t AS CAST(x AS TIMESTAMP(9))", "TIMESTAMP(6)", "TIMESTAMP(9)"),
    ("t AS TIMESTAMP '2024-02-29 13:05:06.123456789'", "TIMESTAMP(6)", "TIMESTAMP '2024-02-29 13:05:06.123456789'"),
]


def table(columns: str, options: str = KAFKA) -> Table:
    return read(f"CREATE TABLE t ({columns}) WITH ({options})").tables["t"]


def mistakes(columns: str, options: str = KAFKA) -> list[str]:
    with pytest.raises(PipelineErrors) as raised:
        table(columns, options)
    return [m.primary for m in raised.value.mistakes]


@pytest.mark.parametrize(
    ("written", "type_"),
    [
        ("STRING", "STRING"),
        ("VARCHAR", "STRING"),
        ("VARCHAR(20)", "VARCHAR(20)"),
        ("CHAR", "CHAR(1)"),
        ("CHAR(3)", "CHAR(3)"),
        ("BOOLEAN", "BOOLEAN"),
        ("TINYINT", "TINYINT"),
        ("SMALLINT", "SMALLINT"),
        ("INT", "INT"),
        ("INTEGER", "INT"),
        ("BIGINT", "BIGINT"),
        ("FLOAT", "FLOAT"),
        ("DOUBLE", "DOUBLE"),
        ("DOUBLE PRECISION", "DOUBLE"),
        ("DECIMAL", "DECIMAL(10, 0)"),
        ("DECIMAL(5)", "DECIMAL(5, 0)"),
        ("NUMERIC(38, 18)", "DECIMAL(38, 18)"),
        ("BYTES", "BYTES"),
        ("VARBINARY(8)", "VARBINARY(8)"),
        ("BINARY(8)", "BINARY(8)"),
        ("DATE", "DATE"),
        ("TIME", "TIME(0)"),
        ("TIME(3)", "TIME(3)"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("TIMESTAMP(3)", "TIMESTAMP(3)"),
        ("TIMESTAMP(3) WITHOUT TIME ZONE", "TIMESTAMP(3)"),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(3)"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(3)"),
        ("ARRAY<INT>", "ARRAY<INT>"),
        ("ARRAY<INT NOT NULL>", "ARRAY<INT>"),
        ("MAP<STRING, ARRAY<BIGINT>>", "MAP<STRING, ARRAY<BIGINT>>"),
        ("ROW<a INT, `b c` ROW<d STRING>>", "ROW<`a` INT, `b c` ROW<`d` STRING>>"),
        ("ROW(a INT NOT NULL, b STRING)", "ROW<`a` INT, `b` STRING>"),
    ],
)
def test_a_type_is_read(written: str, type_: str):
    assert flink(table(f"c {written}").columns[0].type) == type_


@pytest.mark.parametrize(
    "written", ["TIMESTAMP(10)", "TIMESTAMP_LTZ(10)", "DECIMAL(40, 2)", "DECIMAL(5, 6)", "CHAR(0)"]
)
def test_a_type_that_cannot_be_kept_is_refused(written: str):
    assert mistakes(f"c {written}") == ['column "c" has an unusable type']


def test_columns_are_physical_computed_or_metadata():
    found = table(
        "a INT NOT NULL, b AS a + 1, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', `offset` BIGINT METADATA VIRTUAL"
    )
    assert [(c.name, c.kind, c.metadata, c.virtual, c.nullable) for c in found.columns] == [
        ("a", ColumnKind.PHYSICAL, "", False, False),
        ("b", ColumnKind.COMPUTED, "", False, True),
        ("at", ColumnKind.METADATA, "timestamp", False, True),
        ("offset", ColumnKind.METADATA, "offset", True, True),
    ]
    expression = found.columns[1].expression
    assert expression is not None
    assert describe(expression) == "(a + 1)"


def test_words_of_the_language_may_be_names_of_columns():
    found = table("`value` STRING, key STRING, ts STRING, `order` INT, watermark INT, metadata INT, `date` DATE")
    assert [c.name for c in found.columns] == ["value", "key", "ts", "order", "watermark", "metadata", "date"]


@pytest.mark.parametrize(
    ("columns", "rowtime", "watermark"),
    [
        ("ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND", 0, "(ts - INTERVAL '5' SECOND)"),
        ("ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts", 0, "ts"),
        ("ts TIMESTAMP, WATERMARK FOR ts AS ts", 0, "ts"),
        ("ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts", 1, "ts"),
        ("ts TIMESTAMP, WATERMARK w FOR ts AS withOffset(ts, 4000)", 0, "(ts - INTERVAL '4.000' SECOND)"),
    ],
)
def test_a_watermark_makes_a_time_attribute(columns: str, rowtime: int, watermark: str):
    found = table(columns)
    assert found.rowtime == rowtime
    assert found.time_kind(rowtime) is TimeKind.EVENT
    assert found.watermark is not None
    assert describe(found.watermark) == watermark


def test_proctime_makes_a_time_attribute():
    found = table("a INT, at AS PROCTIME()")
    assert [found.time_kind(i) for i in range(2)] == [TimeKind.NONE, TimeKind.PROCESSING]
    assert flink(found.columns[1].type) == "TIMESTAMP_LTZ(3)"


def test_a_key_is_not_null():
    found = table("a INT, b INT, c INT, PRIMARY KEY (c, a) NOT ENFORCED")
    assert found.key == (2, 0)
    assert [c.nullable for c in found.columns] == [False, True, False]
    assert table("a INT PRIMARY KEY NOT ENFORCED").key == (0,)


@pytest.mark.parametrize(
    ("columns", "primary"),
    [
        ("a INT, a STRING", 'column "a" is declared twice'),
        ("a INT, PRIMARY KEY (a)", "a PRIMARY KEY cannot be enforced on a topic"),
        ("a INT, PRIMARY KEY (b) NOT ENFORCED", 'column "b" does not exist in table "t"'),
        ("a INT, b AS a + 1, PRIMARY KEY (b) NOT ENFORCED", 'column "b" cannot be in the key'),
        ("a INT, b AS c + 1", 'column "c" does not exist'),
        ("a INT, b AS a + 1, c AS b + 1", 'column "b" does not exist'),
        ("a INT, b AS COUNT(a)", "the aggregate COUNT is not allowed here"),
        ("ts STRING, WATERMARK FOR ts AS ts", 'column "ts" cannot be the time attribute'),
        ("ts TIMESTAMP(6), WATERMARK FOR ts AS ts", 'column "ts" cannot be the time attribute'),
        ("ts TIMESTAMP(3), WATERMARK FOR tz AS ts", 'column "tz" does not exist in table "t"'),
        ("ts TIMESTAMP(3), WATERMARK FOR ts AS 5", "the watermark is INT, not a timestamp"),
        (
            "ts TIMESTAMP(3), WATERMARK FOR ts AS ts, WATERMARK FOR ts AS ts",
            "a table has one WATERMARK at most",
        ),
        ("at AS PROCTIME(), WATERMARK FOR at AS at", '"at" is a processing-time attribute'),
        ("a INT METADATA FROM 'ofset'", "metadata 'ofset' does not exist"),
        ("a INT METADATA FROM 'topic'", "metadata 'topic' is STRING, not INT"),
    ],
)
def test_a_wrong_column_is_refused(columns: str, primary: str):
    assert mistakes(columns) == [primary]


@pytest.mark.parametrize(
    ("key", "formats"),
    [
        ("value.source.table", "'debezium-json'"),
        ("value.database", "'canal-json' or 'maxwell-json'"),
        ("value.primary-keys", "'ogg-json'"),
    ],
)
def test_metadata_of_another_format_is_refused_with_the_formats_that_have_it(key: str, formats: str):
    with pytest.raises(PipelineErrors) as found:
        read(f"CREATE TABLE t (a INT, m STRING METADATA FROM '{key}') WITH ({KAFKA})")
    (mistake,) = found.value.mistakes
    assert mistake.primary == f"metadata '{key}' does not exist in this format"
    assert mistake.detail == f"it comes with 'format' = {formats}"


def test_an_upsert_table_needs_a_key():
    options = KAFKA.replace("'kafka'", "'upsert-kafka'").replace("'format'", "'key.format' = 'json', 'value.format'")
    assert mistakes("a INT", options) == ["connector 'upsert-kafka' needs a PRIMARY KEY"]


def test_a_name_is_declared_once():
    one = f"CREATE TABLE t (a INT) WITH ({KAFKA});"
    with pytest.raises(PipelineErrors, match='"t" is declared already'):
        read(one + one)
    again = one.replace("TABLE t", "TABLE IF NOT EXISTS t").replace("a INT", "b INT")
    assert read(one + again).tables["t"].columns[0].name == "a"


def test_a_kafka_timestamp_without_a_zone_is_shown_in_the_zone_of_the_session():
    text = (
        f"CREATE TABLE t (a INT, ts TIMESTAMP(3) METADATA FROM 'timestamp', WATERMARK FOR ts AS ts) WITH ({KAFKA});"
        "CREATE TABLE u (b INT) WITH ('connector' = 'print');"
        "INSERT INTO t SELECT a, ts FROM t; INSERT INTO t (ts) SELECT ts FROM t; EXPLAIN SELECT * FROM t;"
    )
    pipeline = read(f"SET 'table.local-time-zone' = 'Europe/Berlin'; {text}")
    found = pipeline.tables["t"]
    assert [(c.kind, flink(c.type)) for c in found.columns] == [
        (ColumnKind.PHYSICAL, "INT"),
        (ColumnKind.METADATA, "TIMESTAMP_LTZ(3)"),
        (ColumnKind.COMPUTED, "TIMESTAMP(3)"),
    ]
    assert found.rowtime == 2
    assert [j.sinks[0].columns for j in pipeline.jobs] == [(0, 1), (0, 1)]
    assert [flink(f.type) for f in fields(pipeline.explains[0].sinks[0].input)] == ["INT", "TIMESTAMP(3)"]
    assert [c.kind for c in read(text).tables["t"].columns] == [ColumnKind.PHYSICAL, ColumnKind.METADATA]


@pytest.mark.parametrize(("columns", "type_", "shown"), NANOSECONDS)
def test_a_time_with_more_digits_is_kept_to_the_microsecond_and_noted(columns, type_, shown):
    pipeline = read(f"CREATE TABLE t ({columns}) WITH ({KAFKA})")
    (note,) = pipeline.notes
    assert note.primary == f"{shown} is truncated to microseconds"
    assert flink(pipeline.tables["t"].columns[-1].type) == type_


@pytest.mark.parametrize(("columns", "type_", "shown"), NANOSECONDS)
def test_a_time_with_more_digits_is_a_mistake_where_the_session_says_so(columns, type_, shown):
    with pytest.raises(PipelineErrors) as raised:
        read(f"SET 'tailrace.timestamp-nanos' = 'refuse'; CREATE TABLE t ({columns}) WITH ({KAFKA})")
    (mistake,) = raised.value.mistakes
    assert shown in f"{mistake.primary} {mistake.detail}"
