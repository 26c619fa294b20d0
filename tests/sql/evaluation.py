"""Flink SQL expressions over one row of sample columns, compiled and then computed by DuckDB."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

import duckdb
from sqlglot import exp

from service.plan import types
from service.plan.expressions import Expression, deterministic, render
from service.plan.lowering.faster import faster
from service.plan.nodes import Field
from service.plan.types import DataType
from service.sql.compiler.compile import compile_expression
from service.sql.errors import Mistakes
from service.sql.expressions.context import Context
from service.sql.parse.data_types import data_type
from service.sql.parse.dialect import parse_tokens, tokenize
from service.sql.parse.source import read_source
from service.sql.scope import Scope

NOW = datetime(2024, 5, 6, 7, 8, 9, 123000)

SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "disabled_optimizers": "common_subexpressions",
    "max_expression_depth": 10_000,
}
"""How DuckDB is opened where expressions run (operators/sql.py)."""

Columns = Mapping[str, tuple[DataType, str]]
"""Name -> type and value, the value as DuckDB text."""


def compiled(text: str, columns: Columns | None = None, zone: str = "UTC") -> Expression:
    """The typed expression of `text`, whose names are `columns`."""
    context = Context(Mistakes(read_source("test.sql", text, {})), zone)
    fields = [Field(name, type_) for name, (type_, _) in (columns or {}).items()]
    node = parse_tokens(tokenize(text), text, lambda parser: parser._parse_expression())
    return compile_expression(node, Scope.of(fields, "t"), context)


def parsed_type(text: str) -> DataType:
    """The type that `text` names."""
    node = parse_tokens(tokenize(text), text, lambda parser: parser._parse_types())
    assert isinstance(node, exp.DataType)
    return data_type(node)


def evaluated(text: str, columns: Columns | None = None, zone: str = "UTC") -> tuple[Any, str]:
    """The value of `text` and the DuckDB type in which it comes; errors are DuckDB's own."""
    return computed(compiled(text, columns, zone), columns)


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config=SETTINGS)


def computed(expression: Expression, columns: Columns | None = None) -> tuple[Any, str]:
    """The value of an expression over one row of `columns`, and its type in DuckDB; its faster form has the same."""
    answer = _computed(expression, columns)
    if (quick := faster(expression)) != expression and deterministic(expression):
        # As text, since NaN is not equal to itself.
        assert repr(_computed(quick, columns)) == repr(answer), render(quick)
    return answer


def _computed(expression: Expression, columns: Columns | None) -> tuple[Any, str]:
    row = ", ".join(f"CAST({v} AS {types.duckdb(t)}) AS c{i}" for i, (t, v) in enumerate((columns or {}).values()))
    # The row is stored, so that nothing is folded before it is read.
    connection = _connection()
    connection.execute(f"CREATE OR REPLACE TABLE input AS SELECT {row or '1 AS c0'}")
    rendered = render(expression)
    parameters = {"now": NOW} if "$now" in rendered else None
    relation = connection.sql(f"SELECT {rendered} AS answer FROM input", params=parameters)
    (value,) = relation.fetchall()
    return value[0], str(relation.types[0])
