"""OVER windows: a row out per row in, in time order, once the watermark reaches its time.

Rows wait by time; that a row has been emitted follows from the watermark alone. What the frames still need of emitted
rows is kept by the frame states, one for each kind of frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.base import KernelDefaults
from operators.changes import weigh
from operators.columns import as_changes, no_changes
from operators.kernel import WEIGHT, Step
from operators.over.calls import Frame, OverCallSpec
from operators.over.frame_state import FrameState, frame_states_of
from operators.sql import Sql
from operators.state.operator_state import State, TableKind, TraceSpec
from operators.time import END_OF_TIME, Clock
from operators.windows.event_time import milliseconds, timed
from operators.windows.lateness import has_passed

__all__ = ["Frame", "OverCallSpec", "OverOperator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverOperator(KernelDefaults):
    """OVER windows that share PARTITION BY and ORDER BY. `output` has the input's columns, then one a call.

    `time` is the position of the time attribute; with `processing` rows are emitted at once in arrival order. A row is
    late when it is not newer than the last row emitted for its key, over RANGE also when it is behind the watermark by
    the length of the longest frame; where a frame is unbounded, when it is not newer than the watermark.
    `ttl` ms of processing time without a row let what is kept of a key be forgotten (0 = never).
    """

    input: pa.Schema
    output: pa.Schema
    partition: tuple[int, ...]
    time: int
    calls: tuple[OverCallSpec, ...]
    processing: bool = False
    ttl: int = 0

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.input,)

    def traces(self) -> Mapping[str, TraceSpec]:
        traces = {frame_state.name: frame_state.spec() for frame_state in self._frame_states()}
        key = tuple(f"c{place}" for place in self.partition)
        return {"rows": TraceSpec(schema=self.input, kind=TableKind.TIME_ORDERED, key=key), **traces}

    def _frame_states(self) -> list[FrameState]:
        types = self.output.types[len(self.input) :]
        return frame_states_of(self.input, self.partition, self.calls, types, self.ttl)

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        frame_states, waiting = self._frame_states(), state["rows"]
        for frame_state in frame_states:
            frame_state.expire(state, clock.now)
        rows, dead = timed(inputs[0], self.time)
        rows = rows.drop_columns([WEIGHT])
        times = milliseconds(rows.column(self.time))
        previous, watermark = (END_OF_TIME, clock.now) if self.processing else (clock.previous, clock.watermark)
        ahead, behind = ~has_passed(times, watermark), has_passed(times, previous)
        due = [waiting.between(previous, watermark).select(self.input.names)]
        if self.processing:
            due, late = [rows], rows.slice(0, 0)
        else:
            due.append(rows.filter(pa.array(~ahead & ~behind)))
            waiting.add(rows.filter(pa.array(ahead)), times[ahead])
            rows, times = rows.filter(pa.array(behind)), times[behind]
            on_time, late = self.split_late(frame_states, state, rows, times, previous, sql)
            due.append(on_time)
            waiting.expire(watermark)
        changes = no_changes(self.output)
        if any(rows.num_rows for rows in due):
            changes = self._evaluate(frame_states, state, pa.concat_tables(due).combine_chunks(), previous, clock, sql)
        for frame_state in frame_states:
            if frame_state.reach is not None:
                state[frame_state.name].expire(watermark - frame_state.reach)
        return Step(
            changes=changes, late={0: weigh(late, 1)} if late.num_rows else {}, late_count=late.num_rows, dead=dead
        )

    def split_late(
        self,
        frame_states: Sequence[FrameState],
        state: State,
        rows: pa.Table,
        times: np.ndarray,
        previous: int,
        sql: Sql,
    ) -> tuple[pa.Table, pa.Table]:
        """Split rows behind the watermark into those newer than all that was emitted for their keys, and late rows."""
        if rows.num_rows == 0:
            return rows, rows
        on_time = np.ones(rows.num_rows, dtype=np.bool_)
        for frame_state in frame_states:
            on_time &= frame_state.on_time(state, rows, times, previous, sql)
        return rows.filter(pa.array(on_time)), rows.filter(pa.array(~on_time))

    def _evaluate(
        self, frame_states: Sequence[FrameState], state: State, due: pa.Table, previous: int, clock: Clock, sql: Sql
    ) -> pa.Table:
        """The rows that are `due`, in the order of their times, each with the answers of all calls."""
        times = milliseconds(due.column(self.time))
        if len(times) > 1 and not bool((times[1:] >= times[:-1]).all()):
            order = np.argsort(times, kind="stable")
            due, times = due.take(pa.array(order)), times[order]
        answers: dict[int, pa.ChunkedArray] = {}
        for frame_state in frame_states:
            answers |= frame_state.evaluate(state, due, times, previous, clock.now, sql)
        columns = [*due.columns, *(answers[i] for i in range(len(self.calls)))]
        return as_changes(weigh(pa.table(columns, names=self.output.names), 1), self.output)
