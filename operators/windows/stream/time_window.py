"""Tumbling and hopping windows whose rows come out: they wait until the window closes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.arrays import Positions, Times, distinct, heads
from operators.changes import weigh
from operators.kernel import Step, count_late
from operators.names import TIME
from operators.sql import Sql
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.table import specs_of
from operators.state.tables.timed import TimedTable
from operators.time import MIN_TIME, Clock
from operators.windows.closing import closed_at
from operators.windows.event_time import running_clock, with_times
from operators.windows.shapes import Hop
from operators.windows.slices import horizon, instants, last_ends, reach, rows_in_windows, slice_length, walls
from operators.windows.stream.partitions import first_of_each
from operators.windows.stream.ranges import Ordered, Ranges, places_of
from operators.windows.stream.window_output import StreamWindowDefaults, WindowOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow(StreamWindowDefaults):
    """The rows of each window of `window`, aligned to the clock of `zone`, once the watermark or the clock passes it.
    Each partition, of the rows with the same values at `partition`, has windows of its own.

    `time` is the position of the event time, None for processing time. A row is late when all its windows were closed.

    >>> from tests.operators.drawn_windows import windows_of
    >>> windows_of(lambda r: TimeWindow(result=r, time=0, window=Hop(size=10, slide=5)), times=[1, 7])
    {(-5, 5): [1], (0, 10): [1, 7], (5, 15): [7]}
    """

    result: WindowOutput
    partition: tuple[int, ...] = ()
    time: int | None
    window: Hop
    zone: str | None = None

    def traces(self) -> Mapping[str, TraceSpec]:
        return specs_of(self._waiting)

    @property
    def _waiting(self) -> TimedTable:
        """The rows of open windows, by wall clock."""
        schema = self.result.input.append(pa.field(TIME, pa.int64()))
        return TimedTable(name="rows", schema=schema, key=tuple(schema.names[place] for place in self.partition))

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        rows, times, dead = with_times(inputs[0], self.time, clock.now)
        late: dict[int, pa.Table] = {}
        clock = running_clock(state, clock, self.time is None)
        local = walls(times, self.zone, sql)
        if self.window.slide > self.window.size:
            inside = local < self._slices(local) + self.window.size
            rows, times, local = rows.filter(pa.array(inside)), times[inside], local[inside]
        if self.time is not None and clock.previous > MIN_TIME:
            behind = closed_at(clock.previous, last_ends(self.window, self._slices(local)), self.zone)
            if behind.any():
                late = {0: weigh(rows.filter(pa.array(behind)), 1)}
                rows, times, local = rows.filter(pa.array(~behind)), times[~behind], local[~behind]
        waiting = self._waiting
        waiting.add(state, rows.append_column(TIME, pa.array(times)), local)
        after, upto = reach(self.window, clock.previous, clock.watermark, self.zone)
        # What is reached are slices, by their starts: a row is in the slice that starts at or before it.
        last = upto + slice_length(self.window) - 1 if upto > after else upto
        due, local = waiting.timed_between(state, after, last)
        waiting.expire_upto(state, horizon(self.window, clock.watermark, self.zone))
        # Without aggregates nothing tells whether rows of one window are in one partition.
        owners = first_of_each(due, self.partition if self.result.aggregates else (), sql)
        if self.partition and self.result.aggregates:
            order = np.argsort(owners, kind="stable")
            due, local, owners = due.take(pa.array(order)), local[order], owners[order]
        ordered = Ordered(due.select(self.result.input.names), due.column(TIME).to_numpy())
        changes = self.result.changes(ordered, self._closing(owners, local, clock), sql)
        return Step(changes=changes, late=late, late_count=count_late(late), dead=dead)

    def _slices(self, local: Times) -> Times:
        """The start of the slice, or of the window and the gap behind it, that each time is in."""
        step = self.window.slide if self.window.slide > self.window.size else slice_length(self.window)
        return local - (local - self.window.offset) % step

    def _closing(self, owners: Positions, local: Times, clock: Clock) -> Ranges:
        """The windows that close now and have any of the rows, by their ends; the rows are in the order of their
        partitions, `owners`, and of their wall-clock times, `local`."""
        slices = self._slices(local)
        some = heads(owners, slices)
        windows = rows_in_windows(self.window, slices[some])
        ends = distinct(windows.ends)
        closing = closed_at(clock.watermark, ends, self.zone)
        if clock.previous > MIN_TIME:
            closing &= ~closed_at(clock.previous, ends, self.zone)
        closes = closing[np.searchsorted(ends, windows.ends)]
        owner, end = owners[some][windows.rows[closes]], windows.ends[closes]
        order = np.lexsort((owner, end))
        owner, end = owner[order], end[order]
        one_each = heads(owner, end)
        owner, end = owner[one_each], end[one_each]
        start = end - self.window.size
        first = places_of(owners, local, owner, start, after_equal=False)
        last = places_of(owners, local, owner, end, after_equal=False)
        return Ranges(first, last, instants(start, self.zone), instants(end, self.zone))
