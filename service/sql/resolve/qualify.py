"""QUALIFY: a condition on what OVER calls answer, which is computed as a column behind those of the SELECT list."""

from __future__ import annotations

from sqlglot import exp

from service.sql.errors import SqlError
from service.sql.resolve.context import ResolveContext
from service.sql.resolve.group_by import is_grouped
from service.sql.resolve.syntax import is_aggregate, positions, replaced
from service.sql.scope import Scope

Item = tuple[str, exp.Expr]


def with_qualify(select: exp.Select, items: list[Item], scope: Scope, session: ResolveContext) -> list[Item]:
    """Return the items with the condition of QUALIFY, if there is one, as the last; it may name those of the list.

    A name of a column of the input is that column. Where rows are grouped, it is so in GROUP BY and in aggregates, and
    means what the list calls by it elsewhere, since there is no such column any more.
    """
    clause = select.args.get("qualify")
    if clause is None:
        return items
    named = dict(items)
    grouped = is_grouped(select, [*(node for _, node in items), clause.this], None)

    def part(node: exp.Expr) -> exp.Expr | None:
        if grouped and is_aggregate(node):
            return node
        if isinstance(node, exp.Column) and not node.table and node.name in named:
            return named[node.name] if grouped or positions(node, scope) is None else None
        return None

    condition = replaced(clause.this, part)
    if next(condition.find_all(exp.Window), None) is None:
        hint = f"write {'HAVING' if grouped else 'WHERE'}"
        raise session.give_up(SqlError("QUALIFY without an OVER call", hint=hint, at=clause.this))
    return [*items, ("", condition)]
