"""The rows of each partition in their order, and what windows over them keep between batches.

Each row gets a number within its partition, from 1 on. Of a partition a record is kept: the place of its rows, how many
it has had (`seen`), the first number that a window may still need (`low`), and the numbers that its kind of window
adds. The rows from `low` on are kept apart from the record: adding a row writes that row, and reading a window reads
the rows of that window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Positions, Times, distinct, spread
from operators.columns import numbered
from operators.names import AT, FOUND, PLACE, PREVIOUS, TIME
from operators.sql import Sql
from operators.sql_text import named, over, select
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.keyed import KeyedRows, KeyedTable
from operators.state.tables.numbered import NumberedRows, NumberedTable
from operators.state.tables.table import specs_of
from operators.state.tables.timed import TimedTable
from operators.time import MIN_TIME, Clock
from operators.windows.stream.ranges import Ordered, Ranges


class Arrivals(NamedTuple):
    """The rows of a batch by partition, in their order: the partition of each, its number there, its time.

    `starts` and `counts` say where the rows of each partition are; `found` which partitions have a record, and `record`
    what it says (0 where there is none).
    """

    rows: pa.Table
    times: Times
    owners: Positions
    numbers: Times
    starts: Positions
    counts: Positions
    found: Mask
    record: Mapping[str, Times]

    @property
    def ends(self) -> Positions:
        """Where the rows of each partition end."""
        return self.starts + self.counts

    @property
    def seen(self) -> Times:
        """How many rows each partition has had, those of the batch included."""
        return self.record["seen"] + self.counts


class Closed(NamedTuple):
    """The windows that a batch closes and what is kept.

    A window has the rows of partition `owners[i]` with the numbers from `first[i]` to `last[i]`, which is not included.
    `low` is the first number that each partition keeps, `record` what else it remembers; those not `alive` are
    forgotten. Those of `wake` that are not MIN_TIME say when they must be asked again, rows or not.
    """

    owners: Positions
    first: Times
    last: Times
    starts: Times
    ends: Times
    low: Times
    alive: Mask
    record: Mapping[str, Times]
    wake: Times | None = None


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partitions of rows of `schema` by the columns at `keys`.

    `remembered` names the numbers that windows add; with `wakes` windows may close without a row, at times that they
    ask for.
    """

    schema: pa.Schema
    keys: tuple[int, ...]
    remembered: tuple[str, ...] = ()
    wakes: bool = False

    def traces(self) -> Mapping[str, TraceSpec]:
        """Return a table of the rows, one of the records, and one of the times to wake at."""
        return specs_of(self._rows, self._records, *([self._timers] if self.wakes else []))

    @property
    def _rows(self) -> NumberedTable:
        schema = self.schema.append(pa.field(TIME, pa.int64()))
        return NumberedTable(name="rows", schema=schema, keyed=bool(self.keys))

    @property
    def _records(self) -> KeyedTable:
        schema = pa.schema([*self._key_fields, *(pa.field(name, pa.int64()) for name in self._numbers)])
        return KeyedTable(name="partitions", schema=schema, keys=len(self.keys))

    @property
    def _timers(self) -> TimedTable:
        schema = pa.schema([*self._key_fields, pa.field(TIME, pa.int64())])
        return TimedTable(name="timers", schema=schema, key=tuple(field.name for field in self._key_fields))

    @property
    def _key_fields(self) -> list[pa.Field]:
        return [self.schema.field(place) for place in self.keys]

    @property
    def _numbers(self) -> tuple[str, ...]:
        return ("place", "seen", "low", *self.remembered)

    def advance(
        self,
        state: State,
        due: Ordered,
        clock: Clock,
        close: Callable[[Arrivals], Closed],
        sql: Sql,
    ) -> tuple[Ordered, Ranges]:
        """Hand the rows that are `due`, in their order, to the windows of their partitions; returns those that `close`
        and their rows. Where nothing is due and nobody wakes, nothing is asked."""
        woken = due.rows.slice(0, 0)
        if self.wakes:
            woken = self._timers.take(state, clock.watermark)
        keys, owners = self._split(due.rows, woken, sql)
        if keys.num_rows == 0:
            nothing = np.empty(0, dtype=np.int64)
            return due, Ranges(nothing, nothing, nothing, nothing)
        pairs = self._records.read(state, keys, sql)
        arrivals = self._arrivals(state, due, owners, pairs)
        closed = close(arrivals)
        answer = self._windows(state, arrivals, closed)
        self._write_rows(state, arrivals, closed)
        self._write_records(state, pairs, arrivals, closed)
        return answer

    def _split(self, rows: pa.Table, woken: pa.Table, sql: Sql) -> tuple[pa.Table, Positions]:
        """The partitions that are touched, in the order in which they come, and which of them each row is in."""
        names = [self.schema.names[k] for k in self.keys]
        if not names:
            touched = min(1, rows.num_rows + woken.num_rows)
            return pa.table({PLACE: np.zeros(touched, dtype=np.int64)}), np.zeros(rows.num_rows, dtype=np.int64)
        all_ = pa.concat_tables([rows.select(names), woken.select(names)])
        firsts = first_of_each(all_, range(len(names)), sql)
        different = distinct(firsts)
        keys = all_.take(pa.array(different)).append_column(PLACE, pa.array(np.arange(len(different))))
        return keys, np.searchsorted(different, firsts[: rows.num_rows])

    def _arrivals(self, state: State, due: Ordered, owners: Positions, pairs: KeyedRows) -> Arrivals:
        count = pairs.rows.num_rows
        places = pairs.rows.column(PLACE).to_numpy()
        found = np.zeros(count, dtype=np.bool_)
        found[places] = pairs.rows.column(FOUND).to_numpy()
        record: dict[str, Times] = {}
        for name in self._numbers:
            record[name] = np.zeros(count, dtype=np.int64)
            record[name][places] = pairs.rows.column(PREVIOUS + name).fill_null(0).to_numpy()
        new = np.flatnonzero(~found)
        seen = state.notes.get("partitions", 0)
        hashes = np.empty(count, dtype=np.uint64)
        hashes[places] = pairs.sort_keys
        record["place"][new] = self._rows.new_places(hashes[new], seen)
        record["low"][new] = 1
        state.notes["partitions"] = seen + len(new)
        rows, times = due
        if count > 1:
            order = np.argsort(owners, kind="stable")
            rows, times, owners = rows.take(pa.array(order)), times[order], owners[order]
        counts = np.bincount(owners, minlength=count).astype(np.int64)
        starts = np.cumsum(counts) - counts
        numbers = record["seen"][owners] + 1 + np.arange(len(owners)) - starts[owners]
        return Arrivals(rows, times, owners, numbers, starts, counts, found, record)

    def _windows(self, state: State, arrivals: Arrivals, closed: Closed) -> tuple[Ordered, Ranges]:
        """The rows that the closed windows have, and where each window is among them."""
        seen = arrivals.record["seen"]
        first = seen + 1
        np.minimum.at(first, closed.owners, closed.first)
        kept = self._rows.read(state, arrivals.record["place"], first, seen)
        rows = arrivals.rows.append_column(TIME, pa.array(arrivals.times))
        if kept.rows.num_rows:
            rows = pa.concat_tables([kept.rows, rows.select(kept.rows.column_names)]).combine_chunks()
            owners = np.concatenate([kept.owners, arrivals.owners])
            numbers = np.concatenate([kept.numbers, arrivals.numbers])
            rows = rows.take(pa.array(np.lexsort((numbers, owners))))
        counts = seen + 1 - first + arrivals.counts
        places = np.cumsum(counts) - counts - first
        owners = closed.owners
        ranges = Ranges(closed.first + places[owners], closed.last + places[owners], closed.starts, closed.ends)
        return Ordered(rows.select(self.schema.names), rows.column(TIME).to_numpy()), ranges

    def _write_rows(self, state: State, arrivals: Arrivals, closed: Closed) -> None:
        """Add the rows that are still needed, and remove the others."""
        record, low = arrivals.record, np.where(closed.alive, closed.low, arrivals.seen + 1)
        places = record["place"]
        gone = np.maximum(np.minimum(low, record["seen"] + 1) - record["low"], 0)
        leaving = np.repeat(places, gone), spread(record["low"], gone)
        stay = np.flatnonzero(arrivals.numbers >= low[arrivals.owners])
        rows = arrivals.rows.take(pa.array(stay)).append_column(TIME, pa.array(arrivals.times[stay]))
        came = NumberedRows(rows, arrivals.owners[stay], arrivals.numbers[stay])
        self._rows.write(state, came, leaving, places)

    def _write_records(self, state: State, pairs: KeyedRows, arrivals: Arrivals, closed: Closed) -> None:
        places = pairs.rows.column(PLACE).to_numpy()
        values = {"place": arrivals.record["place"], "seen": arrivals.seen, "low": closed.low, **closed.record}
        keys = pairs.rows.select(range(len(self.keys)))
        columns = [*keys.columns, *(pa.array(values[name][places]) for name in self._numbers)]
        records = self._records
        records.write(state, pairs, pa.table(columns, schema=records.schema), stays=closed.alive[places])
        if closed.wake is not None:
            times = closed.wake[places]
            set_ = times > MIN_TIME
            timers = pa.table([*keys.columns, pa.array(times)], schema=self._timers.schema)
            self._timers.add(state, timers.filter(pa.array(set_)), times[set_])


def first_of_each(rows: pa.Table, keys: Sequence[int], sql: Sql) -> Positions:
    """Return for each row the position of the first row that has the same values at `keys`."""
    if not keys or rows.num_rows == 0:
        return np.zeros(rows.num_rows, dtype=np.int64)
    names = [rows.column_names[k] for k in keys]
    statement = select([named(f"MIN({AT}) {over(names)}", "f")], "rows", order_by=[AT])
    firsts: Positions = sql(statement, {"rows": numbered(rows.select(names))}).column("f").to_numpy()
    return firsts
