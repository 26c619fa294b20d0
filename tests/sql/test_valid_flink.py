"""Forms of Flink SQL that are seldom written, and valid."""

from __future__ import annotations

import pytest

from service.plan.nodes import Join
from service.plan.table import Table
from service.plan.types import flink
from service.plan.walk import in_order
from service.sql.pipeline import PipelineErrors, read
from tests.sql.evaluation import evaluated
from tests.sql.outline import TABLES, columns, plan

PRINT = "WITH ('connector' = 'print')"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT a1, a10 FROM (SELECT * FROM a JOIN a AS o ON a.a1 = o.a1)", "a1 INT, a10 INT"),
        ("SELECT x.a10, x.a30 FROM (SELECT * FROM a JOIN a AS o ON a.a1 = o.a1) AS x", "a10 INT, a30 INT"),
        ("SELECT a1, a10, a11 FROM (SELECT a1, a1, a1 FROM a)", "a1 INT, a10 INT, a11 INT"),
        ("SELECT a1, a10, a100, a11 FROM (SELECT a1, a1, a2 AS a10, a1 FROM a)", "a1 INT, a10 INT, a100 INT, a11 INT"),
        ("WITH w AS (SELECT a1, b1 AS a1 FROM a JOIN b ON a1 = b1) SELECT a10 FROM w", "a10 INT"),
    ],
)
def test_the_second_column_of_a_name_has_a_number_below_a_subquery(query: str, names: str):
    assert columns(plan(query)) == names


def test_a_view_may_have_two_columns_of_a_name():
    view = "CREATE VIEW v AS SELECT * FROM a JOIN a AS o ON a.a1 = o.a1;"
    assert columns(plan("SELECT a2, a20 FROM v", view)) == "a2 INT, a20 INT"


@pytest.mark.parametrize("group", ["'text'", "a1, 'text'", "()", "a1, ()"])
def test_a_constant_text_and_nothing_may_be_grouped_by(group: str):
    assert columns(plan(f"SELECT COUNT(*) AS n FROM a GROUP BY {group}")) == "n BIGINT!"


def test_an_instant_is_joined_with_what_the_clocks_of_the_zone_show():
    table = "CREATE TABLE l (at TIMESTAMP_LTZ(3)) WITH ('connector' = 'datagen');"
    node = plan("SELECT l.at FROM l JOIN (SELECT CAST(ts AS TIMESTAMP(6)) AS t FROM ship) AS s ON l.at = s.t", table)
    (join,) = [n for n in in_order((node,)) if isinstance(n, Join)]
    assert len(join.left_keys) == 1
    assert join.residual is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("U&'caf\\00e9'", "café"),
        ("U&'\\+01f600\\\\'", "😀\\"),
        ("U&'\\d83d\\de00'", "😀"),
        ("U&'caf!00e9' UESCAPE '!'", "café"),
    ],
)
def test_a_text_may_name_code_points(text: str, value: str):
    assert evaluated(text)[0] == value


def test_a_table_may_be_declared_as_a_query():
    pipeline = read(f"{TABLES}CREATE TABLE o {PRINT} AS SELECT a1, COUNT(*) AS n FROM a GROUP BY a1;")
    (job,) = pipeline.jobs
    assert [(s.table.name, s.table.connector.kind) for s in job.sinks] == [("o", "print")]
    table = pipeline.tables["o"]
    assert isinstance(table, Table)
    assert [(c.name, flink(c.type)) for c in table.columns] == [("a1", "INT"), ("n", "BIGINT")]


@pytest.mark.parametrize(
    ("statement", "primary"),
    [
        (f"CREATE TABLE o (x INT) {PRINT} AS SELECT a1 FROM a;", "CREATE TABLE ... AS takes the columns of its query"),
        (f"CREATE TABLE o {PRINT} AS SELECT a1, a1 FROM a;", 'column "a1" is there twice'),
        (f"CREATE TABLE o {PRINT} AS SELECT NULL AS x FROM a;", 'column "x" has no type that a table has'),
        (f"CREATE TABLE o {PRINT} AS SELECT nosuch FROM a;", 'column "nosuch" does not exist in "a"'),
        ("CREATE TABLE o AS SELECT a1 FROM a;", "the table has no connector"),
        (f"CREATE TABLE a {PRINT} AS SELECT a1 FROM a;", '"a" is declared already'),
    ],
)
def test_a_table_of_a_query_that_cannot_be_is_refused(statement: str, primary: str):
    with pytest.raises(PipelineErrors) as raised:
        read(TABLES + statement)
    assert [m.primary for m in raised.value.mistakes] == [primary]
