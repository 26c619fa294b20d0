"""Sliding windows: for each row that fires one, the rows of so long before it, and of so long after it.

A window is left-open and right-closed: the row that is exactly `size` older is not in it, rows of the same time and
those exactly `delay` younger are. In processing time rows have the time of their batch, so a window without a delay
ends with its own row: those behind it in the order of arrival have not come yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Positions, Times, among, distinct
from operators.hashing import bucket_hash
from operators.kernel import Step, count_late
from operators.lateness import split_late
from operators.names import PARTITION
from operators.sql import Sql
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.history import HistoryTable
from operators.state.tables.table import specs_of
from operators.state.tables.timed import HashQueue
from operators.time import Clock
from operators.windows.event_time import running_clock, with_times
from operators.windows.stream.partitions import first_of_each
from operators.windows.stream.ranges import Ordered, Ranges, places_of
from operators.windows.stream.window_output import StreamWindowDefaults, WindowOutput

_FIRING = HashQueue(name="firing", column=PARTITION)
"""When the partitions of rows that fire a window are to be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindow(StreamWindowDefaults):
    """The rows of the `size` ms up to a row and the `delay` ms after it, once the time of the last of them has passed.

    `fires` is the position of a BOOLEAN column that says which rows fire a window, None if all do. `time` is the
    position of the event time, None for processing time. A row is late when the watermark had reached its time before.

    >>> from tests.operators.drawn_windows import windows_of
    >>> windows_of(
    ...     lambda r: SlidingWindow(result=r, partition=(), time=0, size=5, delay=0, fires=None), times=[1, 3, 7]
    ... )
    {(-4, 1): [1], (-2, 3): [1, 3], (2, 7): [3, 7]}
    """

    result: WindowOutput
    partition: tuple[int, ...]
    time: int | None
    size: int
    delay: int
    fires: int | None

    @property
    def _history(self) -> HistoryTable:
        length = self.size + self.delay
        return HistoryTable(name="rows", schema=self.result.input, keys=self.partition, length=length)

    @property
    def _at_arrival(self) -> bool:
        """Whether each row fires when it comes."""
        return self.time is None and self.delay == 0

    def traces(self) -> Mapping[str, TraceSpec]:
        """Return the rows of each partition, and when those that fire a window do."""
        return specs_of(self._history, *([] if self._at_arrival else [_FIRING]))

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        rows, times, dead = with_times(inputs[0], self.time, clock.now)
        late: dict[int, pa.Table] = {}
        if self.time is not None:
            rows, times, late = split_late(rows, times, clock.previous)
        if self._at_arrival:
            ordered, windows = self._at_once(state, rows, times, clock, sql)
        else:
            ordered, windows = self._passed(state, rows, times, clock, sql)
        changes = self.result.changes(ordered, windows, sql)
        return Step(changes=changes, late=late, late_count=count_late(late), dead=dead)

    def _at_once(self, state: State, rows: pa.Table, times: Times, clock: Clock, sql: Sql) -> tuple[Ordered, Ranges]:
        """In processing time each row fires when it comes, over those that have come before it."""
        history, firing = self._history, self._firing(rows)
        partitions, of = history.hashes(state, rows)[firing], times[firing]
        before, before_times = history.read(state, partitions, of - self.size + 1, of)
        history.add(state, rows, times)
        history.expire_upto(state, clock.now - self.size)
        rows, times = pa.concat_tables([before, rows]), np.concatenate([before_times, times])
        return self._windows(rows, times, np.concatenate([np.zeros(before.num_rows, np.bool_), firing]), sql)

    def _passed(self, state: State, rows: pa.Table, times: Times, clock: Clock, sql: Sql) -> tuple[Ordered, Ranges]:
        """Each row fires when the watermark, or the clock, has passed its time by the delay."""
        history = self._history
        clock = running_clock(state, clock, self.time is None)
        history.add(state, rows, times)
        firing = self._firing(rows)
        _FIRING.push(state, history.hashes(state, rows)[firing], times[firing])
        upto, after = clock.watermark - self.delay, clock.previous - self.delay
        partitions, of = _FIRING.pop_timed(state, upto)
        read, found = history.read(state, partitions, of - self.size + 1, of + self.delay)
        history.expire_upto(state, upto - self.size)
        fires = self._firing(read) & (found > after) & (found <= upto)
        return self._windows(read, found, fires, sql)

    def _firing(self, rows: pa.Table) -> Mask:
        """Which rows fire a window."""
        if self.fires is None:
            return np.ones(rows.num_rows, dtype=np.bool_)
        flags: Mask = rows.column(self.fires).fill_null(False).to_numpy()
        return flags

    def _windows(self, rows: pa.Table, times: Times, fires: Mask, sql: Sql) -> tuple[Ordered, Ranges]:
        """The windows of the `rows` that fire one, among all of them; those of one partition are in order."""
        rows = rows.combine_chunks()
        if self.partition and rows.num_rows:
            # Of the others no window is asked.
            hashes = bucket_hash(rows, self.partition)
            asked = among(hashes, distinct(hashes[fires]))
            rows, times, fires = rows.filter(pa.array(asked)), times[asked], fires[asked]
        owners = first_of_each(rows, self.partition, sql)
        if self.partition:
            order = np.argsort(owners, kind="stable")
            rows, times, fires, owners = rows.take(pa.array(order)), times[order], fires[order], owners[order]
        at: Positions = np.flatnonzero(fires)
        at = at[np.argsort(times[at], kind="stable")]
        starts, ends = times[at] - self.size, times[at] + self.delay
        first = places_of(owners, times, owners[at], starts, after_equal=True)
        own = self.time is None and self.delay == 0
        last = at + 1 if own else places_of(owners, times, owners[at], ends, after_equal=True)
        return Ordered(rows, times), Ranges(first, last, starts, ends)
