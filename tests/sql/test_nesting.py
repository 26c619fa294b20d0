"""Long and deep statements: terms of one operator do not nest, and nesting works to a limit that is reported."""

from __future__ import annotations

import pytest

from operators.sql import Sql
from service.plan.deep_stack import on_a_deep_stack
from service.plan.expressions import render
from service.plan.lowering.lower import compile_job
from service.plan.nodes import Project
from service.sql.compiler.compile import MAX_DEPTH
from service.sql.parse.nesting import MAX_NESTING
from service.sql.pipeline import PipelineErrors, read
from tests.sql.evaluation import evaluated
from tests.sql.outline import TABLES, mistakes, plan


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" + ".join(["1"] * 3000), 3000),
        ("9000 - " + " - ".join(["3"] * 2999), 3),
        (" || ".join(["'ab'"] * 2000), "ab" * 2000),
        (" OR ".join(f"{i} = 999" for i in range(1000)), True),
        (" AND ".join(f"{i} <> 1000" for i in range(1000)), True),
        ("1 + 2.5 + " + " + ".join(["0.25"] * 400), 103.5),
        ("1e0 + " + " + ".join(["1"] * 400), 401.0),
        (" + ".join(["1"] * 400) + " + CAST(NULL AS INT)", None),
        ("(" * MAX_NESTING + "1" + ")" * MAX_NESTING, 1),
        ("ABS(" * MAX_NESTING + "-1" + ")" * MAX_NESTING, 1),
        ("SUBSTRING(" * 60 + "'ab'" + ", 2 - 1)" * 60, "ab"),
        ("NULLIF(" * 60 + "1" + ", 2)" * 60, 1),
        ("CARDINALITY(" + "ARRAY[" * 60 + "1" + "]" * 60 + ")", 1),
        ("CASE WHEN TRUE THEN " * 60 + "1" + " ELSE 0 END" * 60, 1),
    ],
    ids=lambda v: str(v)[:20],
)
def test_long_and_deep_expressions_are_computed(text, value):
    assert on_a_deep_stack(evaluated)(text)[0] == value


@pytest.mark.parametrize("term", ["a1 = {}", "a1 <> {}"])
def test_a_condition_of_many_terms_runs(term):
    for operator in ("AND", "OR"):
        condition = f" {operator} ".join(term.format(i) for i in range(1000))
        (job,) = read(f"{TABLES} EXPLAIN SELECT a1 FROM a WHERE {condition}").explains
        assert compile_job(job).operators


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a1 FROM " + "(SELECT a1 FROM " * 90 + "a" + ")" * 90,
        " UNION ALL ".join(["SELECT a1 FROM a"] * 1000),
        "SELECT a.a1 FROM a" + "".join(f" JOIN a AS x{i} ON x{i}.a1 = a.a1" for i in range(150)),
        "WITH v0 AS (SELECT a1 FROM a)"
        + "".join(f", v{i} AS (SELECT a1 + 1 AS a1 FROM v{i - 1})" for i in range(1, 122))
        + " SELECT a1 FROM v121",
    ],
    ids=["subqueries", "unions", "joins", "names"],
)
def test_deep_queries_have_a_plan(query):
    assert plan(query) is not None


def test_views_may_stand_on_each_other():
    views = "CREATE VIEW v0 AS SELECT a1 FROM a;" + "".join(
        f"CREATE VIEW v{i} AS SELECT a1 FROM v{i - 1};" for i in range(1, 60)
    )
    assert plan("SELECT a1 FROM v59", views) is not None


def test_what_nests_too_deeply_is_reported_where_it_does():
    query = "SELECT " + "(" * (MAX_NESTING + 1) + "a1" + ")" * (MAX_NESTING + 1) + " FROM a"
    with pytest.raises(PipelineErrors) as raised:
        read(f"{TABLES}\nEXPLAIN {query}")
    (mistake,) = raised.value.mistakes
    assert mistake.primary == f"the statement nests more than {MAX_NESTING} levels"
    assert mistake.place.column == len("EXPLAIN SELECT ") + MAX_NESTING + 1


def test_types_nest_no_deeper():
    kind = "ROW<x " * (MAX_NESTING + 1) + "INT" + ">" * (MAX_NESTING + 1)
    assert mistakes("SELECT 1 FROM a", f"CREATE TABLE deep (x {kind}) WITH ('connector' = 'datagen');")[0].startswith(
        f"the statement nests more than {MAX_NESTING} levels"
    )


def test_operators_of_different_kinds_nest():
    text = "a1" + " + 1 - 1" * MAX_DEPTH
    assert mistakes(f"SELECT {text} FROM a")[0].startswith(
        f"the expression nests more than {MAX_DEPTH} calls and operators"
    )


def test_duckdb_takes_the_deepest_expression():
    text = "a1" + " + 1 - 1" * (MAX_DEPTH // 2)
    (job,) = read(f"{TABLES} EXPLAIN SELECT {text} FROM a").explains
    node = job.sinks[0].input
    assert isinstance(node, Project)
    expression = on_a_deep_stack(render)(node.expressions[0], "CAST({} AS INTEGER)".format)
    assert Sql()(f"SELECT {expression} AS x", {}).column("x").to_pylist() == [0]


@pytest.mark.parametrize("text", ["ELSE;", "ELSE", "EXPLAIN ELSE;", "SELECT 1; ELSE 2"])
def test_a_stray_word_is_a_mistake(text):
    with pytest.raises(PipelineErrors):
        read(text)
