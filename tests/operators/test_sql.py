"""How statements answer, and how they fail."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from operators.sql import SMALL, Sql

STRICT = """SELECT from_json_strict(v, '{"a": "INTEGER"}') AS a FROM texts"""


@pytest.mark.parametrize("rows", [1, SMALL + 1])
@pytest.mark.parametrize("shift", range(4))
def test_an_error_that_quotes_half_a_character_is_still_an_error_of_duckdb(rows, shift):
    text = '{"a": "' + "x" * shift + "\U0001f600" * 500 + '"}'
    with pytest.raises((duckdb.ConversionException, duckdb.InvalidInputException)):
        Sql()(STRICT, {"texts": pa.table({"v": [text] * rows})})


@pytest.mark.parametrize("rows", [1, SMALL + 1])
def test_a_statement_keeps_nothing_of_the_rows_that_it_ran_over(rows):
    sql, held = Sql(), pa.total_allocated_bytes()
    for length in (100_000_000 // rows, 50_000_000 // rows):
        sql("SELECT length(v) AS n FROM texts", {"texts": pa.table({"v": ["x" * length] * rows})})
    assert pa.total_allocated_bytes() - held < 10_000_000


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM '/etc/hostname'",
        "COPY (SELECT 1) TO '/tmp/tailrace-copied.csv'",
        "LOAD httpfs",
        "SET threads = 4",
        "SET enable_external_access = true",
    ],
)
def test_a_statement_reaches_nothing_but_the_tables_that_it_is_given(statement):
    with pytest.raises(duckdb.Error):
        Sql()(statement, {})


def test_what_is_larger_than_the_memory_goes_to_the_folder_that_is_given(tmp_path):
    texts = pa.table({"v": pa.array(np.arange(3_000_000))})
    statement = "SELECT count(*) AS n FROM (SELECT md5(CAST(v AS VARCHAR)) AS k, count(*) FROM texts GROUP BY k)"
    sql = Sql(100_000_000, str(tmp_path / "spill"))
    assert sql(statement, {"texts": texts})["n"].to_pylist() == [3_000_000]
    assert (tmp_path / "spill").is_dir()


@pytest.mark.parametrize("by_row", [False, True])
def test_a_statement_over_many_rows_is_kept_only_if_it_computes_each_by_itself(by_row: bool):
    tables = {"a": pa.table({"n": pa.array(np.arange(SMALL + 1))})}
    sql, statement = Sql(), "SELECT n + 1 AS n FROM a WHERE n % 3 = 0"
    answers = [sql(statement, tables, by_row=by_row) for _ in range(2)]
    assert len(sql._prepared) == by_row
    assert answers == [Sql()(statement, tables)] * 2


def test_a_statement_over_few_rows_runs_by_the_plan_that_was_optimized_once():
    table = pa.table({"k": [1, 2, 2], "v": [1, 2, 3]})
    sql = Sql()
    for _ in range(2):
        answer = sql("SELECT * FROM (SELECT k, sum(v)::BIGINT AS s FROM a GROUP BY k) WHERE k > 1", {"a": table})
        assert answer.to_pydict() == {"k": [2], "s": [5]}
    ((connection, _),) = sql._prepared.values()
    ((_, plan),) = connection.execute("EXPLAIN ANALYZE EXECUTE p").fetchall()
    assert plan.lower().index("group by") < plan.lower().index("filter"), "the filter was moved below the groups"
    on = "SELECT current_setting('enable_optimizer') AS is_on"
    assert [each.execute(on).fetchone() for each in (connection, sql._connection)] == [(False,), (True,)]


AGGREGATES = ["SELECT k, max(k) AS m FROM a GROUP BY k", "SELECT string_agg(k, ',') AS m FROM a"]


@pytest.mark.parametrize("statement", [*AGGREGATES, "SELECT upper(k) AS m FROM a"])
def test_no_statement_holds_memory_of_duckdb_once_it_has_run_over_many_rows(statement: str):
    texts = pa.table({"k": [f"{i:070}" for i in range(100_000)]})
    sql = Sql()
    for number in range(3):
        sql(statement.replace("m FROM", f"m{number} FROM"), {"a": texts}, by_row=statement not in AGGREGATES)
    (held,) = sql("SELECT sum(memory_usage_bytes)::BIGINT AS held FROM duckdb_memory()", {})["held"].to_pylist()
    assert held < 2_000_000
