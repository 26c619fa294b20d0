"""Queries of every form: SELECT, set operations, VALUES, WITH, parentheses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from service.plan.expressions import Expression
from service.plan.nodes import Field, Node, SetKind, SetOperation, Union
from service.plan.table import TimeKind
from service.plan.types import flink
from service.sql.errors import SqlError
from service.sql.expressions.casts import cast, common_type
from service.sql.resolve.context import CommonTable, QueryRejected, ResolveContext, not_yet
from service.sql.resolve.distinct import deduplicated
from service.sql.resolve.ordering import ordered
from service.sql.resolve.relation import Relation, column, projected, visible
from service.sql.resolve.select import resolve_select
from service.sql.resolve.table_hints import longest_ttl
from service.sql.resolve.unread import refuse_unread
from service.sql.resolve.values_clause import resolve_values
from service.sql.resolve.window_sets import SharedWindow, rows_of, shared_window, windowed_set, windowed_union
from service.sql.scope import Scope


def resolve_whole_query(query: exp.Expr, session: ResolveContext) -> Relation:
    """Return the relation of a statement's query, all clauses of which are read; raises QueryRejected, too."""
    refuse_unread(query, session)
    return resolve_query(query, session)


def resolve_query(query: exp.Expr, session: ResolveContext) -> Relation:
    """Return the relation that `query` gives; raises QueryRejected, its mistakes noted, if it has any."""
    session = _with(query, session)
    match query:
        case exp.Select():
            return resolve_select(query, session)
        case exp.Values():
            return _ordered(query, resolve_values(query, session), session)
        case exp.Subquery():
            return _ordered(query, resolve_query(query.this, session), session)
        case exp.Table(this=exp.Values() as values):
            return resolve_values(values, session)
        case exp.SetOperation():
            return _ordered(query, _set_operation(query, session), session)
        case _:
            raise session.give_up(SqlError("a query is expected here", at=query))


def _with(query: exp.Expr, session: ResolveContext) -> ResolveContext:
    """The session with the WITH queries of `query`; each sees those before it."""
    clause = query.args.get("with_")
    if clause is None:
        return session
    if clause.args.get("recursive"):
        raise session.give_up(not_yet("WITH RECURSIVE", clause))
    for each in clause.expressions:
        alias = each.args["alias"]
        names = tuple(c.name for c in alias.args.get("columns") or ())
        session = replace(session, ctes={**session.ctes, alias.name: CommonTable(names, each.this, session)})
    return session


def _ordered(query: exp.Expr, relation: Relation, session: ResolveContext) -> Relation:
    """The relation with the ORDER BY and LIMIT that stand behind the whole of `query`."""
    return ordered(query, relation, session, session.ttl)


def _set_operation(query: exp.SetOperation, session: ResolveContext) -> Relation:
    if not isinstance(query, exp.Union):
        return _compared(query, session)
    distinct = bool(query.args.get("distinct"))
    branches = [*_branches(query.left, distinct), *_branches(query.right, distinct)]
    relations = _resolved(branches, session)
    fields = _common_fields(relations, branches, "a UNION", session)
    place = session.place(branches[0])
    window = shared_window(relations)
    if window is not None:
        rows = windowed_union(_of_window(relations, window, fields, session), len(fields), window, place)
        return deduplicated(rows, session, session.place(query)) if distinct else rows
    relations = _shown(relations, branches, session)
    inputs = tuple(_cast_to(r, fields, session) for r in relations)
    node = Union(inputs=inputs, fields=fields, place=place)
    union = Relation(node, Scope.of(fields))
    return deduplicated(union, session, session.place(query), longest_ttl(branches, session)) if distinct else union


def _branches(query: exp.Expr, distinct: bool) -> list[exp.Expr]:
    """The queries that a chain of UNIONs of one kind puts together."""
    if isinstance(query, exp.Union) and bool(query.args.get("distinct")) == distinct and not query.args.get("with_"):
        return [*_branches(query.left, distinct), *_branches(query.right, distinct)]
    return [query]


def _compared(query: exp.SetOperation, session: ResolveContext) -> Relation:
    """INTERSECT or EXCEPT, with or without ALL; of windows when these close."""
    word = "INTERSECT" if isinstance(query, exp.Intersect) else "EXCEPT"
    kind = SetKind(word.lower() + ("" if query.args.get("distinct") else " all"))
    branches: list[exp.Expr] = [query.left, query.right]
    relations = _resolved(branches, session)
    fields = _common_fields(relations, branches, f"an {word}", session)
    place = session.place(branches[1])
    window = shared_window(relations)
    if window is not None:
        one, other = _of_window(relations, window, fields, session)
        return windowed_set(kind, one, other, len(fields), window, place)
    fields = tuple(f.keyed for f in fields)
    left, right = (_cast_to(r, fields, session) for r in _shown(relations, branches, session))
    ttl = longest_ttl(branches, session)
    node = SetOperation(left=left, right=right, kind=kind, fields=fields, ttl=ttl, place=place)
    return Relation(node, Scope.of(fields))


def _resolved(branches: list[exp.Expr], session: ResolveContext) -> list[Relation]:
    relations: list[Relation] = []
    for branch in branches:
        try:
            relations.append(resolve_query(branch, session))
        except QueryRejected:
            continue
    if len(relations) < len(branches):
        raise QueryRejected
    return relations


def _shown(relations: list[Relation], branches: list[exp.Expr], session: ResolveContext) -> list[Relation]:
    """The columns that may be read of each relation, alone."""
    return [visible(r, session.place(branch)) for r, branch in zip(relations, branches, strict=True)]


def _of_window(
    relations: list[Relation], window: SharedWindow, fields: tuple[Field, ...], session: ResolveContext
) -> list[Node]:
    """The rows of each relation with the types of `fields`, and the time of their window."""
    each = zip(relations, window.columns, strict=True)
    return [rows_of(r, window, own, fields, session.place(None), session.zone) for r, own in each]


def _common_fields(
    relations: list[Relation], branches: list[exp.Expr], what: str, session: ResolveContext
) -> tuple[Field, ...]:
    """The fields of what `relations` are together, by the columns that may be read of each."""
    shown = [[r.scope.field(i) for i in r.scope.starred()] for r in relations]
    first = shown[0]
    for own, branch in zip(shown, branches, strict=True):
        if len(own) != len(first):
            raise session.give_up(
                SqlError(
                    f"the queries of {what} have different numbers of columns",
                    detail=f"the first has {len(first)}, this one {len(own)}",
                    at=branch,
                )
            )
    fields = [_union_field(i, given, branches, what, session) for i, given in enumerate(zip(*shown, strict=True))]
    known = tuple(f for f in fields if f is not None)
    if len(known) < len(fields):
        raise QueryRejected
    return known


def _union_field(
    position: int, given: Sequence[Field], branches: list[exp.Expr], what: str, session: ResolveContext
) -> Field | None:
    kind = common_type([f.type for f in given])
    if kind is None:
        session.mistakes.add(
            f'column {position + 1} ("{given[0].name}") of {what} has types that do not go together',
            detail=f"they are {', '.join(dict.fromkeys(flink(f.type) for f in given))}",
            hint="use CAST",
            at=branches[-1],
        )
        return None
    found = Field(given[0].name, kind, any(f.nullable for f in given))
    if any(f.type != kind for f in given):
        return found
    kinds = {f.again if f.time is TimeKind.NONE else f.time for f in given}
    if len(kinds) > 1:
        return found
    (kind_of_time,) = kinds
    if all(f.time is kind_of_time for f in given):
        return replace(found, time=kind_of_time)
    return replace(found, again=kind_of_time)


def _cast_to(relation: Relation, fields: tuple[Field, ...], session: ResolveContext) -> Node:
    """The relation's rows with the types of `fields`."""
    own = relation.fields
    if all(a.type == b.type and a.time is b.time for a, b in zip(own, fields, strict=True)):
        return relation.node
    items: list[tuple[str, Expression]] = [
        (f.name, cast(column(relation.scope, i), f.type, implicit=True, zone=session.zone))
        for i, f in enumerate(fields)
    ]
    return projected(relation, items, session.place(None)).node
