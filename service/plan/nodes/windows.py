"""SQL windows of time: TUMBLE, HOP, CUMULATE and SESSION, as tables of rows and as groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from operators.windows.firing import Firing
from operators.windows.shapes import SlicedWindow
from service.plan.nodes.aggregates import AggregateCall, read_by
from service.plan.nodes.relation import NOWHERE, Field, Place, check, check_positions

if TYPE_CHECKING:
    from service.plan.nodes import Node


@dataclass(frozen=True, slots=True)
class Tumble:
    """Windows of `size` ms; a start is inside, an end is not. Aligned to the epoch plus `offset` ms."""

    size: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    """Windows that end `gap` ms after their last row. A table function has them for each value of the input's columns
    at `partition`, an aggregate for each of its keys. Rows that may be retracted come out of a table function as they
    came if they are `numbered`."""

    gap: int
    partition: tuple[int, ...] = ()
    numbered: bool = False


Window = Tumble | Session | SlicedWindow
"""The windows of SQL. A kernel of slices takes a tumbling window as a hop as long as its size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRows:
    """A window table function that is not aggregated at once: each row once a window, with window_start, window_end and
    window_time appended. `zone` is the session zone when `time` is a TIMESTAMP_LTZ, which windows align to."""

    input: Node
    time: int
    window: Window
    fields: tuple[Field, ...]
    zone: str = "UTC"
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        check_positions(self, self.input.fields, (self.time,))
        check(len(self.fields) == len(self.input.fields) + 3, self, "adds three columns to those of its input")


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAggregate:
    """Aggregates per window and key, emitted once when the window closes, or as `firing` says.

    Fields: the keys, the aggregates, then window_start, window_end (TIMESTAMP(3) as the session's wall clock) and
    window_time (the time attribute, end - 1 ms).
    """

    input: Node
    time: int
    window: Window
    keys: tuple[int, ...]
    aggregates: tuple[AggregateCall, ...]
    fields: tuple[Field, ...]
    zone: str = "UTC"
    firing: Firing | None = None
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        check_positions(self, self.input.fields, (*self.keys, *read_by(self.aggregates)))
        check(
            len(self.fields) == len(self.keys) + len(self.aggregates) + 3,
            self,
            "has the keys, the aggregates and the columns of the window",
        )
