"""Constants inside an expression are computed once, when a file is read: one that cannot be is a mistake.

DuckDB folds a constant before the first row, wherever it stands: 1 / 0 under OR or CASE would fail every batch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import duckdb

from service.plan.expression_text import describe
from service.plan.expressions import Call, Expression, columns_of, render, repeatable
from service.sql.errors import SqlError


def check_constants(expression: Expression) -> None:
    """Raise SqlError at a part of `expression` that reads no column and cannot be computed."""
    pending = [expression]
    while pending:
        each = pending.pop()
        if not isinstance(each, Call):
            continue
        if each.arguments and repeatable(each) and next(columns_of(each), None) is None:
            _compute(each)
        else:
            pending += each.arguments


def constant_value(expression: Expression) -> object:
    """Return the value of an expression that reads no column; None if it reads one, cannot be computed, or is NULL."""
    text = render(expression)
    if not repeatable(expression) or next(columns_of(expression), None) is not None or _failure(text):
        return None
    ((value,),) = _connection().sql(f"SELECT {text}").fetchall()
    return value


def _compute(constant: Call) -> None:
    if reason := _failure(render(constant)):
        for argument in constant.arguments:
            if isinstance(argument, Call):
                _compute(argument)
        raise SqlError(f"{describe(constant)} cannot be computed", detail=_in_sql(reason))


def _in_sql(reason: str) -> str:
    """DuckDB's reason with the types of SQL, and without the expression that it computes, which is not as written."""
    if reason.startswith("Division by zero"):
        return "division by zero"
    return _QUOTED_OR_TYPE.sub(lambda found: _TYPES.get(found[0], found[0]), reason)


_TYPES: Mapping[str, str] = {
    "INT8": "TINYINT",
    "INT16": "SMALLINT",
    "INT32": "INT",
    "INTEGER": "INT",
    "INT64": "BIGINT",
    "INT128": "DECIMAL(38, 0)",
    "HUGEINT": "DECIMAL(38, 0)",
    "VARCHAR": "STRING",
}
"""What DuckDB calls types, and Flink's names."""

_QUOTED_OR_TYPE = re.compile(rf"'[^']*'|\"[^\"]*\"|\b(?:{'|'.join(_TYPES)})\b")


@cache
def _failure(text: str) -> str:
    """Why DuckDB cannot compute a constant; empty if it can."""
    try:
        _connection().sql(f"SELECT {text}").fetchall()
    except duckdb.Error as error:
        return str(error).splitlines()[0].partition(": ")[2].partition(". Use TRY")[0]
    return ""


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1, "max_expression_depth": 10_000})
