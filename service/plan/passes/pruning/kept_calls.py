"""The aggregates and OVER calls that stay: those whose answers are read."""

from __future__ import annotations

from service.plan.nodes import Aggregate, Over, StreamWindow, WindowAggregate
from service.plan.walk import fields


def kept_calls(node: WindowAggregate | Aggregate, needed: set[int]) -> list[int]:
    """Return the calls that are read.

    Where there would be no column at all, the first of them stays, so that the one row stays a row.
    """
    kept = [i for i in range(len(node.aggregates)) if i + len(node.keys) in needed]
    return kept if kept or len(node.fields) > len(node.aggregates) else [0]


def before_aggregates(node: StreamWindow) -> int:
    """Return how many columns come before the aggregates."""
    return len(fields(node.input)) if node.keys is None else len(node.keys)


def kept_stream_calls(node: StreamWindow, needed: set[int]) -> list[int]:
    """Return the aggregates of a window over a stream that are read."""
    return [i for i in range(len(node.aggregates)) if i + before_aggregates(node) in needed]


def kept_over_calls(node: Over, needed: set[int]) -> list[int]:
    """Return the calls that are read; where none is, the first, as such a node has a call."""
    width = len(fields(node.input))
    return [i for i in range(len(node.calls)) if i + width in needed] or [0]
