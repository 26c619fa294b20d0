"""Kernels of Top-N, LIMIT and ORDER BY a time attribute."""

from __future__ import annotations

from operators.kernel import Kernel
from operators.ranking.limit import LimitOperator
from operators.ranking.retracting_top_n import RetractingTopNOperator
from operators.ranking.time_sort import TimeSortOperator
from operators.ranking.top_n import TopNOperator
from operators.ranking.top_n_partial import TopNPartialOperator
from operators.ranking.window_top_n import WindowTopNOperator
from service.plan.lowering.kernels.parts import appends, in_processing_time, schema
from service.plan.nodes import TimeSort, TopN
from service.plan.properties import takes_arrivals


def top_n_partial(node: TopN) -> TopNPartialOperator:
    """Return the kernel that keeps the rows of a block that may be among the first of all."""
    return TopNPartialOperator(output=schema(node.input.fields), ranking=node.ranking)


def top_n(node: TopN) -> Kernel:
    """Return the kernel that keeps the first rows of each group."""
    input, ranking = schema(node.input.fields), node.ranking
    if node.window_time is not None:
        processing = in_processing_time(node.input, node.window_time)
        if not appends(node.input):
            ranking = ranking.ordered_whole(len(input))
        return WindowTopNOperator(input=input, ranking=ranking, time=node.window_time, processing=processing)
    if takes_arrivals(node):
        return LimitOperator(output=input, first=ranking.first, last=ranking.last)
    if not appends(node.input):
        return RetractingTopNOperator(input=input, ranking=ranking, ttl=node.ttl)
    return TopNOperator(input=input, ranking=ranking, ttl=node.ttl)


def time_sort(node: TimeSort) -> TimeSortOperator:
    """Return the kernel that emits rows in the order of time."""
    return TimeSortOperator(
        output=schema(node.fields), order=node.order, processing=in_processing_time(node.input, node.time)
    )
