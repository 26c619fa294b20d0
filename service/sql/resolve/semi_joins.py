"""Conditions with a query: IN, EXISTS and ANY are semi joins, NOT IN, NOT EXISTS and ALL anti joins.

x NOT IN (a query with a NULL) is never true, nor is NULL NOT IN (a query with rows). Where either may be NULL, a second
anti join finds these rows (`unknown_rows`); where other columns correlate the rows, too, one join compares by
`x = y OR x IS NULL OR y IS NULL`, and so it is with every ALL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from service.plan.nodes import JoinKind
from service.sql.errors import SqlError
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.correlation import by_position, hidden
from service.sql.resolve.join_conditions import checked_condition, sort_conditions
from service.sql.resolve.join_nodes import join_of
from service.sql.resolve.relation import Relation, filtered
from service.sql.resolve.skew import Skew, spread_all
from service.sql.resolve.subqueries import Subquery, resolve_inner
from service.sql.resolve.syntax import has_query, positional, positions
from service.sql.resolve.unknown_rows import joined_with_unknown
from service.sql.scope import Scope

_OPPOSITE: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
}


@dataclass(frozen=True, slots=True)
class Quantified:
    """A condition on a query: for any row of `query` each of `values` compares to the value of its column, or for none
    if `negated`. Without values it is EXISTS."""

    query: exp.Expr
    values: tuple[exp.Expr, ...] = ()
    compare: type[exp.Expr] = exp.EQ
    negated: bool = False


def quantified(node: exp.Expr) -> Quantified | None:
    """Return what `node` asks of a query: IN, EXISTS, a comparison with ANY, SOME or ALL; None if it is none of
    these."""
    match node:
        case exp.Exists():
            return Quantified(node.this)
        case exp.In() if node.args.get("query") is not None and not has_query(node.this):
            return Quantified(node.args["query"], _parts(node.this, node.args["query"]))
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE() if isinstance(
            node.expression, exp.Any | exp.All
        ):
            query = node.expression.this
            if has_query(node.this) or not isinstance(query, exp.Query):
                return None
            if isinstance(node.expression, exp.All):
                return Quantified(query, _parts(node.this, query), _OPPOSITE[type(node)], negated=True)
            return Quantified(query, _parts(node.this, query), type(node))
        case _:
            return None


def _parts(node: exp.Expr, query: exp.Expr) -> tuple[exp.Expr, ...]:
    """The values that are compared with the columns of `query`: those of a row, unless its only column is compared with
    the row as one value."""
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    if isinstance(node, exp.Anonymous) and node.name.upper() == "ROW":
        columns = query.unnest().selects if isinstance(query, exp.Query) else []
        if len(columns) != 1 or columns[0].is_star:
            return tuple(node.expressions)
    return (node,)


def resolve_query_condition(
    relation: Relation, node: exp.Expr, ttls: Mapping[str, int], hot: list[Skew], session: ResolveContext
) -> Relation:
    """Return the rows of `relation` for which `node`, a condition with a query in it, is true. Keys that it spreads
    are then removed from `hot`."""
    from service.sql.resolve.query_values import with_query_values  # values hold conditions, and conditions values

    condition, negated = _unwrapped(node)
    asked = quantified(condition)
    inner = None
    if asked is not None:
        inner = resolve_inner(asked.query, relation, ttls, session, selects=bool(asked.values), counts=False)
    if asked is None or inner is None or inner.only:
        relation, (condition,) = with_query_values(relation, [node], ttls, session, filters=True)
        compiled = session.compile(condition, relation.scope)
        if compiled is None:
            raise QueryRejected
        with session.mistakes.collecting(node):
            return filtered(relation, checked_condition(compiled, node), session.place(node))
        raise QueryRejected
    kind = JoinKind.ANTI if negated != asked.negated else JoinKind.SEMI
    apart = kind is JoinKind.ANTI and unknown_apart(relation, inner, asked, session)
    if apart:
        kept = ttls_of(relation, inner, session)
        relation = joined_with_unknown(relation, inner, asked.values[0], kind, kept, condition, session)
        inner = inner.beside(len(relation.scope))
    conditions = compared(relation, inner, asked, condition, session, or_null=kind is JoinKind.ANTI and not apart)
    return correlated(relation, inner, kind, conditions, condition, hot, session)


def _unwrapped(node: exp.Expr) -> tuple[exp.Expr, bool]:
    """The condition without parentheses and NOTs, and whether there was an odd number of these."""
    negated = False
    while isinstance(node, exp.Paren | exp.Not):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    return node, negated


def compared(
    relation: Relation,
    inner: Subquery,
    asked: Quantified,
    at: exp.Expr,
    session: ResolveContext,
    *,
    or_null: bool,
) -> list[exp.Expr]:
    """Return the comparisons with the values of a query, for each row of it; `or_null` also takes those that are
    unknown."""
    if not asked.values:
        return []
    if len(inner.values) != len(asked.values):
        word = "IN" if isinstance(at, exp.In) else "this comparison"
        columns = "a query of 1 column" if len(inner.values) == 1 else f"a query of {len(inner.values)} columns"
        values = "1 value" if len(asked.values) == 1 else f"{len(asked.values)} values"
        raise session.give_up(SqlError(f"{word} compares {values} with {columns}", at=asked.query))
    conditions: list[exp.Expr] = []
    for value, index in zip(asked.values, inner.values, strict=True):
        mine = by_position(value, relation.scope, Scope())
        theirs = positional(len(relation.scope) + index, asked.query)
        condition: exp.Expr = asked.compare(this=mine, expression=theirs)
        if or_null and _may_be_null(value, relation, inner, index, session):
            condition = _or_null(condition, mine, theirs)
        conditions.append(condition)
    if len(conditions) == 1 or asked.compare is exp.EQ:
        return conditions
    if asked.compare is not exp.NEQ:
        message = "several values are compared with the rows of a query by = and <> only"
        hint = "compare them one by one, in WHERE of a query in EXISTS (...)"
        raise session.give_up(SqlError(message, hint=hint, at=at))
    # Rows are different if any of their values are.
    return [exp.Paren(this=exp.or_(*conditions, copy=False))]


def unknown_apart(relation: Relation, inner: Subquery, asked: Quantified, session: ResolveContext) -> bool:
    """Return whether rows that compare as unknown are found by a join of their own: where nothing else correlates the
    rows, so that all would meet in one shard."""
    one = len(asked.values) == len(inner.values) == 1 and asked.compare is exp.EQ and not inner.correlation
    return one and may_be_unknown(relation, inner, asked, session)


def may_be_unknown(relation: Relation, inner: Subquery, asked: Quantified, session: ResolveContext) -> bool:
    """Return whether a comparison with a value of a query may be NULL."""
    return any(
        _may_be_null(value, relation, inner, index, session)
        for value, index in zip(asked.values, inner.values, strict=True)
    )


def _may_be_null(value: exp.Expr, relation: Relation, inner: Subquery, index: int, session: ResolveContext) -> bool:
    if session.compile(value, relation.scope) is None:
        raise QueryRejected
    read = positions(value, relation.scope) or set()
    simple = isinstance(value, exp.Column) and not any(relation.scope.field(i).nullable for i in read)
    return not simple or inner.relation.scope.field(index).nullable


def _or_null(condition: exp.Expr, one: exp.Expr, other: exp.Expr) -> exp.Expr:
    nulls = [exp.Is(this=each.copy(), expression=exp.Null()) for each in (one, other)]
    return exp.Paren(this=exp.Or(this=exp.Or(this=condition, expression=nulls[0]), expression=nulls[1]))


def correlated(
    relation: Relation,
    inner: Subquery,
    kind: JoinKind,
    conditions: Sequence[exp.Expr],
    at: exp.Expr,
    hot: list[Skew],
    session: ResolveContext,
) -> Relation:
    """Return the join of `relation` with the rows of a query inside it, whose names it does not show; keys that it
    compares are then removed from `hot`."""
    right = hidden(inner.relation)
    ttls = ttls_of(relation, inner, session)
    found = sort_conditions([*inner.correlation, *conditions], relation, right, session)
    relation, right, found = spread_all(relation, right, kind, found, hot, session)
    return join_of(relation, right, kind, found, ttls, at, session)


def ttls_of(relation: Relation, inner: Subquery, session: ResolveContext) -> tuple[int, int]:
    """Return how long both sides of the join with an inner query are kept, in ms."""
    sides = (relation, session.ttl), (inner.relation, inner.ttl)
    left, right = (next((inner.ttls[q] for q in side.scope.qualifiers if q in inner.ttls), ttl) for side, ttl in sides)
    return left, right
