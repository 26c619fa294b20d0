"""Queries inside conditions and expressions, taken apart: their rows, and what ties these to the query around them.

A name means a column of the inner query first, then one of the outer. Conditions of the inner WHERE that read the outer
query are for the join of both; the others filter. What is aggregated or ranked inside such a query is so for each row
of the outer one, so it is grouped by what the rows are tied by: by the inner sides of equations, or else by the outer
columns themselves, of which the distinct values are joined with the inner rows first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from service.plan.expressions import Column
from service.plan.nodes import JoinKind, OrderBy, TopN
from service.sql.errors import SqlError
from service.sql.resolve.context import QueryRejected, ResolveContext, not_yet
from service.sql.resolve.distinct import deduplicated
from service.sql.resolve.from_clause import query_inside
from service.sql.resolve.join_conditions import sort_conditions
from service.sql.resolve.join_nodes import join_of
from service.sql.resolve.joins import resolve_from
from service.sql.resolve.ordering import row_bounds
from service.sql.resolve.ranking import order_items
from service.sql.resolve.relation import Relation, column, extended, filtered, projected
from service.sql.resolve.syntax import (
    call_name,
    columns_in,
    has_query,
    is_aggregate,
    names_of,
    output_name,
    positional,
    positions,
    replaced,
)
from service.sql.resolve.table_hints import state_ttls
from service.sql.scope import INTERNAL, POSITION, Scope, position

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
        ties = tuple(_renumbered(tie, lambda p: p + more if p >= self.width else p) for tie in self.ties)
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


def by_position(node: exp.Expr, outer: Scope, inner: Scope) -> exp.Expr:
    """Return `node` with its columns by their positions in the outer scope, then the inner one, where they are
    in one."""
    width = len(outer)

    def part(each: exp.Expr) -> exp.Expr | None:
        if not isinstance(each, exp.Column):
            return None
        for scope, start in ((inner, width), (outer, 0)):
            try:
                found = scope.lookup(names_of(each))
            except SqlError:
                continue
            column: exp.Expr = positional(start + found.index, each)
            for name in found.path:
                column = exp.Dot(this=column, expression=exp.Identifier(this=name, quoted=True))
            return column
        return None

    return replaced(node, part)


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


def with_columns(
    relation: Relation, nodes: Sequence[exp.Expr], session: ResolveContext
) -> tuple[Relation, tuple[int, ...]]:
    """Return `relation` with a column for each of `nodes` that is none, and where they are."""
    places: list[int] = []
    for node in nodes:
        compiled = session.compile(node, relation.scope)
        if compiled is None:
            raise QueryRejected
        index = getattr(compiled, "index", None)
        if index is None:
            index = len(relation.scope)
            relation = extended(relation, [compiled], session.place(node))
        places.append(index)
    return relation, tuple(places)


def hidden(relation: Relation) -> Relation:
    """Return the relation without names: its columns are found by their positions."""
    scope = relation.scope
    unnamed = (replace(c, qualifier="", listed=False, alias=f"{INTERNAL}inner{i}") for i, c in enumerate(scope))
    return replace(relation, scope=Scope(tuple(unnamed)))


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
        relation, values = _aggregated(query, right, items, written, session)
    else:
        relation, values = _ranked(query, right, keys, written, session)
    width = len(outer.scope)
    conditions = tied.equations(range(len(keys)), width, query)
    return InnerQuery(relation, values, conditions, ttls, width, _empty(query) if grouped else None)


@dataclass(frozen=True, slots=True)
class TiedByColumns:
    """Inner rows of which the columns at `keys` are equal to what is in `outer`: expressions over the outer relation,
    each with whether NULL is equal to NULL. What were their own columns begins at `start`."""

    relation: Relation
    keys: tuple[int, ...]
    outer: tuple[tuple[exp.Expr, bool], ...]
    start: int = 0

    def equations(self, places: Iterable[int], width: int, at: exp.Expr) -> tuple[exp.Expr, ...]:
        """Return the conditions, where the keys are at `places` behind `width` outer columns."""
        return tuple(
            (exp.NullSafeEQ if safe else exp.EQ)(this=each.copy(), expression=positional(width + place, at))
            for (each, safe), place in zip(self.outer, places, strict=True)
        )


def tied_by_columns(
    outer: Relation, right: Relation, ties: Sequence[exp.Expr], at: exp.Expr, session: ResolveContext
) -> TiedByColumns:
    """Return the inner rows with columns that tie them: the inner sides of equations, or all outer columns that they
    meet."""
    width = len(outer.scope)
    sides = [_equation(each, width) for each in ties]
    known = [side for side in sides if side is not None]
    if len(known) == len(sides):
        right, keys = with_columns(right, [_renumbered(inner, lambda p: p - width) for _, inner, _ in known], session)
        return TiedByColumns(right, keys, tuple((mine, safe) for mine, _, safe in known))
    read = sorted({place for each in ties for place in _places(each) if place < width})
    items = [(f"{INTERNAL}outer{i}", column(outer.scope, place)) for i, place in enumerate(read)]
    place = session.place(at)
    values = hidden(deduplicated(_listed(projected(replace(outer, windows=()), items, place)), session, place))
    new = {old: i for i, old in enumerate(read)}
    conditions = [_renumbered(each, lambda p: new[p] if p < width else p - width + len(read)) for each in ties]
    found = sort_conditions(conditions, values, right, session)
    joined = join_of(values, right, JoinKind.INNER, found, (session.ttl, session.ttl), at, session)
    start = len(read) + sum(not isinstance(key, Column) for key, _, _ in found.keys)
    meets = tuple((positional(place, at), True) for place in read)
    return TiedByColumns(joined, tuple(range(len(read))), meets, start)


def _listed(relation: Relation) -> Relation:
    """The relation with all columns under plain names, so that `*` lists them."""
    columns = (replace(c, field=replace(c.field, name=f"outer{i}")) for i, c in enumerate(relation.scope))
    return replace(relation, scope=Scope(tuple(columns)))


def _equation(node: exp.Expr, width: int) -> tuple[exp.Expr, exp.Expr, bool] | None:
    """The outer and the inner side of an equation, if each reads one of the queries, and whether NULL equals NULL."""
    if not isinstance(node, exp.EQ | exp.NullSafeEQ):
        return None
    safe = isinstance(node, exp.NullSafeEQ)
    reads = [{place >= width for place in _places(side)} for side in (node.left, node.right)]
    if reads == [{False}, {True}]:
        return node.left, node.right, safe
    if reads == [{True}, {False}]:
        return node.right, node.left, safe
    return None


def _place(node: exp.Column) -> int:
    """The position that a reference by position names; raises SqlError for another name, which is not known."""
    return position(names_of(node))


def _places(node: exp.Expr) -> set[int]:
    """The positions that an expression reads; a function without parentheses looks like a name, and reads none."""
    return {_place(c) for c in columns_in(node) if c.parts[0].name.startswith(POSITION)}


def _renumbered(node: exp.Expr, new: Callable[[int], int]) -> exp.Expr:
    """`node` with other positions."""

    def part(each: exp.Expr) -> exp.Expr | None:
        if isinstance(each, exp.Column) and each.parts[0].name.startswith(POSITION):
            return positional(new(_place(each)), each)
        return None

    return replaced(node, part)


Items = list[tuple[str, exp.Expr]]


def _aggregated(
    query: exp.Select, right: Relation, keys: Items, written: Items, session: ResolveContext
) -> tuple[Relation, tuple[int, ...]]:
    """One row for each value of the keys, which come first."""
    from service.sql.resolve.group_by import resolve_grouped

    select = exp.Select(expressions=[], group=exp.Group(expressions=[node for _, node in keys]))
    relation, items, _ = resolve_grouped(select, right, [*keys, *written], None, session.ttl, session)
    return _selected(query, relation, items, len(keys), session)


def _ranked(
    query: exp.Select, right: Relation, keys: Sequence[int], written: Items, session: ResolveContext
) -> tuple[Relation, tuple[int, ...]]:
    """The rows within LIMIT for each value of the keys, which come first."""
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
