"""eKuiper's windows (stream windows), which gather the rows of a stream before they are grouped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from operators.windows.shapes import Hop
from service.plan.nodes.aggregates import AggregateCall, read_by
from service.plan.nodes.relation import NOWHERE, Field, Place, check, check_positions
from service.plan.nodes.windows import Tumble

if TYPE_CHECKING:
    from service.plan.nodes import Node


@dataclass(frozen=True, slots=True)
class CountShape:
    """Windows of the last `size` rows, one at each `every`-th row."""

    size: int
    every: int


@dataclass(frozen=True, slots=True)
class SlidingShape:
    """Windows of the `size` ms up to a row and the `delay` ms after it, one for each row, or for each that fires."""

    size: int
    delay: int = 0


@dataclass(frozen=True, slots=True)
class CappedSessionShape:
    """Sessions that end after `timeout` ms without a row, and at a multiple of `longest` ms once they are longer."""

    longest: int
    timeout: int


@dataclass(frozen=True, slots=True)
class StateShape:
    """Windows from a row that begins one to the next that ends it; with one condition, from each row to the next."""


StreamShape = CountShape | SlidingShape | CappedSessionShape | StateShape | Tumble | Hop


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWindow:
    """eKuiper's windows: rows are gathered over the whole stream, or `partition`, in their order; each window that
    closes is then grouped by `keys`, or, where that is None, its rows come out.

    `time` is the event-time attribute, or None for processing time. `conditions` are positions of BOOLEAN columns that
    the shape reads: which rows fire a sliding window, begin and end a window of states. `seen` is the position of one
    that says which rows of a window are looked at (WHERE). Fields: the keys, or the input's columns; the aggregates;
    the start and the end of the window and the time of the row (of a group, the end), BIGINT ms since the epoch.
    """

    input: Node
    shape: StreamShape
    time: int | None
    partition: tuple[int, ...]
    conditions: tuple[int, ...]
    seen: int | None
    keys: tuple[int, ...] | None
    aggregates: tuple[AggregateCall, ...]
    fields: tuple[Field, ...]
    zone: str = "UTC"
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        alone = tuple(position for position in (self.time, self.seen) if position is not None)
        read = (*alone, *self.partition, *self.conditions, *(self.keys or ()), *read_by(self.aggregates))
        check_positions(self, self.input.fields, read)
        shown = len(self.input.fields if self.keys is None else self.keys) + len(self.aggregates) + 3
        check(len(self.fields) == shown, self, "has its rows, or keys and aggregates, and three columns of the window")
