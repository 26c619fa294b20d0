"""Queries as values, anywhere in an expression: each becomes a column of the relation.

A condition on a query (IN, EXISTS, ANY, ALL) is a mark join, whose column says whether a row matches. A comparison is
unknown where no row compares and one may, being NULL; a second mark says so, except where the rows are filtered by it.

A query that gives one value is a LEFT JOIN on the one row that it has for each outer row. Where nothing proves that
there is one at most, its rows are counted, and a row that meets several cannot be computed: it is a dead letter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from service.plan.expressions import Call, Column, Expression
from service.plan.nodes import Aggregate, AggregateCall, Field, JoinKind, Place, Project
from service.plan.properties import unique_keys
from service.plan.types import BIGINT
from service.sql.errors import SqlError
from service.sql.expressions.aggregate_types import aggregate_type
from service.sql.expressions.casts import cast
from service.sql.expressions.literals import boolean
from service.sql.resolve.context import QueryRejected, ResolveContext, not_yet
from service.sql.resolve.correlation import correlated_by_columns, hidden
from service.sql.resolve.join_conditions import sort_conditions
from service.sql.resolve.join_nodes import join_of
from service.sql.resolve.relation import Relation, column, extended
from service.sql.resolve.semi_joins import (
    Quantified,
    compared,
    correlated,
    may_be_unknown,
    quantified,
    ttls_of,
    unknown_apart,
)
from service.sql.resolve.subqueries import Subquery, resolve_inner
from service.sql.resolve.syntax import is_aggregate, positional
from service.sql.resolve.unknown_rows import joined_with_unknown
from service.sql.scope import Scope

_SEVERAL = (
    "(CASE WHEN (CASE WHEN {1} > 1 THEN CAST(concat('a query as a value has ', CAST({1} AS VARCHAR), ' rows')"
    " AS BOOLEAN) ELSE true END) THEN {0} END)"
)
"""The value {0} of the only row; a text that is no BOOLEAN where there are {1} rows, which fails in the row itself."""


def with_query_values(
    relation: Relation,
    nodes: Sequence[exp.Expr],
    ttls: Mapping[str, int],
    session: ResolveContext,
    *,
    filters: bool = False,
) -> tuple[Relation, list[exp.Expr]]:
    """Return `relation` with a column for each query in `nodes`, and the nodes with references to these in their place.

    Where a node `filters` rows, a condition may be false that is unknown.
    """
    values = _Values(relation, ttls, session)
    written = [values.written(node, filters=filters) for node in nodes]
    return values.relation, written


def with_aggregated_queries(
    relation: Relation, nodes: Sequence[exp.Expr], ttls: Mapping[str, int], session: ResolveContext
) -> tuple[Relation, list[exp.Expr]]:
    """Return the same for the queries that stand inside the arguments of aggregates."""
    values = _Values(relation, ttls, session)

    def visit(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query):
            return node
        if is_aggregate(node):
            return values.written(node, filters=False)
        return _with_parts(node, visit)

    written = [visit(node) for node in nodes]
    return values.relation, written


def _with_parts(node: exp.Expr, visit: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """`node` with what `visit` makes of its parts; the very same where nothing changes."""
    parts = list(node.iter_expressions())
    new = [visit(part) for part in parts]
    if all(a is b for a, b in zip(parts, new, strict=True)):
        return node
    copy = node.copy()
    for child, part, other in zip(list(copy.iter_expressions()), parts, new, strict=True):
        if part is not other:
            child.replace(other)
    return copy


@dataclass(slots=True)
class _Values:
    """A relation to which columns are added; those that it has keep their places."""

    relation: Relation
    ttls: Mapping[str, int]
    session: ResolveContext

    def written(self, node: exp.Expr, *, filters: bool) -> exp.Expr:
        """`node` with references in place of queries."""
        asked = quantified(node)
        if asked is not None:
            return self._condition(asked, node, filters=filters)
        if isinstance(node, exp.Query):
            return self._value(node)
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            copy = node.copy()
            copy.set("this", self.written(node.this, filters=False))
            return self.written(copy, filters=filters)
        through = filters and isinstance(node, exp.And | exp.Or | exp.Paren)
        return _with_parts(node, lambda part: self.written(part, filters=through))

    def _condition(self, asked: Quantified, at: exp.Expr, *, filters: bool) -> exp.Expr:
        selects = bool(asked.values)
        inner = resolve_inner(asked.query, self.relation, self.ttls, self.session, selects=selects, counts=False)
        if inner.only:
            return self._compared_to_only_row(asked, at)
        asks = asked.negated or not filters
        matches: exp.Expr = self._mark(inner, asked, at, or_null=False)
        if asks and asked.values and may_be_unknown(self.relation, inner, asked, self.session):
            perhaps = self._unknown(inner, asked, at)
            matches = exp.Paren(this=exp.Or(this=matches, expression=exp.And(this=perhaps, expression=exp.Null())))
        return exp.Paren(this=exp.Not(this=matches)) if asked.negated else matches

    def _compared_to_only_row(self, asked: Quantified, at: exp.Expr) -> exp.Expr:
        """A condition on a query that has one row, whatever is in its tables."""
        if not asked.values:
            return exp.Boolean(this=not asked.negated)
        if len(asked.values) > 1:
            what = "a comparison of several values with an aggregate of a query that reads the one around it"
            raise self.session.give_up(not_yet(what, at, "compare the values one by one"))
        found = exp.Paren(this=asked.compare(this=asked.values[0].copy(), expression=self._value(asked.query)))
        return exp.Paren(this=exp.Not(this=found)) if asked.negated else found

    def _unknown(self, inner: Subquery, asked: Quantified, at: exp.Expr) -> exp.Expr:
        if not unknown_apart(self.relation, inner, asked, self.session):
            return self._mark(inner, asked, at, or_null=True)
        ttls = ttls_of(self.relation, inner, self.session)
        self.relation = joined_with_unknown(
            self.relation, inner, asked.values[0], JoinKind.MARK, ttls, at, self.session
        )
        return positional(len(self.relation.scope) - 1, at)

    def _mark(self, inner: Subquery, asked: Quantified, at: exp.Expr, *, or_null: bool) -> exp.Expr:
        inner = inner.beside(len(self.relation.scope))
        conditions = compared(self.relation, inner, asked, at, self.session, or_null=or_null)
        self.relation = correlated(self.relation, inner, JoinKind.MARK, conditions, at, [], self.session)
        return positional(len(self.relation.scope) - 1, at)

    def _value(self, query: exp.Expr) -> exp.Expr:
        inner = resolve_inner(query, self.relation, self.ttls, self.session)
        if len(inner.values) != 1:
            raise self.session.give_up(
                SqlError(f"a query as a value selects one column, this one {len(inner.values)}", at=query)
            )
        joined, value = _only_row(self.relation, inner, query, self.session)
        place = len(joined.scope)
        self.relation = extended(joined, [value], self.session.place(query))
        return positional(place, query)


def _only_row(
    relation: Relation, inner: Subquery, at: exp.Expr, session: ResolveContext
) -> tuple[Relation, Expression]:
    """`relation` beside the row that `inner` has for each of its rows, and the value that it gives there."""
    width, place = len(relation.scope), session.place(at)
    rows = correlated_by_columns(relation, inner.relation, inner.correlation, at, session, ttl=inner.ttl)
    value = rows.start + inner.values[0]
    one = any(key <= set(rows.keys) for key in unique_keys(rows.relation.node))
    if one:
        shown = Relation(rows.relation.node, rows.relation.scope)
        right = extended(shown, [boolean(True)], place)
        keys, found_at, behind = rows.keys, value, len(right.scope) - 1
    else:
        right = _counted(rows.relation, rows.keys, value, place, inner.ttl)
        keys, found_at, behind = tuple(range(len(rows.keys))), len(rows.keys), len(rows.keys) + 1
    found = sort_conditions(rows.equations(keys, width, at), relation, hidden(right), session)
    joined = join_of(relation, hidden(right), JoinKind.LEFT, found, ttls_of(relation, inner, session), at, session)
    start = width + sum(not isinstance(key, Column) for key, _, _ in found.keys)
    given, exists = column(joined.scope, start + found_at), column(joined.scope, start + behind)
    if not one:
        return joined, Call("the only row", (given, exists), given.type, _SEVERAL)
    if inner.empty is None:
        return joined, given
    empty = session.compile(inner.empty, joined.scope)
    if empty is None:
        raise QueryRejected
    empty = cast(empty, given.type, implicit=True, zone=session.zone)
    template = "(CASE WHEN {0} THEN {1} ELSE {2} END)"
    return joined, Call("COALESCE", (exists, given, empty), given.type, template, constants=("where there is one",))


def _counted(relation: Relation, keys: Sequence[int], value: int, place: Place, ttl: int) -> Relation:
    """For each of the keys the value of its row, and how many rows it has."""
    read = [column(relation.scope, i) for i in (*keys, value)]
    fields = tuple(relation.scope.field(c.index).timeless for c in read)
    shown = Project(input=relation.node, expressions=tuple(read), fields=fields, place=place)
    width, kind = len(keys), fields[-1].type
    least = AggregateCall("MIN", (width,), aggregate_type("MIN", [kind]))
    totals = (Field(fields[-1].name, kind), Field("rows", BIGINT, nullable=False))
    node = Aggregate(
        input=shown,
        keys=tuple(range(width)),
        aggregates=(least, AggregateCall("COUNT", (), BIGINT)),
        fields=(*fields[:width], *totals),
        ttl=ttl,
        place=place,
    )
    return Relation(node, Scope.of(node.fields))
