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

from operators.base import KernelDefaults
from operators.changes import weigh
from operators.hashing import bucket_hash
from operators.kernel import WEIGHT, Step
from operators.sql import Sql
from operators.state.block import SORT_KEY, Positions, among, distinct
from operators.state.operator_state import State, TableKind, TraceSpec
from operators.time import Clock
from operators.windows.event_time import milliseconds, running_clock, timed
from operators.windows.partitions import first_of_each
from operators.windows.ranges import Mask, Ordered, Ranges, places_of
from operators.windows.slices import Times
from operators.windows.window_output import WindowOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindow(KernelDefaults):
    """The rows of the `size` ms up to a row and the `delay` ms after it, once the time of the last of them has passed.

    `fires` is the position of a BOOLEAN column that says which rows fire a window, None if all do. `time` is the
    position of the event time, None for processing time. A row is late when the watermark had reached its time before.
    """

    result: WindowOutput
    partition: tuple[int, ...]
    time: int | None
    size: int
    delay: int
    fires: int | None

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.result.input,)

    @property
    def output(self) -> pa.Schema:
        return self.result.output

    def traces(self) -> Mapping[str, TraceSpec]:
        return {"rows": TraceSpec(schema=self.result.input, kind=TableKind.TIME_ORDERED)}

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        rows = inputs[0]
        late: dict[int, pa.Table] = {}
        dead: dict[int, pa.Table] = {}
        if self.time is None:
            times = np.full(rows.num_rows, clock.now, dtype=np.int64)
        else:
            rows, dead = timed(rows, self.time)
            times = milliseconds(rows.column(self.time))
            behind = times <= clock.previous
            if behind.any():
                late = {0: weigh(rows.filter(pa.array(behind)).drop_columns([WEIGHT]), 1)}
                rows, times = rows.filter(pa.array(~behind)), times[~behind]
        rows = rows.drop_columns([WEIGHT])
        if self.time is None and self.delay == 0:
            ordered, windows = self._at_once(state, rows, times, clock, sql)
        else:
            ordered, windows = self._passed(state, rows, times, clock, sql)
        changes = self.result.changes(ordered, windows, sql)
        return Step(changes=changes, late=late, late_count=sum(r.num_rows for r in late.values()), dead=dead)

    def _at_once(self, state: State, rows: pa.Table, times: Times, clock: Clock, sql: Sql) -> tuple[Ordered, Ranges]:
        """In processing time each row fires when it comes, over those that have come before it."""
        kept = state["rows"]
        firing = self._firing(rows)
        before = kept.between(clock.now - self.size, clock.now) if firing.any() else kept.spec.stored.empty_table()
        kept.add(rows, times)
        kept.expire(clock.now - self.size)
        return self._windows(before, rows, times, np.concatenate([np.zeros(before.num_rows, np.bool_), firing]), sql)

    def _passed(self, state: State, rows: pa.Table, times: Times, clock: Clock, sql: Sql) -> tuple[Ordered, Ranges]:
        """Each row fires when the watermark, or the clock, has passed its time by the delay."""
        kept, nothing = state["rows"], rows.slice(0, 0)
        clock = running_clock(state, clock, self.time is None)
        kept.add(rows, times)
        upto, after = clock.watermark - self.delay, clock.previous - self.delay
        due = kept.between(after, upto)
        firing = due.column(SORT_KEY).to_numpy()[self._firing(due)]
        read = kept.spec.stored.empty_table()
        if len(firing):
            read = kept.between(int(firing.min()) - self.size, int(firing.max()) + self.delay)
        kept.expire(upto - self.size)
        of = read.column(SORT_KEY).to_numpy()
        fires = self._firing(read) & (of > after) & (of <= upto)
        return self._windows(read, nothing, times[:0], fires, sql)

    def _firing(self, rows: pa.Table) -> Mask:
        """Which rows fire a window."""
        if self.fires is None:
            return np.ones(rows.num_rows, dtype=np.bool_)
        flags: Mask = rows.column(self.fires).fill_null(False).to_numpy()
        return flags

    def _windows(self, kept: pa.Table, coming: pa.Table, times: Times, fires: Mask, sql: Sql) -> tuple[Ordered, Ranges]:
        """The windows of the rows that fire one, among `kept` rows and those `coming` now."""
        rows = pa.concat_tables([kept.select(self.result.input.names), coming]).combine_chunks()
        times = np.concatenate([kept.column(SORT_KEY).to_numpy(), times])
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
