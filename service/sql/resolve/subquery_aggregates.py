"""The aggregates and ranks of an inner query for each row of the outer one, grouped by the correlated columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from sqlglot import exp

from service.plan.expressions import Column
from service.plan.nodes import OrderBy, TopN
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.ordering import not_selected, row_bounds
from service.sql.resolve.ranking import order_items
from service.sql.resolve.relation import Relation, extended, filtered, projected
from service.sql.resolve.syntax import positional
from service.sql.scope import INTERNAL

Items = list[tuple[str, exp.Expr]]
"""Names, and what they stand for."""


class Grouping(NamedTuple):
    """A grouped query: what it selects, by what it groups its rows, and which groups it keeps."""

    items: Items
    group: Sequence[exp.Expr] = ()
    having: exp.Expr | None = None


def aggregated(
    query: exp.Select, right: Relation, keys: Items, written: Grouping, ttl: int, session: ResolveContext
) -> tuple[Relation, tuple[int, ...]]:
    """Return one row for each value of the keys, which come first, and for each group within these."""
    from service.sql.resolve.group_by import resolve_grouped

    group = exp.Group(expressions=[*(node for _, node in keys), *written.group])
    select = exp.Select(expressions=[], group=group)
    relation, items, having = resolve_grouped(select, right, [*keys, *written.items], written.having, ttl, session)
    if having is not None:
        condition = session.compile(having, relation.scope)
        if condition is None:
            raise QueryRejected
        relation = filtered(relation, condition, session.place(query))
    return _selected(query, relation, items, len(keys), session)


def first_groups(
    query: exp.Select,
    right: Relation,
    keys: Items,
    written: Grouping,
    order: exp.Expr | None,
    ttl: int,
    session: ResolveContext,
) -> tuple[Relation, tuple[int, ...]]:
    """Return the groups within LIMIT, in the given order, for each value of the keys, which come first."""
    items = list(written.items)
    places: list[int] = []
    for each in () if order is None else order.expressions:
        place = next((i for i, (_, node) in enumerate(items) if node == each.this), None)
        if place is None:
            if query.args.get("distinct"):
                raise session.give_up(not_selected(each))
            place = len(items)
            items.append((f"{INTERNAL}order{place}", each.this))
        places.append(place)
    relation, _ = aggregated(query, right, keys, written._replace(items=items), ttl, session)
    by = None if order is None else order.copy()
    for each, place in zip(() if by is None else by.expressions, places, strict=True):
        each.set("this", positional(len(keys) + place, each))
    listed: Items = [(name, positional(len(keys) + i, query)) for i, (name, _) in enumerate(written.items)]
    return ranked(query, relation, range(len(keys)), listed, by, ttl, session)


def ranked(
    query: exp.Select,
    right: Relation,
    keys: Sequence[int],
    written: Items,
    order: exp.Expr | None,
    ttl: int,
    session: ResolveContext,
) -> tuple[Relation, tuple[int, ...]]:
    """Return the rows within LIMIT, in the given order, for each value of the keys, which come first."""
    first, last = row_bounds(query, session)
    items = () if order is None else order_items(order, right.scope, session)
    place = session.place(query.args.get("order") or query)
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
            ttl=ttl,
            place=place,
        )
        relation = replace(relation, node=node)
    correlated = [(right.scope.field(key).name, positional(key, query)) for key in keys]
    return _selected(query, relation, [*correlated, *written], len(keys), session)


def _selected(
    query: exp.Select, relation: Relation, items: Items, keys: int, session: ResolveContext
) -> tuple[Relation, tuple[int, ...]]:
    compiled = [(name, session.compile(node, relation.scope)) for name, node in items]
    known = [(name, expression) for name, expression in compiled if expression is not None]
    if len(known) < len(compiled):
        raise QueryRejected
    relation = projected(replace(relation, windows=()), known, session.place(query))
    return relation, tuple(range(keys, len(known)))
