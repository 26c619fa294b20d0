"""What an inner query aggregates or ranks, for each row of the outer one: grouped by what ties the rows of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from service.plan.expressions import Column
from service.plan.nodes import OrderBy, TopN
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.ordering import row_bounds
from service.sql.resolve.ranking import order_items
from service.sql.resolve.relation import Relation, extended, projected
from service.sql.resolve.syntax import positional, replaced
from service.sql.resolve.ties import by_position
from service.sql.scope import Scope

Items = list[tuple[str, exp.Expr]]
"""Names, and what they stand for."""


def aggregated(
    query: exp.Select, right: Relation, keys: Items, written: Items, session: ResolveContext
) -> tuple[Relation, tuple[int, ...]]:
    """Return one row for each value of the keys, which come first."""
    from service.sql.resolve.group_by import resolve_grouped

    select = exp.Select(expressions=[], group=exp.Group(expressions=[node for _, node in keys]))
    relation, items, _ = resolve_grouped(select, right, [*keys, *written], None, session.ttl, session)
    return _selected(query, relation, items, len(keys), session)


def ranked(
    query: exp.Select, right: Relation, keys: Sequence[int], written: Items, session: ResolveContext
) -> tuple[Relation, tuple[int, ...]]:
    """Return the rows within LIMIT for each value of the keys, which come first."""
    first, last = row_bounds(query, session)
    order = query.args.get("order")
    items = () if order is None else order_items(replaced(order, _inner_column(right.scope)), right.scope, session)
    place = session.place(order or query)
    wide = extended(right, [i.expression for i in items if not isinstance(i.expression, Column)], place)
    added = iter(range(len(right.scope), len(wide.scope)))
    by = tuple(
        OrderBy(
            column=i.expression.index if isinstance(i.expression, Column) else next(added),
            descending=i.descending,
            nulls_first=i.nulls_first,
        )
        for i in items
    )
    relation = replace(wide, windows=())
    if last is not None:
        node = TopN(
            input=wide.node,
            partition=tuple(keys),
            order=by,
            fields=wide.fields,
            first=first,
            last=last,
            shown=False,
            ttl=session.ttl,
            place=place,
        )
        relation = replace(relation, node=node)
    tied = [(right.scope.field(key).name, positional(key, query)) for key in keys]
    return _selected(query, relation, [*tied, *written], len(keys), session)


def _inner_column(scope: Scope) -> Callable[[exp.Expr], exp.Expr | None]:
    return lambda node: by_position(node, Scope(), scope) if isinstance(node, exp.Column) else None


def _selected(
    query: exp.Select, relation: Relation, items: Items, keys: int, session: ResolveContext
) -> tuple[Relation, tuple[int, ...]]:
    compiled = [(name, session.compile(node, relation.scope)) for name, node in items]
    known = [(name, expression) for name, expression in compiled if expression is not None]
    if len(known) < len(compiled):
        raise QueryRejected
    relation = projected(replace(relation, windows=()), known, session.place(query))
    return relation, tuple(range(keys, len(known)))
