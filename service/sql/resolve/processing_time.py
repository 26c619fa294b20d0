"""PROCTIME() behind operators that hold rows back: joins, and what waits for a watermark.

Law: a processing-time attribute is the time of the batch in which its row comes out, as in Flink, which computes it
where it is used. An attribute that kept the time of an earlier batch would be behind the clock of the operators after
it: its rows would be late, or would open a window that has been answered.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from service.plan.expressions import Call, Expression
from service.plan.nodes import Place, Project
from service.plan.table import TimeKind
from service.sql.resolve.context import ResolveContext
from service.sql.resolve.relation import Relation, column
from service.sql.scope import Scope


def retimed(relation: Relation, place: Place, session: ResolveContext) -> Relation:
    """Return `relation`, whose rows may come out later than they came, with the time at which they come out."""
    scope = relation.scope
    if not any(field.time is TimeKind.PROCESSING for field in scope.fields):
        return relation
    expressions = tuple(
        time_there(scope, i, session) if field.time is TimeKind.PROCESSING else column(scope, i)
        for i, field in enumerate(scope.fields)
    )
    node = Project(input=relation.node, expressions=expressions, fields=scope.fields, place=place)
    return replace(relation, node=node)


def time_there(scope: Scope, index: int, session: ResolveContext) -> Expression:
    """Return the processing time behind the rows of `scope`, in place of that in the column at `index`."""
    now = session.compile(exp.Anonymous(this="PROCTIME", expressions=[]), scope)
    assert isinstance(now, Call), "PROCTIME() is always there"
    if not scope.field(index).nullable:
        return now
    # A row that was padded has no time.
    own = column(scope, index)
    return Call("PROCTIME", (own,), now.type, f"CASE WHEN {{0}} IS NOT NULL THEN {now.template} END")
