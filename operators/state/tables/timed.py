"""A table of rows that wait for a time: event time that the watermark reaches, or the clock.

Law: of rows that are added ahead of all that was taken, each is taken once, in the order of times and of arrival within
one time. Their time is no time to live: that is in `time_to_live.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from operators.arrays import Times
from operators.hashing import Hashes
from operators.names import SORT_KEY
from operators.state.contents import TableKind, TraceSpec
from operators.state.operator_state import State
from operators.state.tables.table import StateTable
from operators.time import MIN_TIME


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedTable(StateTable):
    """Rows by time; `key` names those of their columns that are the operator's key."""

    key: tuple[str, ...] = ()

    def spec(self) -> TraceSpec:
        return TraceSpec(schema=self.schema, kind=TableKind.TIME_ORDERED, key=self.key)

    def add(self, state: State, rows: pa.Table, times: Times) -> None:
        """Add `rows`, which wait for their `times`."""
        self.trace(state).add(rows, times)

    def take(self, state: State, upto: int) -> pa.Table:
        """Return the rows whose time is `upto` or less. They are forgotten."""
        taken = self.between(state, MIN_TIME, upto)
        self.expire_upto(state, upto)
        return taken

    def between(self, state: State, after: int, upto: int) -> pa.Table:
        """Return the rows with `after` < time <= `upto`, in the order of times and of arrival within one time."""
        return self.timed_between(state, after, upto)[0]

    def timed_between(self, state: State, after: int, upto: int) -> tuple[pa.Table, Times]:
        """Return the rows of `between`, with the time of each."""
        rows = self.trace(state).between(after, upto)
        return rows.select(self.schema.names), rows.column(SORT_KEY).to_numpy()

    def combine(self, state: State, combine: Callable[[pa.Table], pa.Table]) -> None:
        """Pass rows through `combine` when this batch merges them: it gives fewer that stand for the same.

        They have their times in a hidden column, SORT_KEY, and are in the order of these, as what it gives is.
        """
        self.trace(state).combine = combine


@dataclass(frozen=True, slots=True, kw_only=True)
class HashQueue:
    """A queue of groups of another table, by the hashes of their keys: when each is to be looked at again."""

    name: str
    column: str = "key"

    def spec(self) -> TraceSpec:
        """Return the trace behind this queue."""
        schema = pa.schema([(self.column, pa.uint64())])
        return TraceSpec(schema=schema, kind=TableKind.TIME_ORDERED, key=(self.column,), key_is_hash=True)

    def push(self, state: State, hashes: Hashes, times: Times) -> None:
        """Queue the groups with these `hashes` for their `times` (ms)."""
        state[self.name].add(pa.table({self.column: hashes}), times)

    def pop(self, state: State, upto: int) -> Hashes:
        """Return the hashes whose times are `upto` (ms) or less, in the order of times, and remove them."""
        return self.pop_timed(state, upto)[0]

    def pop_timed(self, state: State, upto: int) -> tuple[Hashes, Times]:
        """Take the rows of `pop`, with the time of each."""
        trace = state[self.name]
        due = trace.between(MIN_TIME, upto)
        trace.expire(upto)
        return due.column(self.column).to_numpy(), due.column(SORT_KEY).to_numpy()
