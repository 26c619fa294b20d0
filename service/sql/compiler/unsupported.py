"""What the grammar reads and no expression of Flink SQL is, in the words of SQL."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from service.sql.errors import SqlError

_SHOWN: Mapping[type[exp.Expr], tuple[str, str]] = {
    exp.Star: ("*", "it stands for all columns in SELECT, and for all rows in COUNT(*): write the column"),
    exp.Window: ("OVER", ""),
    exp.Distinct: ("DISTINCT", ""),
    exp.BitwiseAnd: (
        "the operator &",
        "write MOD(number / 4, 2) for the third bit of a number, AND between conditions",
    ),
    exp.BitwiseOr: ("the operator |", "write || between texts, OR between conditions"),
    exp.BitwiseXor: ("the operator ^", "write POWER(a, b)"),
    exp.BitwiseNot: ("the operator ~", "write NOT before a condition"),
    exp.IgnoreNulls: ("IGNORE NULLS", ""),
    exp.RespectNulls: ("RESPECT NULLS", ""),
    exp.Slice: ("a slice in brackets", "write ARRAY_SLICE(array, start, end)"),
    exp.Struct: ("a value in braces", "write MAP['key', value], or ROW(value, ...)"),
    exp.Parameter: ("a parameter", "write the value, or ${NAME} for an environment variable"),
    exp.Placeholder: ("a parameter", "write the value, or ${NAME} for an environment variable"),
    exp.Lambda: ("a function without a name", ""),
}
"""Nodes of the syntax tree, and what to write instead."""

_QUERIES: Mapping[type[exp.Expr], str] = {
    exp.Select: "a query",
    exp.Subquery: "a query",
    exp.In: "IN with a query",
    exp.Exists: "EXISTS",
    exp.Any: "ANY",
    exp.All: "ALL",
}
"""What has a query, and is computed in other places: a key of GROUP BY, for example, has none."""


def unsupported(node: exp.Expr) -> SqlError:
    """Return that `node` is nothing that can be computed."""
    if type(node) in _QUERIES:
        hint = "compute it as a column of a query inside FROM, and use that column"
        return SqlError(f"{_QUERIES[type(node)]} is not supported here", hint=hint, at=node)
    shown, hint = _SHOWN.get(type(node), (f'"{_text(node)}"', ""))
    return SqlError(f"{shown} is not supported in an expression", hint=hint, at=node)


def _text(node: exp.Expr) -> str:
    """What was written, about."""
    text = " ".join(node.sql(comments=False).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


_LONGEST = 40
"""Characters of an expression that are shown."""
