"""Helpers of window operators: rows without a time, the clock of processing time, columns of windows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.arrays import Times
from operators.names import REASON, WEIGHT
from operators.state.operator_state import State
from operators.time import MIN_TIME, Clock
from operators.windows.slices import instants

NO_TIME = "the row has no time: its time attribute is NULL"


def timed(rows: pa.Table, time: int) -> tuple[pa.Table, dict[int, pa.Table]]:
    """Return the rows that have a time, and those that have none, as dead rows of port 0."""
    column = rows.column(time)
    if column.null_count == 0:
        return rows, {}
    without = rows.filter(pc.is_null(column))
    dead = without.append_column(REASON, pa.array([NO_TIME] * without.num_rows, pa.string()))
    return rows.filter(pc.is_valid(column)), {0: dead}


class WithTimes(NamedTuple):
    """Rows without their weights, the time (ms) of each, and the dead rows of port 0, which have none."""

    rows: pa.Table
    times: Times
    dead: dict[int, pa.Table]


def with_times(changes: pa.Table, time: int | None, now: int) -> WithTimes:
    """Return the rows of `changes`, which only insert, with their times: those of the column at `time`; in processing
    time (None) all have `now`."""
    if time is None:
        rows = changes.drop_columns([WEIGHT])
        return WithTimes(rows, np.full(rows.num_rows, now, dtype=np.int64), {})
    rows, dead = timed(changes, time)
    return WithTimes(rows.drop_columns([WEIGHT]), milliseconds(rows.column(time)), dead)


def event_clock(clock: Clock, processing: bool) -> Clock:
    """Return the clock that windows close by: in processing time all that is before now has passed, and nothing is
    late."""
    return Clock(now=clock.now, watermark=clock.now - 1, previous=MIN_TIME) if processing else clock


def running_clock(state: State, clock: Clock, processing: bool) -> Clock:
    """Return what `event_clock` does. In processing time `state` remembers how far the clock has come, so one that is
    set back opens nothing."""
    if not processing:
        return clock
    previous = state.notes.get("closed", MIN_TIME)
    state.notes["closed"] = max(previous, clock.now - 1)
    return Clock(now=clock.now, watermark=state.notes["closed"], previous=previous)


def milliseconds(column: pa.ChunkedArray) -> Times:
    """Return a TIMESTAMP column without NULLs as ms since the epoch."""
    micros: Times = column.cast(pa.int64()).to_numpy()
    return np.floor_divide(micros, 1000)


def timestamps(ms: Times) -> pa.Array:
    """Return ms since the epoch as a TIMESTAMP column."""
    return pa.array(ms * 1000, pa.int64()).cast(pa.timestamp("us"))


def window_columns(starts: Times, ends: Times, zone: str | None) -> list[pa.Array]:
    """Return the columns window_start, window_end and window_time."""
    return [timestamps(starts), timestamps(ends), timestamps(instants(ends, zone) - 1)]
