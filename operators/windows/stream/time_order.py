"""Rows in the order of their times: each waits until the watermark reaches its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from operators.arrays import in_order
from operators.lateness import has_passed, split_late
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.table import specs_of
from operators.state.tables.timed import TimedTable
from operators.time import Clock
from operators.windows.event_time import milliseconds, with_times
from operators.windows.stream.ranges import Ordered


class Released(NamedTuple):
    """The rows that are due, in the order of their times, those that come too late, and those without a time."""

    due: Ordered
    late: dict[int, pa.Table]
    dead: dict[int, pa.Table]


def waiting(schema: pa.Schema, time: int | None, key: Sequence[int]) -> Mapping[str, TraceSpec]:
    """Return the table of rows ahead of the watermark, by `key`; in processing time (`time` is None) no row waits."""
    return {} if time is None else specs_of(_waiting(schema, key))


def _waiting(schema: pa.Schema, key: Sequence[int]) -> TimedTable:
    return TimedTable(name="waiting", schema=schema, key=tuple(schema.names[place] for place in key))


def released(state: State, changes: pa.Table, time: int | None, clock: Clock) -> Released:
    """Return the rows whose time the watermark has reached; in processing time all, at the time of the batch.

    Rows of one time stay in the order of arrival. A row is late when the watermark had reached its time before.
    """
    rows, times, dead = with_times(changes, time, clock.now)
    if time is None:
        return Released(Ordered(rows, times), {}, dead)
    rows, times, late = split_late(rows, times, clock.previous)
    kept = _waiting(rows.schema, ())
    due = kept.take(state, clock.watermark)
    ahead = ~has_passed(times, clock.watermark)
    if ahead.any():
        kept.add(state, rows.filter(pa.array(ahead)), times[ahead])
        rows = rows.filter(pa.array(~ahead))
    due = pa.concat_tables([due, rows]).combine_chunks()
    return Released(Ordered(*in_order(due, milliseconds(due.column(time)))), late, dead)
