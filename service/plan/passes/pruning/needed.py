"""The input columns that a node needs for a given set of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from service.plan.expressions import columns_of
from service.plan.nodes import (
    Aggregate,
    AggregateCall,
    Attached,
    Filter,
    IntervalJoin,
    Join,
    LookupJoin,
    Mode,
    Node,
    Normalize,
    Over,
    OverCall,
    PairJoin,
    Project,
    Scan,
    Session,
    SetOperation,
    StreamWindow,
    TemporalJoin,
    TimeSort,
    TopN,
    Union,
    Unnest,
    Values,
    WindowAggregate,
    WindowJoin,
    WindowRows,
)
from service.plan.passes.pruning.kept_calls import kept_calls, kept_over_calls, kept_stream_calls
from service.plan.properties import mode
from service.plan.walk import fields, shows_right


def needed_of_inputs(node: Node, needed: set[int]) -> list[set[int]]:
    """Return which columns of each input `node` must see when `needed` of its own are read."""
    match node:
        case Scan() | Values():
            return []
        case Normalize(key=key):
            return [needed | set(key)]
        case Unnest(column=column):
            return [{i for i in needed if i < len(fields(node.input))} | {column}]
        case TimeSort(order=order):
            return [needed | {key.column for key in order}]
        case Filter(condition=condition):
            return [needed | set(columns_of(condition))]
        case Project(expressions=expressions):
            return [{c for i in needed for c in columns_of(expressions[i])}]
        case Union():
            return [needed for _ in node.inputs]
        case WindowRows(time=time, window=window):
            partition = set(window.partition) if isinstance(window, Session) else set()
            return [{i for i in needed if i < len(fields(node.input))} | {time} | partition]
        case WindowAggregate() | Aggregate():
            calls = [node.aggregates[i] for i in kept_calls(node, needed)]
            own = {node.time, *_attached(node)} if isinstance(node, WindowAggregate) else set()
            return [set(node.keys) | own | _read_by(calls)]
        case TopN():
            read = _read_by_top_n(node) | {i for i in needed if i < len(fields(node.input))}
            return [read or {0}]  # of a row of which nothing is read, a column still says that it is there
        case StreamWindow():
            own = {*node.partition, *node.conditions, *_given(node.time), *_given(node.seen)}
            calls = [node.aggregates[i] for i in kept_stream_calls(node, needed)]
            width = len(fields(node.input))
            shown = {i for i in needed if i < width} if node.keys is None else set(node.keys)
            return [own | shown | _read_by(calls)]
        case Over():
            width = len(fields(node.input))
            over = [node.calls[i] for i in kept_over_calls(node, needed)]
            own = {*node.partition, node.time, *node.ties}
            return [{i for i in needed if i < width} | own | _read_by(over)]
        case PairJoin():
            width = len(fields(node.left))
            left = {i for i in needed if i < width} | set(node.left_keys)
            return [left, {i - width for i in needed if i >= width} | set(node.right_keys)]
        case SetOperation():
            # Rows are compared as a whole.
            return [set(range(len(node.fields)))] * 2
        case Join() | IntervalJoin() | WindowJoin() | TemporalJoin() | LookupJoin():
            width = len(fields(node.left))
            read = {i for i in needed if i < width or shows_right(node)}
            read |= set(columns_of(node.residual) if node.residual else ())
            left = {i for i in read if i < width} | set(node.left_keys)
            right = {i - width for i in read if i >= width} | set(node.right_keys)
            if isinstance(node, IntervalJoin | WindowJoin):
                left, right = left | {node.left_time}, right | {node.right_time}
            if isinstance(node, TemporalJoin):
                # What a row is retracted with must not hold the time at which it came.
                forgets = node.right_time is None and mode(node.left) is Mode.RETRACT
                left = left if forgets or node.left_time is None else left | {node.left_time}
                right = right if node.right_time is None else right | {node.right_time}
            return [left, right]
        case _:
            assert_never(node)


def _read_by(calls: Iterable[AggregateCall | OverCall]) -> set[int]:
    return {c for call in calls for c in (*call.arguments, *(() if call.filter is None else (call.filter,)))}


def _read_by_top_n(node: TopN) -> set[int]:
    time = set() if node.window_time is None else {node.window_time}
    return {*node.partition, *(key.column for key in node.order)} | time


def _given(position: int | None) -> tuple[int, ...]:
    return () if position is None else (position,)


def _attached(node: WindowAggregate) -> tuple[int, ...]:
    return (node.window.start, node.window.end) if isinstance(node.window, Attached) else ()
