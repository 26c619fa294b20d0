"""Conditions with a query: IN and EXISTS are semi joins, NOT IN and NOT EXISTS anti joins.

x NOT IN (a query with a NULL) is never true, nor is NULL NOT IN (a query with rows): where either may be NULL, the anti
join compares by `x = y OR x IS NULL OR y IS NULL`, for which no key can be hashed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from service.plan.nodes import JoinKind
from service.sql.errors import SqlError
from service.sql.resolve.context import QueryRejected, ResolveContext, not_yet
from service.sql.resolve.from_clause import query_inside
from service.sql.resolve.join_conditions import sort_conditions
from service.sql.resolve.join_nodes import join_of
from service.sql.resolve.joins import resolve_from
from service.sql.resolve.relation import Relation, filtered
from service.sql.resolve.syntax import has_query, is_aggregate, positions, reference
from service.sql.resolve.table_hints import state_ttls
from service.sql.scope import INTERNAL, Scope


def resolve_query_condition(
    relation: Relation, node: exp.Expr, ttls: Mapping[str, int], session: ResolveContext
) -> Relation:
    """The rows of `relation` for which `node`, a condition with a query in it, is true."""
    condition, negated = _unwrapped(node)
    kind = JoinKind.ANTI if negated else JoinKind.SEMI
    match condition:
        case exp.In() if condition.args.get("query") is not None and not has_query(condition.this):
            return _in(relation, condition, kind, ttls, session)
        case exp.Exists():
            return _exists(relation, condition, kind, ttls, session)
        case _:
            raise session.give_up(
                not_yet("a query in this place of a condition", node, "IN and EXISTS may stand between ANDs")
            )


def _unwrapped(node: exp.Expr) -> tuple[exp.Expr, bool]:
    """The condition without parentheses and NOTs, and whether there was an odd number of these."""
    negated = False
    while isinstance(node, exp.Paren | exp.Not):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    return node, negated


def _in(relation: Relation, node: exp.In, kind: JoinKind, ttls: Mapping[str, int], session: ResolveContext) -> Relation:
    query = node.args["query"]
    right = query_inside(query, session)
    listed = right.scope.starred()
    values = list(node.this.expressions) if isinstance(node.this, exp.Tuple) else [node.this]
    if len(listed) != len(values):
        raise session.give_up(
            SqlError(f"IN compares {len(values)} values with a query of {len(listed)} columns", at=query)
        )
    names = {index: f"{INTERNAL}in{place}" for place, index in enumerate(listed)}
    columns = (replace(c, alias=names.get(i, f"{INTERNAL}rest{i}")) for i, c in enumerate(right.scope))
    right = replace(right, scope=Scope(tuple(columns)))
    conditions = []
    for value, index in zip(values, listed, strict=True):
        equal: exp.Expr = exp.EQ(this=value.copy(), expression=reference(names[index], query))
        if kind is JoinKind.ANTI:
            compiled = session.compile(value, relation.scope)
            if compiled is None:
                raise QueryRejected
            read = positions(value, relation.scope) or set()
            simple = isinstance(value, exp.Column) and not any(relation.scope.field(i).nullable for i in read)
            if not simple or right.scope.field(index).nullable:
                equal = _or_null(equal, value, reference(names[index], query))
        conditions.append(equal)
    return _joined(relation, right, kind, conditions, ttls, node, session)


def _or_null(equal: exp.Expr, one: exp.Expr, other: exp.Expr) -> exp.Expr:
    nulls = [exp.Is(this=each.copy(), expression=exp.Null()) for each in (one, other)]
    return exp.Paren(this=exp.Or(this=exp.Or(this=equal, expression=nulls[0]), expression=nulls[1]))


def _exists(
    relation: Relation, node: exp.Exists, kind: JoinKind, ttls: Mapping[str, int], session: ResolveContext
) -> Relation:
    """Conditions of the inner WHERE that read the outer query join; the others filter the inner query."""
    query = node.this
    while isinstance(query, exp.Subquery):
        query = query.this
    others = ("group", "having", "with_", "limit", "offset", "fetch", "order")
    plain = isinstance(query, exp.Select) and query.args.get("from_") and not any(map(query.args.get, others))
    if not plain or any(map(is_aggregate, query.walk())):
        return _joined(relation, query_inside(query, session), kind, [], ttls, node, session)
    right, where = resolve_from(query, session)
    ttls = {**ttls, **state_ttls(query, right.scope.qualifiers, session)}
    _check_items(query, relation, right, session)
    outer: list[exp.Expr] = []
    for each in where:
        if has_query(each):
            right = resolve_query_condition(right, each, ttls, session)
            continue
        if positions(each, right.scope) is None:
            outer.append(each)
            continue
        condition = session.compile(each, right.scope)
        if condition is not None:
            right = filtered(right, condition, session.place(each))
    return _joined(relation, right, kind, outer, ttls, node, session)


def _check_items(query: exp.Select, relation: Relation, right: Relation, session: ResolveContext) -> None:
    """What EXISTS selects is not read, but must be there."""
    before = len(session.mistakes)
    both = relation.scope.beside(right.scope)
    for item in query.expressions:
        star = isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
        if not star and not has_query(item):
            inner = positions(item.unalias(), right.scope) is not None
            session.compile(item.unalias(), right.scope if inner else both)
    if len(session.mistakes) > before:
        raise QueryRejected


def _joined(
    relation: Relation,
    right: Relation,
    kind: JoinKind,
    conditions: list[exp.Expr],
    ttls: Mapping[str, int],
    at: exp.Expr,
    session: ResolveContext,
) -> Relation:
    found = sort_conditions(conditions, relation, right, session)
    left_ttl, right_ttl = (
        next((ttls[q] for q in side.scope.qualifiers if q in ttls), session.ttl) for side in (relation, right)
    )
    return join_of(relation, right, kind, found, (left_ttl, right_ttl), at, session)
