"""What a script for a shared catalog begins with is taken with a note where it has no effect, else refused."""

from __future__ import annotations

import pytest

from service.sql.pipeline import PipelineErrors, read

TABLE = "CREATE TABLE t (a INT) WITH ('connector' = 'datagen');\n"


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("DROP TABLE IF EXISTS t;", "DROP TABLE IF EXISTS has no effect"),
        ("DROP VIEW IF EXISTS default_catalog.default_database.t;", "DROP VIEW IF EXISTS has no effect"),
        ("DROP TEMPORARY FUNCTION IF EXISTS f;", "DROP FUNCTION IF EXISTS has no effect"),
        ("DROP MODULE IF EXISTS hive;", "DROP MODULE IF EXISTS has no effect"),
        ("DROP MATERIALIZED TABLE IF EXISTS t;", "DROP MATERIALIZED TABLE IF EXISTS has no effect"),
        (f"{TABLE}DROP MATERIALIZED TABLE IF EXISTS t;", "DROP MATERIALIZED TABLE IF EXISTS has no effect"),
        ("USE default_catalog.default_database;", "USE has no effect"),
        ("USE CATALOG default_catalog;", "USE has no effect"),
        ("SHOW CREATE TABLE t;", "SHOW has no effect"),
        ("DESCRIBE t;", "DESCRIBE has no effect"),
        ("CREATE DATABASE IF NOT EXISTS default_database WITH ('a' = 'b');", "CREATE DATABASE has no effect"),
        ("CREATE CATALOG default_catalog WITH ('type' = 'generic_in_memory');", "CREATE CATALOG has no effect"),
        ("SET 'taskmanager.numberOfTaskSlots' = '4';", "the setting 'taskmanager.numberOfTaskSlots' has no effect"),
        ("SET 'state.backend.rocksdb.localdir' = '/x';", "the setting 'state.backend.rocksdb.localdir' has no effect"),
        ("SET 'table.optimizer.source.x' = '1';", "the setting 'table.optimizer.source.x' has no effect"),
        ("SET 'high-availability' = 'zookeeper';", "the setting 'high-availability' has no effect"),
        ("SET 'table.display.max-column-width' = '9';", "the setting 'table.display.max-column-width' has no effect"),
        (
            "SET 'table.plan.compile.catalog-objects' = 'ALL';",
            "the setting 'table.plan.compile.catalog-objects' has no",
        ),
        ("SET 'pipeline.generic-types' = 'false';", "the setting 'pipeline.generic-types' has no effect"),
        (
            "SET 'execution.checkpointing.incremental' = 'true';",
            "the setting 'execution.checkpointing.incremental' has",
        ),
        (
            "SET 'sql-client.display.max-column-width' = '9';",
            "the setting 'sql-client.display.max-column-width' has no",
        ),
        (
            "SET 'restart-strategy.exponential-delay.initial-backoff' = '9';",
            "the setting 'restart-strategy.exponential-delay.initial-backoff' has no effect",
        ),
        *(
            (
                f"{TABLE}EXPLAIN SELECT /*+ {hint}(t) */ t.a FROM t JOIN t AS u ON t.a = u.a;",
                f"the hint {hint} has no effect",
            )
            for hint in ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP")
        ),
    ],
)
def test_what_has_no_effect_passes_with_a_note(text, note):
    (found,) = read(text).notes
    assert found.primary.startswith(note)


@pytest.mark.parametrize(
    ("text", "primary"),
    [
        ("DROP TABLE t;", 'table "t" does not exist'),
        ("DROP FUNCTION f;", "DROP FUNCTION is not supported"),
        ("DROP MODULE m;", "DROP MODULE is not supported"),
        ("DROP MATERIALIZED TABLE t;", "DROP MATERIALIZED TABLE is not supported"),
        ("DROP MATERIALIZED VIEW v;", "DROP MATERIALIZED VIEW is not supported"),
        ("USE other;", 'there is no catalog or database "other"'),
        ("CREATE CATALOG hive WITH ('type' = 'hive');", 'there is no catalog or database "hive"'),
        ("SET 'table.exec.nosuch' = '1';", "the setting 'table.exec.nosuch' is not known"),
        ("SET 'taskmanagers' = '1';", "the setting 'taskmanagers' is not known"),
    ],
)
def test_what_would_have_an_effect_is_refused(text, primary):
    with pytest.raises(PipelineErrors) as raised:
        read(text)
    assert raised.value.mistakes[0].primary == primary


def test_a_dropped_name_is_free_again():
    pipeline = read(f"{TABLE}DROP TABLE t;\n{TABLE.replace('a INT', 'b INT')}")
    assert [c.name for c in pipeline.tables["t"].columns] == ["b"]
    assert pipeline.notes == ()


def test_a_dropped_table_is_not_there_for_what_follows():
    with pytest.raises(PipelineErrors, match='table "t" does not exist'):
        read(f"{TABLE}DROP TABLE t;\nEXPLAIN SELECT a FROM t;")


def test_table_is_short_for_all_columns_of_a_table():
    sink = "CREATE TABLE s (a INT) WITH ('connector' = 'print');"
    (job,) = read(f"{TABLE}{sink}INSERT INTO s TABLE t;").jobs
    assert job.sinks[0].table.name == "s"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BEGIN;", "write BEGIN STATEMENT SET;"),
        (f"{TABLE}EXPLAIN SELECT a & 1 FROM t;", "the operator & is not supported in an expression"),
        (f"{TABLE}EXPLAIN SELECT HASH_CODE(a) FROM t;", "the function HASH_CODE is not supported yet"),
    ],
)
def test_a_refusal_speaks_of_what_was_written(text, expected):
    with pytest.raises(PipelineErrors, match=expected):
        read(text)
