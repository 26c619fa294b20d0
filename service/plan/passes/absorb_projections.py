"""A projection that only picks columns disappears where its reader can pick them itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from service.plan.expressions import Column
from service.plan.nodes import Aggregate, AggregateCall, Attached, Job, Node, Project, WindowAggregate
from service.plan.walk import fields, rewrite


def absorb_projections(job: Job) -> Job:
    """Let aggregates, which come down to partial totals at once, read the columns where they are.

    >>> from tests.sql.outline import shown
    >>> from service.plan.passes.merge_projections import merge_projections
    >>> print(shown("SELECT a2, SUM(a1) AS s FROM a GROUP BY a2", merge_projections))
    group by a2: SUM(a1)
      project a2, a1
        scan a
    >>> print(shown("SELECT a2, SUM(a1) AS s FROM a GROUP BY a2", merge_projections, absorb_projections))
    group by a2: SUM(a1)
      scan a
    """
    return rewrite(job, lambda node, _: _absorbed(node) if isinstance(node, Aggregate | WindowAggregate) else node)


def _absorbed(node: Aggregate | WindowAggregate) -> Node:
    below = node.input
    if not isinstance(below, Project):
        return node
    places = [e.index for e in below.expressions if isinstance(e, Column)]
    if len(places) < len(below.expressions):
        return node
    if isinstance(node, WindowAggregate):
        time = places[node.time]
        if below.fields[node.time].time is not fields(below.input)[time].time:
            return node  # The time attribute ends at the projection, or begins again there.
    calls = tuple(_moved(c, places) for c in node.aggregates)
    moved = replace(node, input=below.input, keys=_at(node.keys, places), aggregates=calls)
    if isinstance(moved, Aggregate):
        return moved
    window = moved.window
    if isinstance(window, Attached):
        window = Attached(places[window.start], places[window.end])
    return replace(moved, time=places[moved.time], window=window)


def _moved(call: AggregateCall, places: list[int]) -> AggregateCall:
    filter = None if call.filter is None else places[call.filter]
    return replace(call, arguments=_at(call.arguments, places), filter=filter)


def _at(positions: Iterable[int], places: list[int]) -> tuple[int, ...]:
    return tuple(places[p] for p in positions)
