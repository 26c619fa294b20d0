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


PLANNED = [
    ("SELECT n + 1 AS n FROM a WHERE n % 3 = 0", ("a",), False),
    ("SELECT n % 7 AS k, SUM(n) AS s FROM a GROUP BY k ORDER BY k", ("a",), False),
    ("SELECT x.n FROM a x JOIN a y ON x.n = y.n + 1 ORDER BY x.n", ("a",), True),
    ("SELECT n FROM a WHERE n IN (SELECT MAX(n) FROM a)", ("a",), True),
    ("SELECT a.n FROM a JOIN b ON a.n = b.n ORDER BY a.n", ("a", "b"), True),
]


@pytest.mark.parametrize(("statement", "names", "again"), PLANNED)
def test_only_a_statement_that_joins_is_planned_again_for_many_rows(
    statement: str, names: tuple[str, ...], again: bool, monkeypatch: pytest.MonkeyPatch
):
    tables = {name: pa.table({"n": pa.array(np.arange(SMALL + 1))}) for name in names}
    sql = Sql()
    answers = [sql(statement, tables) for _ in range(2)]
    assert len(sql._prepared) == (0 if again else 1)
    monkeypatch.setattr("operators.sql._reads_once", lambda *_: False)
    assert answers == [Sql()(statement, tables)] * 2
