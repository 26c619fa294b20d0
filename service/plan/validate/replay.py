"""Expressions that would have another value for the same row later: on a replay, or when it is retracted."""

from __future__ import annotations

from collections.abc import Iterator

from service.plan.expression_text import describe
from service.plan.expressions import deterministic, repeatable
from service.plan.nodes import (
    Filter,
    IntervalJoin,
    Join,
    JoinKind,
    LookupJoin,
    Mode,
    Node,
    Project,
    Scan,
    TemporalJoin,
    WindowJoin,
)
from service.plan.passes.expand_computed import watermark
from service.plan.properties import mode
from service.plan.validate.origin import origin
from service.plan.validate.problem import Problem
from service.plan.walk import inputs


def replay_problems(node: Node) -> Iterator[Problem]:
    """Yield the expressions of `node` that would have another value for the same row later."""
    match node:
        case Project(expressions=expressions):
            values = expressions
        case Filter(condition=condition):
            values = (condition,)
        case (
            Join(residual=asks)
            | IntervalJoin(residual=asks)
            | LookupJoin(residual=asks)
            | TemporalJoin(residual=asks)
            | WindowJoin(residual=asks)
        ) if asks is not None:
            values = (asks,)
        case Scan(table=table) if (asserted := watermark(table)) is not None and not repeatable(asserted):
            yield Problem(
                node.place,
                f'the watermark of table "{table.name}" would have another value on a replay',
                detail=f"it is computed as {describe(asserted)}",
                hint="compute it from columns of the table alone",
            )
            return
        case _:
            return
    once = isinstance(node, TemporalJoin | LookupJoin)  # it answers a left row once
    asked = inputs(node)[:1] if once else inputs(node)
    changing = next((each for each in asked if mode(each) is Mode.RETRACT), None)
    if isinstance(node, LookupJoin | WindowJoin) or (isinstance(node, TemporalJoin) and node.right_time is None):
        changing = None  # a row is retracted with what it has met, and rows of a window meet once, when it closes
    for place, value in enumerate(values):
        if repeatable(value):
            continue
        written = node.place_of(place) if isinstance(node, Project) else node.place
        if changing is not None:
            declared = isinstance(changing, Scan)
            named = f'"{node.fields[place].name}", which is {describe(value)},' if isinstance(node, Project) else ""
            yield Problem(
                written,
                f"{named or describe(value)} would have another value when its row is retracted",
                detail=f"{origin(changing)} updates and deletes rows",
                hint="leave it out, or take a time that the records carry"
                if declared
                else "compute it where rows enter, before that step",
            )
        elif not deterministic(value):
            yield Problem(
                written,
                f"{describe(value)} would have another value on a replay",
                detail="it is drawn from the record that a row was read from, and a row has none here",
                hint="draw it in a query on the table, before rows are aggregated",
            )
        elif isinstance(node, IntervalJoin) and node.kind is not JoinKind.INNER:
            yield Problem(
                written,
                f"{describe(value)} would have another value when it is asked again whether a row has matched",
                detail="an interval join that is not INNER asks once more when the row's time has passed",
                hint="compute it where rows enter, before the join",
            )
