"""Queries inside conditions and expressions, taken apart: their rows, and the correlation with the query around them.

A name means a column of the inner query first, then one of the outer. Conditions of the inner WHERE that read the outer
query are for the join of both; the others filter. What is aggregated or ranked inside such a query is so for each row
of the outer one, so it is grouped by what correlates the rows: by the inner sides of equations, or else by the outer
columns themselves, of which the distinct values are joined with the inner rows first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from sqlglot import exp

from service.sql.resolve.context import ResolveContext
from service.sql.resolve.correlation import (
    by_position,
    check_names,
    correlated_by_columns,
    places_in,
    renumbered,
    with_columns,
)
from service.sql.resolve.from_clause import query_inside
from service.sql.resolve.inner_clauses import (
    LIMITS,
    Clauses,
    aggregates,
    check_stars,
    check_supported,
    has_over,
    of_distinct_rows,
    over_nothing,
    star_of,
)
from service.sql.resolve.joins import resolve_from
from service.sql.resolve.relation import Relation, filtered
from service.sql.resolve.skew import check_taken
from service.sql.resolve.subquery_aggregates import Grouping, Items, aggregated, first_groups, ranked
from service.sql.resolve.syntax import (
    columns_in,
    has_query,
    output_name,
    positional,
    positions,
    replaced,
)
from service.sql.resolve.table_hints import state_ttls
from service.sql.scope import Scope

_MODIFIERS = ("group", "having", "with_", "limit", "offset", "fetch", "order", "qualify", "windows")


@dataclass(frozen=True, slots=True)
class Subquery:
    """The rows of a query inside another. `values` are the positions of what it selects. `correlation` are conditions
    over the outer relation's columns, then these, by position. `ttls` are those of its hints, beside those of the outer
    query.

    The outer relation has `width` columns. `empty` is what an aggregate answers for an outer row that meets none, over
    the outer columns by position. `only` says that it has one row for each outer one, whether that meets any or not.
    What is kept of the inner rows is kept for `ttl` ms.
    """

    relation: Relation
    values: tuple[int, ...]
    correlation: tuple[exp.Expr, ...]
    ttls: Mapping[str, int]
    width: int
    ttl: int
    empty: exp.Expr | None = None
    only: bool = False

    def beside(self, width: int) -> Subquery:
        """Return the same inside a relation that has got more columns, behind its own."""
        more = width - self.width
        moved = tuple(renumbered(each, lambda p: p + more if p >= self.width else p) for each in self.correlation)
        return replace(self, correlation=moved, width=width)


def unwrapped_query(node: exp.Expr) -> exp.Expr:
    """Return the query without the parentheses around it."""
    while isinstance(node, exp.Subquery) and not any(node.args.get(key) for key in _MODIFIERS):
        node = node.this
    return node


def resolve_inner(
    query: exp.Expr,
    outer: Relation,
    ttls: Mapping[str, int],
    session: ResolveContext,
    *,
    selects: bool = True,
    counts: bool = True,
) -> Subquery:
    """Take apart `query`, which stands inside a query over `outer`; unless it `selects`, its values are not read, and
    unless it `counts`, it does not matter how often a row is there."""
    query = unwrapped_query(query)
    session = replace(session, around=(*session.around, *outer.scope.qualifiers))
    if not isinstance(query, exp.Select) or not query.args.get("from_") or query.args.get("with_"):
        return _whole(query, outer, ttls, session)
    check_stars(query, session)
    clauses = Clauses.of(query, session)
    distinct = bool(query.args.get("distinct")) and (counts or any(map(query.args.get, LIMITS)))
    plain = not clauses.grouped and not any(map(query.args.get, _MODIFIERS)) and not has_over(query) and not distinct
    if plain and not selects:
        return _rows(query, outer, ttls, session, selects=selects)
    if not plain and not query.args.get("where") and not _may_read(clauses, outer.scope):
        return _whole(query, outer, ttls, session)
    found = _correlated(query, outer, ttls, session)
    reads = any(_reads_outer(each, outer.scope, found.right.scope) for each in clauses.nodes)
    if plain and not reads:
        return _rows(query, outer, ttls, session, selects=selects)
    if not found.correlation and not reads:
        return _whole(query, outer, ttls, session)
    if distinct:
        clauses = of_distinct_rows(query, clauses, session)
    return _for_each(query, outer, found, clauses, session)


class _Correlated(NamedTuple):
    """The rows of FROM for which the inner conditions hold, and the other conditions, by position. `ttls` are those of
    all hints, `ttl` is that of what is kept of these rows."""

    right: Relation
    correlation: tuple[exp.Expr, ...]
    ttls: Mapping[str, int]
    ttl: int


def _may_read(clauses: Clauses, outer: Scope) -> bool:
    """Whether a name of the clauses may be one of the outer query, before the inner one is known."""
    return any(positions(column, outer) is not None for each in clauses.nodes for column in columns_in(each))


def _whole(query: exp.Expr, outer: Relation, ttls: Mapping[str, int], session: ResolveContext) -> Subquery:
    """A query that reads nothing of the outer one."""
    relation = query_inside(query, session)
    return Subquery(relation, relation.scope.starred(), (), ttls, len(outer.scope), session.ttl, _empty(query))


def _rows(
    query: exp.Select, outer: Relation, ttls: Mapping[str, int], session: ResolveContext, *, selects: bool
) -> Subquery:
    """The rows of FROM and WHERE, with a column for each item."""
    right, correlation, ttls, ttl = _correlated(query, outer, ttls, session)
    relation, values = _with_items(query, outer, right, session)
    return Subquery(relation if selects else right, values, correlation, ttls, len(outer.scope), ttl)


def _correlated(query: exp.Select, outer: Relation, ttls: Mapping[str, int], session: ResolveContext) -> _Correlated:
    """The rows of FROM and WHERE, and the conditions that correlate them with the outer ones."""
    from service.sql.resolve.semi_joins import resolve_query_condition  # conditions nest, so the modules do

    right, where, hot = resolve_from(query, session)
    ttls = {**ttls, **state_ttls(query, right.scope.qualifiers, session)}
    ttl = next((ttls[q] for q in right.scope.qualifiers if q in ttls), session.ttl)
    correlation: list[exp.Expr] = []
    for each in where:
        if has_query(each):
            right = resolve_query_condition(right, each, ttls, hot, session)
            continue
        check_names([each], outer.scope, right.scope, session)
        if _reads_outer(each, outer.scope, right.scope):
            correlation.append(each)
        else:
            condition = session.compile(each, right.scope)
            if condition is not None:
                right = filtered(right, condition, session.place(each))
    check_taken(hot, session)
    return _Correlated(right, tuple(by_position(each, outer.scope, right.scope) for each in correlation), ttls, ttl)


def _reads_outer(node: exp.Expr, outer: Scope, inner: Scope) -> bool:
    """Whether a condition has a name that is none of the inner query, but one of the outer."""
    return any(positions(c, inner) is None and positions(c, outer) is not None for c in columns_in(node))


def _with_items(
    query: exp.Select, outer: Relation, right: Relation, session: ResolveContext
) -> tuple[Relation, tuple[int, ...]]:
    """`right` with a column for each item that is none; what is selected of the outer query is read, but is none."""
    both = outer.scope.beside(right.scope)
    values: list[int] = []
    with session.all_or_nothing():
        for item in query.expressions:
            star, qualifier = star_of(item)
            if star:
                values += right.scope.starred(qualifier)
                continue
            if has_query(item):
                continue
            node = item.unalias()
            check_names([node], outer.scope, right.scope, session)
            inner = positions(node, right.scope) is not None
            compiled = session.compile(node, right.scope if inner else both)
            if compiled is None or not inner:
                continue
            right, (place,) = with_columns(right, [node], session)
            values.append(place)
    return right, tuple(values)


def _empty(query: exp.Expr) -> exp.Expr | None:
    """What the only item of a query that aggregates all its rows is over no rows; None where it is NULL or no row."""
    query = unwrapped_query(query)
    if not isinstance(query, exp.Select) or query.args.get("group") or query.args.get("having"):
        return None
    (item, *others) = query.expressions
    if others or not aggregates(item):
        return None
    empty = over_nothing(item.unalias())
    return None if isinstance(empty, exp.Null) or next(columns_in(empty), None) else empty


def _for_each(
    query: exp.Select, outer: Relation, found: _Correlated, clauses: Clauses, session: ResolveContext
) -> Subquery:
    """What a query selects, aggregates or ranks for each row of the outer one."""
    check_supported(query, clauses, session)
    check_names((n for n in clauses.nodes if not star_of(n)[0]), outer.scope, found.right.scope, session)
    width = len(outer.scope)

    def placed(node: exp.Expr) -> exp.Expr:
        return by_position(node, outer.scope, found.right.scope)

    columns = [column for node in clauses.nodes if not star_of(node)[0] for column in columns_in(node)]
    read = {place for column in columns for place in places_in(placed(column)) if place < width}
    rows = correlated_by_columns(outer, found.right, found.correlation, query, session, ttl=found.ttl, also=read)
    right, keys = rows.relation, rows.keys

    def inside(node: exp.Expr) -> exp.Expr:
        return rows.inside(placed(node), width)

    written: Items = []
    for i, item in enumerate(query.expressions):
        star, qualifier = star_of(item)
        if star:
            places = found.right.scope.starred(qualifier)
            named = [(found.right.scope.field(p).name, positional(width + p, item)) for p in places]
            written += [(name, rows.inside(node, width)) for name, node in named]
        else:
            written.append((output_name(item, i), inside(item.unalias())))
    order = None if clauses.order is None else replaced(clauses.order, _each_column(inside))
    if clauses.grouped:
        # The inner query as one over `right`, with the columns that correlate its rows in front.
        items: Items = [(right.scope.field(key).name, positional(key, query)) for key in keys]
        having = None if clauses.having is None else inside(clauses.having)
        grouping = Grouping(written, [inside(node) for node in clauses.group], having)
        if any(map(query.args.get, LIMITS)):
            relation, values = first_groups(query, right, items, grouping, order, found.ttl, session)
        else:
            relation, values = aggregated(query, right, items, grouping, found.ttl, session)
    else:
        relation, values = ranked(query, right, keys, written, order, found.ttl, session)
    empty, only = None, clauses.grouped and not clauses.group and clauses.having is None
    if only and len(clauses.items) == 1:
        nothing = over_nothing(clauses.items[0])
        empty = None if isinstance(nothing, exp.Null) else by_position(nothing, outer.scope, Scope())
    conditions = rows.equations(range(len(keys)), width, query)
    return Subquery(relation, values, conditions, found.ttls, width, found.ttl, empty, only)


def _each_column(rule: Callable[[exp.Expr], exp.Expr]) -> Callable[[exp.Expr], exp.Expr | None]:
    return lambda node: rule(node) if isinstance(node, exp.Column) else None
