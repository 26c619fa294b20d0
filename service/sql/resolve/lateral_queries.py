"""LATERAL (SELECT ...): a query in FROM that is evaluated for each row of the earlier items.

It is taken apart like a query inside a condition: it aggregates and ranks by the columns that correlate it with the
rows before it, and its rows are joined with these. A query that aggregates without GROUP BY has one row for each of
them, also for one that meets no rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from service.plan.expressions import Call, Column, Expression
from service.plan.nodes import JoinKind, Project
from service.sql.errors import SqlError
from service.sql.expressions.casts import cast
from service.sql.expressions.literals import boolean
from service.sql.resolve.context import QueryRejected, ResolveContext, not_yet
from service.sql.resolve.correlation import by_position, hidden
from service.sql.resolve.inner_clauses import answers_over_nothing
from service.sql.resolve.join_conditions import checked_condition, sort_conditions
from service.sql.resolve.join_nodes import join_of
from service.sql.resolve.relation import Relation, column, extended, filtered
from service.sql.resolve.semi_joins import ttls_of
from service.sql.resolve.subqueries import Subquery, resolve_inner, unwrapped_query
from service.sql.resolve.syntax import conjuncts, output_name
from service.sql.scope import Scope, ScopeColumn


def lateral_join(
    left: Relation, join: exp.Join, kind: JoinKind, ttls: Mapping[str, int], session: ResolveContext
) -> Relation:
    """Return `left` beside the rows that the query has for each of its rows; `ttls` are those of the hints."""
    source = join.this
    if kind not in (JoinKind.INNER, JoinKind.LEFT) or join.args.get("using") or join.args.get("method"):
        raise session.give_up(
            SqlError(
                "LATERAL takes CROSS JOIN, JOIN ... ON and LEFT JOIN ... ON",
                detail="its rows are those of a row of the left side",
                at=join,
            )
        )
    if source.alias in left.scope.qualifiers:
        raise session.give_up(
            SqlError(
                f'the name "{source.alias}" stands for two tables of the query',
                hint=f"give one of them an alias: {source.alias} AS other",
                at=source,
            )
        )
    query = unwrapped_query(source.this)
    inner = resolve_inner(query, left, ttls, session)
    on = list(conjuncts(join.args.get("on")))
    if isinstance(join.args.get("on"), exp.Boolean) and join.args["on"].this:
        on = []
    right = _named(inner, query, source, session)
    if not inner.only:
        found = sort_conditions([*inner.correlation, *on], left, right, session)
        return join_of(left, right, kind, found, ttls_of(left, inner, session), source, session)
    if on and kind is JoinKind.LEFT:
        what = "LEFT JOIN LATERAL with a condition on a query that has one row for each row before it"
        raise session.give_up(not_yet(what, join.args["on"], "write ON TRUE, and CASE WHEN in what is selected"))
    return _filtered(_with_only_row(left, right, inner, query, source, session), on, session)


def _named(inner: Subquery, query: exp.Expr, source: exp.Expr, session: ResolveContext) -> Relation:
    """The rows of the query, found by position, and behind them what it selects, under its names."""
    names = _names(inner, query)
    if len(names) != len(inner.values):
        raise session.give_up(not_yet("a query as a value, inside LATERAL", source))
    alias = source.args.get("alias")
    given = [each.name for each in alias.args.get("columns") or ()] if alias is not None else []
    if given and len(given) != len(names):
        raise session.give_up(
            SqlError(
                f"{len(given)} column names are given for {len(names)} columns",
                detail=f"the columns are {', '.join(names)}",
                at=alias,
            )
        )
    scope, place = inner.relation.scope, session.place(source)
    shown = extended(inner.relation, [column(scope, value) for value in inner.values], place)
    new = [
        ScopeColumn(replace(c.field, name=name), source.alias)
        for c, name in zip(shown.scope.columns[len(scope) :], given or names, strict=True)
    ]
    rows = hidden(replace(shown, windows=()))
    return replace(rows, scope=Scope((*rows.scope.columns[: len(scope)], *new)))


def _names(inner: Subquery, query: exp.Expr) -> list[str]:
    fields = [inner.relation.scope.field(value).name for value in inner.values]
    if not isinstance(query, exp.Select) or any(item.find(exp.Star) and item.is_star for item in query.expressions):
        return fields
    return [output_name(item, i) for i, item in enumerate(query.expressions)]


def _with_only_row(
    left: Relation, right: Relation, inner: Subquery, query: exp.Expr, at: exp.Expr, session: ResolveContext
) -> Relation:
    """`left` beside the only row of the query, which is there for every row of it."""
    place, count = session.place(at), len(inner.values)
    marked = extended(right, [boolean(True)], place)
    found = sort_conditions(inner.correlation, left, marked, session)
    joined = join_of(left, marked, JoinKind.LEFT, found, ttls_of(left, inner, session), at, session)
    met = column(joined.scope, len(joined.scope) - 1)
    answers: dict[int, Expression] = {}
    for i, node in enumerate(answers_over_nothing(query)):
        index = len(joined.scope) - 1 - count + i
        if isinstance(node, exp.Null):
            continue
        empty = session.compile(by_position(node, left.scope, Scope()), joined.scope)
        if empty is None:
            raise QueryRejected
        given = column(joined.scope, index)
        empty = cast(empty, given.type, implicit=True, zone=session.zone)
        template = "(CASE WHEN {0} THEN {1} ELSE {2} END)"
        constants = ("where there is one",)
        answers[index] = Call("COALESCE", (met, given, empty), given.type, template, constants=constants)
    if not answers:
        return joined
    expressions = tuple(answers.get(i, Column(i, f.type, f.name)) for i, f in enumerate(joined.fields))
    return replace(joined, node=Project(input=joined.node, expressions=expressions, fields=joined.fields, place=place))


def _filtered(relation: Relation, conditions: Sequence[exp.Expr], session: ResolveContext) -> Relation:
    for node in conditions:
        condition = session.compile(node, relation.scope)
        if condition is None:
            raise QueryRejected
        relation = filtered(relation, checked_condition(condition, node), session.place(node))
    return relation
