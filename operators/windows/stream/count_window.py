"""Count windows: at every m-th row of a partition, its last n rows; they do not depend on time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.arrays import Times
from operators.kernel import Step
from operators.names import WEIGHT
from operators.sql import Sql
from operators.state.operator_state import State, TraceSpec
from operators.time import Clock
from operators.windows.event_time import milliseconds
from operators.windows.stream.partitions import Arrivals, Closed, Partitions
from operators.windows.stream.ranges import Ordered, extremes
from operators.windows.stream.window_output import StreamWindowDefaults, WindowOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class CountWindow(StreamWindowDefaults):
    """The last `size` rows at every `every`-th row of a partition, once there are `size` of them.

    Rows are taken in the order of arrival, and none is late. `time` is the position of a time attribute, or None for
    processing time; a window lasts from the earliest to the latest time of its rows. A row without a time counts, and
    as its time has that of the batch.

    >>> from tests.operators.drawn_windows import windows_of
    >>> windows_of(lambda r: CountWindow(result=r, partition=(), time=0, size=3, every=2), times=[1, 2, 3, 4, 5, 6])
    {(2, 4): [2, 3, 4], (4, 6): [4, 5, 6]}
    """

    result: WindowOutput
    partition: tuple[int, ...]
    time: int | None
    size: int
    every: int

    @property
    def _partitions(self) -> Partitions:
        return Partitions(self.result.input, self.partition)

    def traces(self) -> Mapping[str, TraceSpec]:
        return self._partitions.traces()

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        rows = inputs[0].drop_columns([WEIGHT])
        due = Ordered(rows, self._times(rows, clock.now))
        ordered, windows = self._partitions.advance(state, due, clock, self._close, sql)
        starts, ends = extremes(ordered.times, windows.first, windows.last)
        windows = windows._replace(starts=starts, ends=ends)
        return Step(changes=self.result.changes(ordered, windows, sql))

    def _times(self, rows: pa.Table, now: int) -> Times:
        if self.time is None:
            return np.full(rows.num_rows, now, dtype=np.int64)
        column = rows.column(self.time)
        return milliseconds(column.fill_null(pa.scalar(now * 1000, pa.int64()).cast(column.type)))

    def _close(self, arrivals: Arrivals) -> Closed:
        numbers = arrivals.numbers
        full = np.flatnonzero((numbers % self.every == 0) & (numbers >= self.size))
        last = numbers[full] + 1
        seen = arrivals.seen
        first_full = -(-self.size // self.every) * self.every
        following = np.maximum((seen // self.every + 1) * self.every, first_full)
        alive = seen % self.every > 0 if self.every == self.size else np.ones(len(seen), dtype=np.bool_)
        low = np.clip(following - self.size + 1, arrivals.record["low"], seen + 1)
        return Closed(arrivals.owners[full], last - self.size, last, last, last, low, alive, {})
