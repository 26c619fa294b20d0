"""Kernels of SQL windows: those of fixed slices of time, and sessions."""

from __future__ import annotations

from typing import TypedDict, assert_never

import pyarrow as pa

import operators.windows.shapes as shapes
from operators.aggregates.functions import ENDS, follows_arrival
from operators.windows.firing import AT_CLOSE, Firing
from operators.windows.firing_aggregate import FiringAggregateOperator
from operators.windows.numbered_windows import NumberedWindows
from operators.windows.session_aggregate import SessionAggregate
from operators.windows.session_arrivals import SessionArrivals
from operators.windows.session_partial import SessionPartial
from operators.windows.session_rows import SessionRows
from operators.windows.window_aggregate import WindowAggregateOperator
from operators.windows.window_partial import WindowPartial, for_groups
from operators.windows.window_rows import WindowRowsOperator
from service.plan.lowering.kernels.parts import aggregates, appends, in_processing_time, schema, zone_of
from service.plan.nodes import (
    Attached,
    Cumulate,
    Hop,
    Session,
    Tumble,
    Window,
    WindowAggregate,
    WindowRows,
)


class _Timed(TypedDict):
    """How a window reads the times of its rows."""

    input: pa.Schema
    time: int
    append: bool
    processing: bool
    zone: str | None


def _timed(node: WindowAggregate | WindowRows) -> _Timed:
    return {
        "input": schema(node.input.fields),
        "time": node.time,
        "append": appends(node.input),
        "processing": in_processing_time(node.input, node.time),
        "zone": zone_of(node.input, node.time, node.zone),
    }


def partial_window(node: WindowAggregate) -> WindowPartial:
    """Return the stateless half of a window aggregate."""
    firing = _firing(node)
    partial = WindowPartial(
        window=_shape(node.window),
        keys=node.keys,
        aggregates=aggregates(node.aggregates),
        lateness=0 if firing is None else firing.lateness,
        numbered=in_order_of_arrival(node),
        **_timed(node),
    )
    return partial if firing is None else for_groups(partial)


def in_order_of_arrival(node: WindowAggregate) -> bool:
    """Return whether the rows of overlapping windows need the order in which they arrived."""
    match node.window:
        case Hop(size, slide):
            overlap = slide < size
        case Cumulate(size, step):
            overlap = step < size
        case _:
            overlap = False
    ordered = any(follows_arrival(call.function, distinct=call.distinct, append=True) for call in node.aggregates)
    return overlap and ordered and appends(node.input)


def _firing(node: WindowAggregate) -> Firing | None:
    """When windows emit their groups; None for kernels of slices, which know no order of arrival."""
    ordered = not appends(node.input) and any(call.function in ENDS for call in node.aggregates)
    return AT_CLOSE if node.firing is None and ordered else node.firing


def full_window(node: WindowAggregate) -> WindowAggregateOperator | FiringAggregateOperator:
    """Return the stateful half of a window aggregate."""
    partial, output, firing = partial_window(node), schema(node.fields), _firing(node)
    if firing is not None:
        return FiringAggregateOperator(partial=partial, output=output, firing=firing)
    return WindowAggregateOperator(partial=partial, output=output)


def numbered_windows(node: WindowAggregate) -> NumberedWindows:
    """Return both halves of a window aggregate whose rows are told in the order in which they arrived."""
    return NumberedWindows(of=full_window(node))


def partial_session(node: WindowAggregate, gap: int) -> SessionPartial:
    """Return the stateless half of an aggregate by sessions that end `gap` ms after their last row."""
    return SessionPartial(gap=gap, keys=node.keys, aggregates=aggregates(node.aggregates), **_timed(node))


def full_session(node: WindowAggregate, gap: int, *, whole: bool) -> SessionAggregate:
    """Return the stateful half of an aggregate by sessions, or (`whole`) both halves in one."""
    inserts = appends(node.input)
    return SessionAggregate(
        partial=partial_session(node, gap),
        output=schema(node.fields),
        whole=whole and not inserts,
        late_shown=whole and inserts,
    )


def session_rows(node: WindowRows, window: Session) -> SessionRows:
    """Return the kernel of the table function SESSION by itself."""
    kernel = SessionArrivals if window.numbered else SessionRows
    return kernel(partial=SessionPartial(gap=window.gap, keys=window.partition, aggregates=(), **_timed(node)))


def window_rows(node: WindowRows) -> WindowRowsOperator:
    """Return the kernel of a window table function by itself."""
    window = _shape(node.window)
    assert not isinstance(window, Attached), "rows that carry their windows need none attached"
    timed = _timed(node)
    return WindowRowsOperator(input=timed["input"], time=node.time, window=window, zone=timed["zone"])


def _shape(window: Window) -> shapes.SlicedWindow:
    match window:
        case Tumble(size, offset):
            return shapes.tumble(size, offset)
        case Hop() | Cumulate() | Attached():
            return window
        case Session():
            raise TypeError("session windows have kernels of their own")
        case _:
            assert_never(window)
