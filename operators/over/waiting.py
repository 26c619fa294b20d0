"""The rows of OVER windows that have not been answered yet, and when they are: once their frames are complete.

A frame that ends with the current row is complete when the watermark reaches the row's time; one that ends some time
later, when the watermark has passed it by that time; one that ends n rows later, when n more rows of its partition
have arrived by the watermark. A partition that has ended has no more rows: its last frames stay as they are. It ends
with its input, or with a time to live when it has had no row for that long.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.arrays import Mask, Times, in_order
from operators.lateness import has_passed
from operators.names import ORDER_NUMBER, ORDER_TIME, WRITTEN, columns
from operators.over.sequence import newer
from operators.sql import Sql
from operators.sql_text import named, over, select
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.grouped import GroupedTable
from operators.state.tables.history import HistoryTable
from operators.state.tables.table import specs_of
from operators.state.tables.timed import TimedTable
from operators.time import END_OF_TIME, Clock
from operators.windows.event_time import milliseconds


class Due(NamedTuple):
    """The rows that are answered, by time, those of one time in the order of arrival; and the rows `ahead` of them in
    their partitions, which their frames may read."""

    rows: pa.Table
    times: Times
    ahead: pa.Table
    ahead_times: Times


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(ABC):
    """The rows of `schema` that wait, in partitions by the columns at `partition`; `time` is that of their time, and
    those of one time are in the order of the columns at `ties`, then of arrival."""

    schema: pa.Schema
    partition: tuple[int, ...]
    time: int
    ties: tuple[int, ...] = ()

    @abstractmethod
    def traces(self) -> Mapping[str, TraceSpec]:
        """Return the tables of the state."""

    @abstractmethod
    def take(self, state: State, rows: pa.Table, times: Times, clock: Clock, sql: Sql) -> Due:
        """Store `rows`, which are on time, and return those that are due."""

    @abstractmethod
    def on_time(self, state: State, rows: pa.Table, times: Times, sql: Sql) -> Mask:
        """Return which `rows` behind the watermark come behind all those of their partitions that others count as the
        next."""

    def ended(self, state: State, clock: Clock, sql: Sql) -> Due | None:
        """Return the rows of partitions that have ended because their time to live has passed; None if none have."""
        return None

    def _none(self) -> pa.Table:
        return self.schema.empty_table()

    @property
    def _columns(self) -> tuple[str, ...]:
        """The columns of a partition."""
        return tuple(columns(self.partition))


_NO_TIMES = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingForTime(Waiting):
    """Rows that are answered when the watermark has passed their time by `ahead` ms."""

    ahead: int = 0

    @property
    def _by_time(self) -> TimedTable:
        """The waiting rows."""
        return TimedTable(name="rows", schema=self.schema, key=self._columns)

    @property
    def _by_partition(self) -> HistoryTable:
        """The waiting rows, to be read by partition."""
        return HistoryTable(name="ahead", schema=self.schema, keys=self.partition, length=self.ahead)

    def traces(self) -> Mapping[str, TraceSpec]:
        """Return a table by time, and where frames read what is ahead, one by partition."""
        return specs_of(self._by_time, *([self._by_partition] if self.ahead else []))

    def on_time(self, state: State, rows: pa.Table, times: Times, sql: Sql) -> Mask:
        return np.ones(rows.num_rows, dtype=np.bool_)

    def take(self, state: State, rows: pa.Table, times: Times, clock: Clock, sql: Sql) -> Due:
        upto = self._answered(clock.watermark)
        at_once = has_passed(times, upto)
        due = [self._by_time.take(state, upto), rows.filter(pa.array(at_once))]
        staying = rows.filter(pa.array(~at_once))
        self._by_time.add(state, staying, times[~at_once])
        answered = pa.concat_tables(due).combine_chunks() if any(each.num_rows for each in due) else self._none()
        answered, of = self._sequence(answered)
        if not self.ahead:
            return Due(answered, of, self._none(), _NO_TIMES)
        waiting = self._by_partition
        if staying.num_rows:
            waiting.add(state, staying, times[~at_once])
        waiting.expire_upto(state, upto)
        ahead, ahead_times = self._none(), _NO_TIMES
        if answered.num_rows:
            partitions = waiting.hashes(state, answered)
            ahead, ahead_times = waiting.read(state, partitions, of, of + self.ahead)
            # Of other partitions what lies between may be found too; all that is due has been taken out by now.
            behind = ahead_times > upto
            ahead, ahead_times = ahead.filter(pa.array(behind)), ahead_times[behind]
        return Due(answered, of, ahead, ahead_times)

    def _sequence(self, rows: pa.Table) -> tuple[pa.Table, Times]:
        """The rows in their order, and their times."""
        times = milliseconds(rows.column(self.time))
        if not self.ties:
            return in_order(rows, times)
        keys = pa.table([times, *(rows.column(place) for place in self.ties)], names=[ORDER_TIME, *columns(self.ties)])
        order = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])
        return rows.take(order), times[order.to_numpy()]

    def _answered(self, watermark: int) -> int:
        """The time up to which rows are due: all of them once their input has ended."""
        return watermark if watermark >= END_OF_TIME else watermark - self.ahead


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingForRows(Waiting):
    """Rows that are answered when the watermark has reached the `ahead` rows behind them in their partition.

    With a time to live (`ttl` ms of processing time) a partition ends that has had no row for so long.
    """

    ahead: int
    ttl: int = 0

    @property
    def _unreached(self) -> WaitingForTime:
        """The rows that the watermark has not reached."""
        return WaitingForTime(schema=self.schema, partition=self.partition, time=self.time, ties=self.ties)

    @property
    def _pending(self) -> GroupedTable:
        """The last rows of each partition that the watermark has reached."""
        schema = pa.schema([*self.schema, pa.field(ORDER_TIME, pa.int64()), pa.field(WRITTEN, pa.int64())])
        return GroupedTable(name="pending", schema=schema, group=self.partition)

    @property
    def _timers(self) -> TimedTable:
        """When to ask whether a partition has ended."""
        schema = pa.schema([*(self.schema.field(place) for place in self.partition), pa.field(WRITTEN, pa.int64())])
        return TimedTable(name="timers", schema=schema, key=self._columns)

    def traces(self) -> Mapping[str, TraceSpec]:
        """Return the last rows of each partition, those ahead of the watermark, and when to ask whether a partition has
        ended."""
        return {**self._unreached.traces(), **specs_of(self._pending, *([self._timers] if self.ttl else []))}

    def on_time(self, state: State, rows: pa.Table, times: Times, sql: Sql) -> Mask:
        pending = self._pending
        return newer(rows, times, self.partition, pending.read(state, pending.hashes(state, rows)), sql)

    def ended(self, state: State, clock: Clock, sql: Sql) -> Due | None:
        if not self.ttl:
            return None
        bound, pending = clock.now - self.ttl, self._pending
        asked = self._timers.take(state, bound)
        if asked.num_rows == 0:
            return None
        known = pending.read(state, pending.hash(state, asked, range(len(self.partition))))
        last = f"MAX({WRITTEN}) {over(self._columns)}"
        rows = self._numbered(known, -known.num_rows)
        written = sql(select([ORDER_NUMBER, named(last, "last")], "rows", order_by=[ORDER_NUMBER]), {"rows": rows})
        idle = written.column("last").to_numpy() <= bound
        self._wake(state, known.filter(pa.array(~idle)), sql)
        pending.write(state, known, known, stays=~idle)
        due = known.filter(pa.array(idle))
        answered, times = in_order(due.select(self.schema.names), due.column(ORDER_TIME).to_numpy())
        return Due(answered, times, self._none(), _NO_TIMES)

    def take(self, state: State, rows: pa.Table, times: Times, clock: Clock, sql: Sql) -> Due:
        ready, of, _, _ = self._unreached.take(state, rows, times, clock, sql)
        ended, pending = clock.watermark >= END_OF_TIME, self._pending
        known = pending.read_all(state) if ended else pending.read(state, pending.hashes(state, ready))
        if ready.num_rows == 0 and known.num_rows == 0:
            return Due(ready, of, self._none(), _NO_TIMES)
        coming = ready.append_column(ORDER_TIME, pa.array(of))
        coming = coming.append_column(WRITTEN, pa.array(np.full(len(of), clock.now)))
        sequence = pa.concat_tables([known, pending.placed(state, coming)]).combine_chunks()
        rows = self._numbered(sequence, -known.num_rows)
        back = f"ROW_NUMBER() {over(self._columns, [f'{ORDER_NUMBER} DESC'])}"
        first = f"MIN({ORDER_NUMBER}) {over(self._columns)}"
        items = [named(back, "back"), named(first, "first")]
        numbers = sql(select(items, "rows", order_by=[ORDER_NUMBER]), {"rows": rows})
        stay = numbers.column("back").to_numpy() <= (0 if ended else self.ahead)
        staying = sequence.filter(pa.array(stay))
        pending.write(state, known, sequence, stays=stay)
        if self.ttl:
            self._wake(state, sequence.filter(pa.array(stay & (numbers.column("first").to_numpy() >= 0))), sql)
        answered = sequence.filter(pa.array(~stay))
        due, due_times = in_order(answered.select(self.schema.names), answered.column(ORDER_TIME).to_numpy())
        return Due(due, due_times, staying.select(self.schema.names), staying.column(ORDER_TIME).to_numpy())

    def _numbered(self, rows: pa.Table, first: int) -> pa.Table:
        """The columns of `rows` that tell partitions apart, the processing time of each, and numbers from `first`."""
        numbers = pa.array(np.arange(first, first + rows.num_rows))
        return rows.select([*dict.fromkeys(self._columns), WRITTEN]).append_column(ORDER_NUMBER, numbers)

    def _wake(self, state: State, rows: pa.Table, sql: Sql) -> None:
        """Ask again for the partitions of `rows` when their time to live has passed."""
        if rows.num_rows == 0:
            return
        last = named(f"MAX({WRITTEN})", WRITTEN)
        statement = select([*self._columns, last], "rows", group_by=self._columns)
        timers = sql(statement, {"rows": rows.select([*dict.fromkeys(self._columns), WRITTEN])})
        self._timers.add(state, timers, timers.column(WRITTEN).to_numpy())
