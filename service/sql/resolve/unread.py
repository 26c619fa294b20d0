"""Clauses that the grammar takes and no step of the resolution reads: refused wherever in a query they stand.

Were they dropped, the answer would be another one than was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sqlglot import exp

from service.sql.errors import SqlError, offset_of
from service.sql.resolve.context import ResolveContext, not_yet
from service.sql.resolve.ordering import MODIFIERS

_UNREAD: tuple[tuple[type[exp.Expr], str, str, str], ...] = (
    (exp.Cast, "default", "DEFAULT in CAST", "write COALESCE(TRY_CAST(...), ...)"),
    (exp.Cast, "format", "FORMAT in CAST", "write DATE_FORMAT or TO_TIMESTAMP"),
    (exp.Distinct, "on", "DISTINCT ON", "keep the first row of a key by ROW_NUMBER()"),
    (exp.Group, "cube", "WITH CUBE", "write GROUP BY CUBE (...)"),
    (exp.Group, "rollup", "WITH ROLLUP", "write GROUP BY ROLLUP (...)"),
    (exp.Group, "totals", "WITH TOTALS", "write GROUP BY GROUPING SETS ((...), ())"),
    (exp.Limit, "expressions", "LIMIT BY", "keep the first rows of a key by ROW_NUMBER()"),
    (exp.Ordered, "with_fill", "WITH FILL", ""),
    (exp.SetOperation, "by_name", "BY NAME", "select the columns of both queries in one order"),
    (exp.Table, "changes", "CHANGES", ""),
    (exp.Table, "when", "AT or BEFORE a time", "write FOR SYSTEM_TIME AS OF in a join"),
    (exp.WindowSpec, "exclude", "EXCLUDE in a frame", ""),
)
"""The class of a node, its argument, how SQL calls it, and what to write instead."""

_OF_SELECT = {
    *("with_", "expressions", "from_", "joins", "where", "group", "having", "windows", "qualify", "distinct", "hint"),
    *MODIFIERS,
}
"""The arguments of a SELECT that are read."""

_NAMES = {
    "match": "MATCH_RECOGNIZE",
    "locks": "a lock (FOR UPDATE, FOR SHARE)",
    "laterals": "LATERAL VIEW",
    "sample": "TABLESAMPLE",
    "pivots": "PIVOT",
    "connect": "CONNECT BY",
    "cluster": "CLUSTER BY",
    "sort": "SORT BY",
    "distribute": "DISTRIBUTE BY",
    "kind": "SELECT AS",
    "operation_modifiers": "a word between SELECT and its columns",
}
"""Clauses of the syntax tree that are not called as SQL calls them."""

_HINTS = {
    "locks": "leave it out: each batch reads what the one before has left",
    "laterals": "write CROSS JOIN UNNEST(array) AS t (column)",
    "into": "write INSERT INTO ... SELECT",
}


def refuse_unread(query: exp.Expr, session: ResolveContext) -> None:
    """Raise QueryRejected, the first mistake noted, where some clause of `query` or of a query in it is not read."""
    for node in query.walk():
        for mistake in (*_clauses(node), *_repeated(node), *_joined(node)):
            raise session.give_up(mistake)


def _clauses(node: exp.Expr) -> Iterator[SqlError]:
    for kind, argument, name, hint in _UNREAD:
        value = node.args.get(argument)
        if isinstance(node, kind) and value:
            yield not_yet(name, _place(value, node), hint)
    if isinstance(node, exp.Select):
        for argument, value in node.args.items():
            if value and argument not in _OF_SELECT:
                yield not_yet(_NAMES.get(argument, argument.upper()), _place(value, node), _HINTS.get(argument, ""))
    if isinstance(node, exp.Group) and node.args.get("all") is False:
        yield not_yet("GROUP BY DISTINCT", node, "leave out the grouping sets that occur twice")


def _repeated(node: exp.Expr) -> Iterator[SqlError]:
    """A name of WITH or WINDOW that stands for two things."""
    named: Iterable[exp.Expr] = ()
    if isinstance(node, exp.With):
        named = (each.args["alias"].this for each in node.expressions)
    elif isinstance(node, exp.Select):
        named = (each.this for each in node.args.get("windows") or ())
    seen: set[str] = set()
    for name in named:
        if name.name in seen:
            yield SqlError(f'"{name.name}" is declared twice', hint="give one of them another name", at=name)
        seen.add(name.name)


def _joined(node: exp.Expr) -> Iterator[SqlError]:
    if not isinstance(node, exp.Join) or node.kind != "CROSS":
        return
    condition: Any = node.args.get("on") or node.args.get("using")
    if condition or node.method == "NATURAL":
        yield SqlError(
            "a CROSS JOIN has no condition", hint="write JOIN ... ON, or NATURAL JOIN", at=_place(condition, node)
        )


def _place(value: Any, node: exp.Expr) -> exp.Expr:
    """What has a place in the file: the first part of the clause that does, else the node."""
    first = value[0] if isinstance(value, list) and value else value
    return first if isinstance(first, exp.Expr) and offset_of(first) is not None else node
