"""Times that are plain columns where no query goes by them, and time attributes again where one does.

An event time that is a key of groups is one again as it is. A processing time is that at which rows come out: behind an
operator that holds them back, or a window, it is the time there.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from service.plan.expressions import Expression
from service.plan.nodes import Project
from service.plan.table import TimeKind
from service.sql.errors import SqlError
from service.sql.resolve.context import ResolveContext
from service.sql.resolve.processing_time import time_there
from service.sql.resolve.relation import Relation, column
from service.sql.resolve.syntax import names_of
from service.sql.scope import Scope


def with_time(relation: Relation, node: exp.Expr, session: ResolveContext) -> Relation:
    """Return `relation`, in which the column that `node` names is a time attribute, if it can be one again."""
    try:
        found = relation.scope.lookup(names_of(node)) if isinstance(node, exp.Column) else None
    except SqlError:
        return relation
    return relation if found is None else timed_again(relation, found.index, node, session)


def timed_again(relation: Relation, index: int, at: exp.Expr, session: ResolveContext) -> Relation:
    """Return `relation`, in which the column at `index` is a time attribute, if it can be one again."""
    scope = relation.scope
    field = scope.field(index)
    if field.time is not TimeKind.NONE or field.again is TimeKind.NONE:
        return relation
    timed = replace(scope.columns[index], field=replace(field.timeless, time=field.again, again=TimeKind.NONE))
    new = Scope((*scope.columns[:index], timed, *scope.columns[index + 1 :]))
    expressions: list[Expression] = [column(scope, i) for i in range(len(scope))]
    if field.again is TimeKind.PROCESSING:
        expressions[index] = time_there(scope, index, session)
    node = Project(input=relation.node, expressions=tuple(expressions), fields=new.fields, place=session.place(at))
    return replace(relation, node=node, scope=new)
