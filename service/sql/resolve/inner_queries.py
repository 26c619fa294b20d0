"""Queries inside conditions and expressions, taken apart: their rows, and what ties these to the query around them.

A name means a column of the inner query first, then one of the outer. Conditions of the inner WHERE that read the outer
query are for the join of both; the others filter. What is aggregated or ranked inside such a query is so for each row
of the outer one, so it is grouped by what the rows are tied by: by the inner sides of equations, or else by the outer
columns themselves, of which the distinct values are joined with the inner rows first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from service.sql.resolve.context import ResolveContext, not_yet
from service.sql.resolve.from_clause import query_inside
from service.sql.resolve.inner_aggregates import Items, aggregated, ranked
from service.sql.resolve.joins import resolve_from
from service.sql.resolve.relation import Relation, filtered
from service.sql.resolve.syntax import (
    call_name,
    columns_in,
    has_query,
    is_aggregate,
    output_name,
    positional,
    positions,
    replaced,
)
from service.sql.resolve.table_hints import state_ttls
from service.sql.resolve.ties import by_position, renumbered, tied_by_columns, with_columns
from service.sql.scope import Scope

_MODIFIERS = ("group", "having", "with_", "limit", "offset", "fetch", "order", "qualify", "windows")


@dataclass(frozen=True, slots=True)
class InnerQuery:
    """The rows of a query inside another. `values` are the positions of what it selects. `ties` are conditions over the
    outer relation's columns, then these, by position. `ttls` are those of its hints, beside those of the outer query.

    The outer relation has `width` columns. `empty` is what an aggregate answers for an outer row that meets none.
    """

    relation: Relation
    values: tuple[int, ...]
    ties: tuple[exp.Expr, ...]
    ttls: Mapping[str, int]
    width: int
    empty: exp.Expr | None = None

    def beside(self, width: int) -> InnerQuery:
        """Return the same inside a relation that has got more columns, behind its own."""
        more = width - self.width
        ties = tuple(renumbered(tie, lambda p: p + more if p >= self.width else p) for tie in self.ties)
        return replace(self, ties=ties, width=width)


def unwrapped_query(node: exp.Expr) -> exp.Expr:
    """Return the query without the parentheses around it."""
    while isinstance(node, exp.Subquery) and not any(node.args.get(key) for key in _MODIFIERS):
        node = node.this
    return node


def resolve_inner(
    query: exp.Expr, outer: Relation, ttls: Mapping[str, int], session: ResolveContext, *, selects: bool = True
) -> InnerQuery:
    """Take apart `query`, which stands inside a query over `outer`; unless it `selects`, its values are not read."""
    query = unwrapped_query(query)
    if not isinstance(query, exp.Select) or not query.args.get("from_") or not _may_be_tied(query):
        return _whole(query, outer, ttls, session)
    grouped = any(_aggregates(item) for item in query.expressions)
    if not grouped and not any(map(query.args.get, _MODIFIERS)) and not _has_over(query):
        return _rows(query, outer, ttls, session, selects=selects)
    right, ties, ttls = _tied(query, outer, ttls, session)
    if not ties:
        return _whole(query, outer, ttls, session)
    return _for_each(query, outer, right, ties, ttls, session, grouped=grouped)


def _may_be_tied(query: exp.Select) -> bool:
    return bool(query.args.get("where")) or not any(map(query.args.get, _MODIFIERS))


def _whole(query: exp.Expr, outer: Relation, ttls: Mapping[str, int], session: ResolveContext) -> InnerQuery:
    """A query that reads nothing of the outer one."""
    relation = query_inside(query, session)
    return InnerQuery(relation, relation.scope.starred(), (), ttls, len(outer.scope), _empty(query))


def _rows(
    query: exp.Select, outer: Relation, ttls: Mapping[str, int], session: ResolveContext, *, selects: bool
) -> InnerQuery:
    """The rows of FROM and WHERE, with a column for each item."""
    right, ties, ttls = _tied(query, outer, ttls, session)
    relation, values = _with_items(query, outer, right, session)
    return InnerQuery(relation if selects else right, values, ties, ttls, len(outer.scope))


def _tied(
    query: exp.Select, outer: Relation, ttls: Mapping[str, int], session: ResolveContext
) -> tuple[Relation, tuple[exp.Expr, ...], Mapping[str, int]]:
    """The rows of FROM for which the inner conditions hold, and the other conditions."""
    from service.sql.resolve.semi_joins import resolve_query_condition  # conditions nest, so the modules do

    right, where = resolve_from(query, session)
    ttls = {**ttls, **state_ttls(query, right.scope.qualifiers, session)}
    ties: list[exp.Expr] = []
    for each in where:
        if has_query(each):
            right = resolve_query_condition(right, each, ttls, session)
        elif _reads_outer(each, outer.scope, right.scope):
            ties.append(each)
        else:
            condition = session.compile(each, right.scope)
            if condition is not None:
                right = filtered(right, condition, session.place(each))
    return right, tuple(by_position(each, outer.scope, right.scope) for each in ties), ttls


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
            star, qualifier = _star(item)
            if star:
                values += right.scope.starred(qualifier)
                continue
            if has_query(item):
                continue
            node = item.unalias()
            inner = positions(node, right.scope) is not None
            compiled = session.compile(node, right.scope if inner else both)
            if compiled is None or not inner:
                continue
            right, (place,) = with_columns(right, [node], session)
            values.append(place)
    return right, tuple(values)


def _aggregates(node: exp.Expr) -> bool:
    """Whether an item aggregates, outside of queries inside it and of OVER."""
    if isinstance(node, exp.Query | exp.Window):
        return False
    return is_aggregate(node) or any(map(_aggregates, node.iter_expressions()))


def _has_over(query: exp.Select) -> bool:
    return any(item.find(exp.Window) is not None for item in query.expressions)


def _empty(query: exp.Expr) -> exp.Expr | None:
    """What the only item of a query that aggregates all its rows is over no rows; None where it is NULL or no row."""
    query = unwrapped_query(query)
    if not isinstance(query, exp.Select) or query.args.get("group") or query.args.get("having"):
        return None
    (item, *others) = query.expressions
    if others or not _aggregates(item):
        return None

    def part(node: exp.Expr) -> exp.Expr | None:
        if not is_aggregate(node):
            return None
        call = node.this if isinstance(node, exp.Filter) else node
        counts = call_name(call) in ("COUNT", "APPROX_COUNT_DISTINCT")
        return exp.Literal.number(0) if counts else exp.Null()

    over_nothing = replaced(item.unalias(), part)
    return None if isinstance(over_nothing, exp.Null) or next(columns_in(over_nothing), None) else over_nothing


def _star(node: exp.Expr) -> tuple[bool, str]:
    if isinstance(node, exp.Star):
        return True, ""
    return isinstance(node, exp.Column) and isinstance(node.this, exp.Star), getattr(node, "table", "")


def _for_each(
    query: exp.Select,
    outer: Relation,
    right: Relation,
    ties: Sequence[exp.Expr],
    ttls: Mapping[str, int],
    session: ResolveContext,
    *,
    grouped: bool,
) -> InnerQuery:
    """What a query aggregates, or ranks, for each row of the outer one."""
    if query.args.get("group") or query.args.get("having") or query.args.get("qualify") or _has_over(query):
        clause = "GROUP BY" if query.args.get("group") else "HAVING" if query.args.get("having") else "OVER"
        what = f"{clause} in a query that reads the one around it"
        raise session.give_up(not_yet(what, query, "write it as a query in FROM, and join it"))
    if any(has_query(item) for item in query.expressions):
        raise session.give_up(not_yet("a query as a value, inside such a query", query))
    tied = tied_by_columns(outer, right, ties, query, session)
    right, keys = tied.relation, tied.keys
    # The inner query as one over `right`, with what ties its rows in front.
    items: Items = [(right.scope.field(key).name, positional(key, query)) for key in keys]
    written = [
        (output_name(item, i), by_position(item.unalias(), Scope(), right.scope))
        for i, item in enumerate(query.expressions)
    ]
    if grouped:
        relation, values = aggregated(query, right, items, written, session)
    else:
        relation, values = ranked(query, right, keys, written, session)
    width = len(outer.scope)
    conditions = tied.equations(range(len(keys)), width, query)
    return InnerQuery(relation, values, conditions, ttls, width, _empty(query) if grouped else None)
