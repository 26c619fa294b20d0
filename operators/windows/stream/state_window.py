"""State windows: from a row that begins one to a later row that ends it.

With two conditions both rows are in the window, and rows outside are in none. With one, each row for which it holds
ends the window before it and is the first of the next; rows before the first such row are in none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Positions
from operators.kernel import Step, count_late
from operators.sql import Sql
from operators.state.operator_state import State, TraceSpec
from operators.time import Clock
from operators.windows.stream.partitions import Arrivals, Closed, Partitions
from operators.windows.stream.ranges import following, orbit
from operators.windows.stream.time_order import released, waiting
from operators.windows.stream.window_output import StreamWindowDefaults, WindowOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class StateWindow(StreamWindowDefaults):
    """Windows from a row for which the column `begin` is true to the next for which `emit` is; without `emit`, to the
    next that begins one. Both are positions of BOOLEAN columns.

    Rows are taken by time once the watermark reaches it, or, where `time` is None, in the order of arrival. A window
    lasts from the time of its first row to that of the row that ends it.

    >>> from tests.operators.drawn_windows import windows_of
    >>> for emit in (2, None):  # rows 2 and 5 begin a window, row 4 ends one
    ...     window = lambda r: StateWindow(result=r, partition=(), time=0, begin=1, emit=emit)
    ...     print(windows_of(window, times=[1, 2, 3, 4, 5, 6], begin=[2, 5], end=[4]))
    {(2, 4): [2, 3, 4]}
    {(2, 5): [2, 3, 4]}
    """

    result: WindowOutput
    partition: tuple[int, ...]
    time: int | None
    begin: int
    emit: int | None

    @property
    def _partitions(self) -> Partitions:
        return Partitions(self.result.input, self.partition, remembered=("open", "begun"))

    def traces(self) -> Mapping[str, TraceSpec]:
        return {**self._partitions.traces(), **waiting(self.result.input, self.time, self.partition)}

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        due, late, dead = released(state, inputs[0], self.time, clock)
        close = self._until_emit if self.emit is not None else self._until_next
        ordered, windows = self._partitions.advance(state, due, clock, close, sql)
        changes = self.result.changes(ordered, windows, sql)
        return Step(changes=changes, late=late, late_count=count_late(late), dead=dead)

    def _until_emit(self, arrivals: Arrivals) -> Closed:
        assert self.emit is not None
        count, ends = len(arrivals.times), arrivals.ends[arrivals.owners]
        beginning = following(_flags(arrivals, self.begin), ends)
        emitting = following(_flags(arrivals, self.emit), ends)
        # From each row that begins a window to the row that begins the next one after it has ended.
        closing = _behind(emitting, np.arange(count), ends)
        jump = _behind(beginning, closing, ends)
        touched = np.flatnonzero(arrivals.counts)
        heads = arrivals.starts[touched]
        was_open = arrivals.record["open"][touched] == 1
        ended = np.where(was_open, emitting[heads], count)
        begun = orbit(jump, np.where(was_open, _behind(beginning, ended, arrivals.ends[touched]), beginning[heads]))
        owners = np.concatenate([touched[was_open], arrivals.owners[begun]])
        first = np.concatenate([arrivals.record["low"][touched][was_open], arrivals.numbers[begun]])
        starts = np.concatenate([arrivals.record["begun"][touched][was_open], arrivals.times[begun]])
        return _closed(arrivals, owners, first, starts, np.concatenate([ended[was_open], closing[begun]]), after=1)

    def _until_next(self, arrivals: Arrivals) -> Closed:
        count = len(arrivals.times)
        begun = np.flatnonzero(_flags(arrivals, self.begin))
        was_open = np.flatnonzero((arrivals.record["open"] == 1) & (arrivals.counts > 0))
        after = np.searchsorted(begun, arrivals.starts[was_open])
        next_ = np.append(begun, count)[np.concatenate([after, np.arange(len(begun)) + 1])]
        owners = np.concatenate([was_open, arrivals.owners[begun]])
        last = np.where(next_ < arrivals.ends[owners], next_, count)
        first = np.concatenate([arrivals.record["low"][was_open], arrivals.numbers[begun]])
        starts = np.concatenate([arrivals.record["begun"][was_open], arrivals.times[begun]])
        return _closed(arrivals, owners, first, starts, last, after=0)


def _flags(arrivals: Arrivals, position: int) -> Mask:
    flags: Mask = arrivals.rows.column(position).fill_null(False).to_numpy()
    return flags


def _behind(found: Positions, places: Positions, ends: Positions) -> Positions:
    """What is `found` one row behind each of the `places`; len(found) where the partition has no such row."""
    count = len(found)
    inside = places + 1 < ends
    return np.where(inside, np.append(found, count)[np.minimum(places + 1, count)], count)


def _closed(
    arrivals: Arrivals, owners: Positions, first: Positions, starts: Positions, last: Positions, *, after: int
) -> Closed:
    """The windows that have a `last` row, and the records of those that have none yet; `after` is 1 where the last row
    is in the window."""
    count, partitions = len(arrivals.times), len(arrivals.counts)
    done = last < count
    alive = (arrivals.record["open"] == 1) & (arrivals.counts == 0)
    low, begun = arrivals.record["low"].copy(), arrivals.record["begun"].copy()
    staying = owners[~done]
    alive[staying], low[staying], begun[staying] = True, first[~done], starts[~done]
    at = last[done]
    order = np.lexsort((first[done], owners[done]))
    at = at[order]
    done_ = np.flatnonzero(done)[order]
    return Closed(
        owners=owners[done_],
        first=first[done_],
        last=arrivals.numbers[at] + after,
        starts=starts[done_],
        ends=arrivals.times[at],
        low=low,
        alive=alive,
        record={"open": np.ones(partitions, dtype=np.int64), "begun": begun},
    )
