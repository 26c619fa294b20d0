"""The state of ROWS frames, LAG and LEAD: the last n rows of each key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Times
from operators.names import AHEAD, ORDER_NUMBER, ORDER_TIME, columns
from operators.over.frame_state import FrameState, in_sequence
from operators.over.sequence import newer
from operators.over.waiting import Due
from operators.sql import Sql
from operators.sql_text import over
from operators.state.operator_state import State
from operators.state.tables.grouped import GroupedTable, at_places, places_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsFrameState(FrameState):
    """ROWS frames, LAG and LEAD: the last rows of each key, at least one."""

    @property
    def kept(self) -> int:
        """The number of rows that are kept of each key."""
        return max(1, *(call.rows_behind for call, _ in self.calls.values()))

    @property
    def _recent(self) -> GroupedTable:
        """The last rows of each key, in their order."""
        schema = self.schema.append(pa.field(ORDER_TIME, pa.int64()))
        return GroupedTable(name="recent", schema=schema, group=self.partition, ttl=self.ttl)

    def tables(self) -> tuple[GroupedTable]:
        return (self._recent,)

    def expire(self, state: State, now: int) -> None:
        self._recent.expire(state, now)

    def forget(self, state: State, watermark: int) -> None:
        """Do nothing: keys expire by the time to live alone."""

    def on_time(self, state: State, rows: pa.Table, times: Times, previous: int, sql: Sql) -> Mask:
        recent = self._recent
        return newer(rows, times, self.partition, recent.read(state, recent.hashes(state, rows)), sql)

    def evaluate(self, state: State, due: Due, now: int, sql: Sql) -> dict[int, pa.ChunkedArray]:
        recent, count = self._recent, due.rows.num_rows
        hashes = recent.hashes(state, due.rows)
        known = recent.read(state, hashes)
        # Kept in the order of arrival within each place, which is all that a frame can tell.
        rows = in_sequence(known.select(self.schema.names), known.column(ORDER_TIME).to_numpy(), due)
        newest_first = over(columns(self.partition), [f"{ORDER_NUMBER} DESC"])
        back = f"ROW_NUMBER() {newest_first}"
        if due.ahead.num_rows:
            rows = rows.append_column(AHEAD, pa.array(rows.column(ORDER_NUMBER).to_numpy() >= count))
            back = f"COUNT(*) FILTER (WHERE NOT {AHEAD}) {newest_first}"
        answers = self.in_windows(rows, {"back": back}, sql)
        numbers = answers.column(ORDER_NUMBER).to_numpy()
        last = np.sort(numbers[(answers.column("back").to_numpy() <= self.kept) & (numbers < count)]) + known.num_rows
        places = np.concatenate([places_of(known), hashes])
        recent.write(state, known, at_places(rows.take(pa.array(last)), places[last]), now)
        return self.by_number(answers, count)
