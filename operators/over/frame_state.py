"""The state of OVER windows: a `FrameState` for each kind of frame keeps what later rows need of emitted ones.

RANGE frames need the rows of the last n milliseconds of each key, ROWS frames (and LAG) the last n rows. Unbounded
frames need the accumulators of each key.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Times
from operators.names import ORDER_NUMBER
from operators.over.calls import OverCallSpec, bounded
from operators.over.sequence import sequenced
from operators.over.waiting import Due
from operators.sql import Sql
from operators.sql_text import all_named, inner, named, select
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.table import StateTable, specs_of

Calls = Mapping[int, tuple[OverCallSpec, pa.DataType]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameState(ABC):
    """The state of one kind of frame, and the calls (by number) that it evaluates."""

    schema: pa.Schema
    partition: tuple[int, ...]
    calls: Calls
    ttl: int

    @abstractmethod
    def tables(self) -> tuple[StateTable, ...]:
        """Return the tables of the state."""

    def traces(self) -> Mapping[str, TraceSpec]:
        """Return the traces of these tables."""
        return specs_of(*self.tables())

    @abstractmethod
    def on_time(self, state: State, rows: pa.Table, times: Times, previous: int, sql: Sql) -> Mask:
        """Return which `rows` behind the watermark `previous` are on time: they can still be evaluated and emitted."""

    @abstractmethod
    def evaluate(self, state: State, due: Due, now: int, sql: Sql) -> dict[int, pa.ChunkedArray]:
        """Return the answers of each call for the rows that are `due`, in their order, and store what later rows
        need."""

    @abstractmethod
    def expire(self, state: State, now: int) -> None:
        """Expire the keys without a row for longer than the time to live, at the time `now` (ms)."""

    @abstractmethod
    def forget(self, state: State, watermark: int) -> None:
        """Remove the rows that are too far behind the watermark (ms) for the frame of any row that is on time."""

    def in_windows(self, rows: pa.Table, extra: Mapping[str, str], sql: Sql) -> pa.Table:
        """Return ORDER_NUMBER, the answer a<i> of each call i, and the `extra` columns (text by name), of all
        `rows`."""
        computed, shown = [ORDER_NUMBER, *all_named(extra.values(), extra)], [ORDER_NUMBER, *extra]
        for i, (call, type_) in self.calls.items():
            items, answer = bounded(call, self.schema, self.partition, type_, f"w{i}_")
            computed += items
            shown.append(named(answer, f"a{i}"))
        return sql(select(shown, inner(select(computed, "rows"))), {"rows": rows})

    def by_number(self, answers: pa.Table, count: int) -> dict[int, pa.ChunkedArray]:
        """Return the answers of the rows numbered 0 to `count` - 1, in that order."""
        numbers = answers.column(ORDER_NUMBER).to_numpy()
        places = np.empty(count, dtype=np.int64)
        due = np.flatnonzero((numbers >= 0) & (numbers < count))
        places[numbers[due]] = due
        sorted_ = answers.take(pa.array(places))
        return {i: sorted_.column(f"a{i}") for i in self.calls}


def in_sequence(before: pa.Table, times: Times, due: Due) -> pa.Table:
    """Return the rows before the due ones, the due ones, and those after them, numbered; the due ones from 0 on."""
    rows = [sequenced(before, times, -before.num_rows), sequenced(due.rows, due.times, 0)]
    if due.ahead.num_rows:
        rows.append(sequenced(due.ahead, due.ahead_times, due.rows.num_rows))
    return pa.concat_tables(rows).combine_chunks()
