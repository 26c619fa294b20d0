"""OVER windows: a row out per row in, in time order, once its frames are complete.

A row waits until the watermark has reached all that its frames read (`waiting`); a row that no longer waits has been
emitted. What the frames still need of emitted rows is kept by the frame states, one for each kind of frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Times
from operators.base import KernelDefaults
from operators.changes import weigh
from operators.columns import as_changes, no_changes
from operators.kernel import Step
from operators.lateness import has_passed
from operators.names import WEIGHT
from operators.over.calls import NEIGHBOURS, NUMBERINGS, Frame, OverCallSpec
from operators.over.frame_state import FrameState
from operators.over.range_frame import RangeFrameState
from operators.over.rows_frame import RowsFrameState
from operators.over.unbounded_frame import UnboundedFrameState
from operators.over.waiting import Due, Waiting, WaitingForRows, WaitingForTime
from operators.sql import Sql
from operators.state.operator_state import State, TraceSpec
from operators.time import END_OF_TIME, MIN_TIME, Clock
from operators.windows.event_time import milliseconds, running_clock, timed

__all__ = ["Frame", "OverCallSpec", "OverOperator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverOperator(KernelDefaults):
    """OVER windows that share PARTITION BY and ORDER BY. `output` has the input's columns, then one a call.

    `time` is the position of the time attribute; with `processing` rows come in arrival order and none is late. A row
    is late when a row behind it, or a frame that holds it, has been emitted for its key, over RANGE also when it is
    behind the watermark by the length of the longest frame; where a frame is unbounded, when it is not newer than the
    watermark. `ttl` ms of processing time without a row let what is kept of a key be forgotten (0 = never); rows that
    still wait for others of that key are answered first. Rows of one time are in the order of the columns at `ties`,
    where there are any, then of arrival. Raises ValueError for calls that read rows behind the current
    one both by time and by number.
    """

    input: pa.Schema
    output: pa.Schema
    partition: tuple[int, ...]
    time: int
    calls: tuple[OverCallSpec, ...]
    processing: bool = False
    ttl: int = 0
    ties: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self._rows_ahead and self._time_ahead:
            raise ValueError("frames that end some rows and some time behind the current row do not share an operator")

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.input,)

    @property
    def _rows_ahead(self) -> int:
        return max((call.rows_ahead for call in self.calls), default=0)

    @property
    def _time_ahead(self) -> int:
        return max((call.time_ahead for call in self.calls), default=0)

    def output_watermark(self, watermark: int) -> int:
        """Hold the watermark back by the time that rows wait for others."""
        return watermark if watermark >= END_OF_TIME else watermark - self._time_ahead

    def traces(self) -> Mapping[str, TraceSpec]:
        traces = dict(self._waiting().traces())
        for frame_state in self._frame_states():
            traces |= frame_state.traces()
        return traces

    def _frame_states(self) -> list[FrameState]:
        kinds: dict[type[FrameState], dict[int, tuple[OverCallSpec, pa.DataType]]] = {}
        types = self.output.types[len(self.input) :]
        for i, (call, type_) in enumerate(zip(self.calls, types, strict=True)):
            kinds.setdefault(_frame_state_of(call), {})[i] = (call, type_)
        return [
            kind(schema=self.input, partition=self.partition, calls=calls, ttl=self.ttl)
            for kind, calls in kinds.items()
        ]

    def _waiting(self) -> Waiting:
        if self._rows_ahead:
            return WaitingForRows(
                schema=self.input,
                partition=self.partition,
                time=self.time,
                ties=self.ties,
                ahead=self._rows_ahead,
                ttl=self.ttl,
            )
        return WaitingForTime(
            schema=self.input, partition=self.partition, time=self.time, ties=self.ties, ahead=self._time_ahead
        )

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        frame_states, waiting = self._frame_states(), self._waiting()
        clock = self._clock(state, clock)
        changes = [no_changes(self.output)]
        ended = waiting.ended(state, clock, sql)
        if ended is not None:
            # The state of these keys is removed with them, below.
            changes.append(self._answers(frame_states, state, ended, clock.now - self.ttl, sql))
        for frame_state in frame_states:
            frame_state.expire(state, clock.now)
        rows, dead = timed(inputs[0], self.time)
        rows = rows.drop_columns([WEIGHT])
        times = milliseconds(rows.column(self.time))
        late = self._late(frame_states, waiting, state, rows, times, clock, sql)
        late_rows = rows.filter(pa.array(late))
        due = waiting.take(state, rows.filter(pa.array(~late)), times[~late], clock, sql)
        changes.append(self._answers(frame_states, state, due, clock.now, sql))
        for frame_state in frame_states:
            frame_state.forget(state, clock.watermark)
        return Step(
            changes=pa.concat_tables(changes),
            late={0: weigh(late_rows, 1)} if late_rows.num_rows else {},
            late_count=late_rows.num_rows,
            dead=dead,
        )

    def _clock(self, state: State, clock: Clock) -> Clock:
        """The clock of the answers: in processing time everything that has come is due."""
        if not self.processing:
            return clock
        ended = clock.watermark >= END_OF_TIME
        if not self._time_ahead:
            return Clock(now=clock.now, watermark=END_OF_TIME if ended else clock.now, previous=MIN_TIME)
        running = running_clock(state, clock, processing=True)
        return Clock(now=clock.now, watermark=END_OF_TIME, previous=running.previous) if ended else running

    def _late(
        self,
        frame_states: Sequence[FrameState],
        waiting: Waiting,
        state: State,
        rows: pa.Table,
        times: Times,
        clock: Clock,
        sql: Sql,
    ) -> Mask:
        """Which rows are late: of those behind the watermark, those that answers have been given without."""
        late = np.zeros(rows.num_rows, dtype=np.bool_)
        behind = np.flatnonzero(has_passed(times, clock.previous))
        if self.processing or len(behind) == 0:
            return late
        rows, times = rows.take(pa.array(behind)), times[behind]
        on_time = waiting.on_time(state, rows, times, sql)
        for frame_state in frame_states:
            on_time &= frame_state.on_time(state, rows, times, clock.previous, sql)
        late[behind] = ~on_time
        return late

    def _answers(self, frame_states: Sequence[FrameState], state: State, due: Due, now: int, sql: Sql) -> pa.Table:
        """The rows that are `due`, in their order, each with the answers of all calls."""
        if due.rows.num_rows == 0:
            return no_changes(self.output)
        answers: dict[int, pa.ChunkedArray] = {}
        for frame_state in frame_states:
            answers |= frame_state.evaluate(state, due, now, sql)
        columns = [*due.rows.columns, *(answers[i] for i in range(len(self.calls)))]
        return as_changes(weigh(pa.table(columns, names=self.output.names), 1), self.output)


def _frame_state_of(call: OverCallSpec) -> type[FrameState]:
    """The kind of state that `call` needs."""
    if call.function in NEIGHBOURS:
        return RowsFrameState
    if call.function in NUMBERINGS or call.frame.preceding is None:
        return UnboundedFrameState
    return RowsFrameState if call.frame.rows else RangeFrameState
