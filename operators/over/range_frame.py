"""The state of RANGE frames: the rows of the last n milliseconds of each key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Times
from operators.lateness import out_of_reach
from operators.names import ORDER_TIME
from operators.over.frame_state import FrameState, in_sequence
from operators.over.sequence import newer
from operators.over.waiting import Due
from operators.sql import Sql
from operators.state.operator_state import State
from operators.state.tables.history import HistoryTable


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeFrameState(FrameState):
    """RANGE frames: the rows that have been emitted in the time of the last two frames.

    A row behind the watermark by less than the longest frame is on time if no frame that has been emitted for its key
    reaches it; its own frame begins as much earlier, so rows stay for two frames. One that is further behind is late:
    what its frame held is gone.
    """

    @property
    def behind(self) -> int:
        """The distance in ms from a row to the begin of its longest frame."""
        return max(call.frame.behind for call, _ in self.calls.values())

    @property
    def ahead(self) -> int:
        """The distance in ms from a row to the end of its longest frame."""
        return max(call.frame.ahead for call, _ in self.calls.values())

    @property
    def _answered(self) -> HistoryTable:
        """The rows that have been emitted."""
        return HistoryTable(name="frame", schema=self.schema, keys=self.partition, length=self.behind + self.ahead)

    def tables(self) -> tuple[HistoryTable]:
        return (self._answered,)

    def expire(self, state: State, now: int) -> None:
        """Do nothing: rows expire by the watermark, not by the time to live."""

    def forget(self, state: State, watermark: int) -> None:
        self._answered.expire_upto(state, watermark - 2 * (self.behind + self.ahead))

    def on_time(self, state: State, rows: pa.Table, times: Times, previous: int, sql: Sql) -> Mask:
        partitions = self._answered.hashes(state, rows)
        highs = np.full(len(times), previous)
        answered, of = self._answered.read(state, partitions, times - self.ahead, highs)
        reached = answered.append_column(ORDER_TIME, pa.array(of + self.ahead))
        free = newer(rows, times, self.partition, reached, sql)
        return free & ~out_of_reach(times, self.behind + self.ahead, previous)

    def evaluate(self, state: State, due: Due, now: int, sql: Sql) -> dict[int, pa.ChunkedArray]:
        partitions = self._answered.hashes(state, due.rows)
        known, of = self._answered.read(state, partitions, due.times - self.behind, due.times)
        self._answered.add(state, due.rows, due.times)
        return self.by_number(self.in_windows(in_sequence(known, of, due), {}, sql), due.rows.num_rows)
