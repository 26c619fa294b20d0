"""Kernels of eKuiper's windows."""

from __future__ import annotations

from typing import TypedDict, assert_never

from operators.kernel import Kernel
from operators.windows import shapes
from operators.windows.stream.count_window import CountWindow
from operators.windows.stream.session_window import SessionWindow
from operators.windows.stream.sliding_window import SlidingWindow
from operators.windows.stream.state_window import StateWindow
from operators.windows.stream.time_window import TimeWindow
from operators.windows.stream.window_output import WindowOutput
from service.plan.lowering.kernels.parts import aggregates, schema, zone_of
from service.plan.nodes import CappedSessionShape, CountShape, Hop, SlidingShape, StateShape, StreamWindow, Tumble


class _Gathered(TypedDict):
    """How a kernel gathers rows into windows, and what it emits of one."""

    result: WindowOutput
    partition: tuple[int, ...]
    time: int | None


def stream_window(node: StreamWindow) -> Kernel:
    """Return the kernel of one of eKuiper's windows."""
    result = WindowOutput(
        input=schema(node.input.fields),
        output=schema(node.fields),
        seen=node.seen,
        keys=node.keys,
        aggregates=aggregates(node.aggregates),
    )
    gathered: _Gathered = {"result": result, "partition": node.partition, "time": node.time}
    match node.shape:
        case CountShape(size, every):
            return CountWindow(size=size, every=every, **gathered)
        case SlidingShape(size, delay):
            fires = node.conditions[0] if node.conditions else None
            return SlidingWindow(size=size, delay=delay, fires=fires, **gathered)
        case CappedSessionShape(longest, timeout):
            return SessionWindow(longest=longest, timeout=timeout, zone=_zone(node), **gathered)
        case StateShape():
            begin, *emit = node.conditions
            return StateWindow(begin=begin, emit=emit[0] if emit else None, **gathered)
        case Tumble(size):
            return TimeWindow(window=shapes.tumble(size), zone=_zone(node), **gathered)
        case Hop(size, slide):
            return TimeWindow(window=shapes.Hop(size=size, slide=slide), zone=_zone(node), **gathered)
        case _:
            assert_never(node.shape)


def _zone(node: StreamWindow) -> str | None:
    """Return the zone that windows align to; processing time is aligned to the session's wall clock."""
    return node.zone if node.time is None else zone_of(node.input, node.time, node.zone)
