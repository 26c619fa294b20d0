"""Comparisons that are unknown, in shards of their own: what keeps NOT IN from being one join in one shard.

`x = y` is unknown for some row of a query if the query has a row and x is NULL, or has a row in which y is NULL. For
that it is enough to know which of the two kinds of rows there are: two rows at most, which are repeated for each of the
places that the outer rows are spread over. Whether any y equals x is left to a join by the key.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from service.plan.nodes import JoinKind
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.correlation import by_position, hidden
from service.sql.resolve.distinct import deduplicated
from service.sql.resolve.join_conditions import sort_conditions
from service.sql.resolve.join_nodes import join_of
from service.sql.resolve.relation import Relation, projected
from service.sql.resolve.skew import everywhere, place_by
from service.sql.resolve.subqueries import Subquery
from service.sql.resolve.syntax import positional
from service.sql.scope import Scope


def joined_with_unknown(
    relation: Relation,
    inner: Subquery,
    value: exp.Expr,
    kind: JoinKind,
    ttls: tuple[int, int],
    at: exp.Expr,
    session: ResolveContext,
) -> Relation:
    """Return the join of `relation` with the kinds of rows of a query to which `value` compares as unknown."""
    place = session.place(at)
    is_null = session.compile(_is_null(positional(inner.values[0], at)), inner.relation.scope)
    if is_null is None:
        raise QueryRejected
    rows = replace(inner.relation, windows=())
    kinds = deduplicated(projected(rows, [("is_null", is_null)], place), session, place, inner.ttl)
    right, copy = everywhere(hidden(kinds), at, session)
    mine = by_position(value, relation.scope, Scope())
    unknown = exp.Or(this=positional(len(relation.scope), at), expression=_is_null(mine))
    found = sort_conditions([unknown], relation, right, session)
    compiled = session.compile(mine, relation.scope)
    if compiled is None:
        raise QueryRejected
    found = replace(found, keys=[(place_by(compiled), copy, False)])
    return join_of(relation, right, kind, found, ttls, at, session)


def _is_null(node: exp.Expr) -> exp.Expr:
    return exp.Is(this=node, expression=exp.Null())
