"""Aggregates that no operator computes, or not over such rows."""

from __future__ import annotations

from collections.abc import Iterator

from operators.aggregates.functions import ENDS, refusal
from operators.over.calls import NOT_AGGREGATES
from service.plan.nodes import Aggregate, Mode, Node, Over, OverCall, StreamWindow, WindowAggregate
from service.plan.properties import mode
from service.plan.validate.origin import origin
from service.plan.validate.problem import Problem

_TOP_N = (
    "GROUP BY without a window keeps the order in which rows came; or order by a column, SELECT ... FROM (SELECT *,"
    " ROW_NUMBER() OVER (PARTITION BY key ORDER BY time) AS n FROM ...) WHERE n = 1, or take MIN or MAX"
)
"""What gives the first or the last value where rows are taken back."""


def aggregate_problems(node: Node) -> Iterator[Problem]:
    """Yield the aggregates of `node` that cannot be computed."""
    if isinstance(node, Aggregate | WindowAggregate | Over):
        yield from _refused(node)
    if isinstance(node, StreamWindow):
        yield from _refused_in_stream(node)


def _refused(node: Aggregate | WindowAggregate | Over) -> Iterator[Problem]:
    append = mode(node.input) is Mode.APPEND or isinstance(node, Over)
    for call in node.calls if isinstance(node, Over) else node.aggregates:
        if isinstance(call, OverCall) and call.function in NOT_AGGREGATES:
            continue
        if why := refusal(call.function, append=append, windowed=isinstance(node, WindowAggregate)):
            detail = "" if append else f"{origin(node.input)} updates and deletes rows"
            yield Problem(node.place, why, detail, _TOP_N if call.function in ENDS and not append else "")


def _refused_in_stream(node: StreamWindow) -> Iterator[Problem]:
    for call in node.aggregates:
        if why := refusal(call.function, append=True):
            yield Problem(node.place, why)
