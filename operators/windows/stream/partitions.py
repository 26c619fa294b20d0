"""The rows of each partition in their order, and what windows over them keep between batches.

Each row gets a number within its partition, from 1 on. Of a partition a record is kept: how many rows it has had
(`seen`), the first number that a window may still need (`low`), and the numbers that its kind of window adds. The rows
from `low` on are kept apart from the record, under the partition's own place and theirs: adding a row writes that row,
and reading a window reads the rows of that window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.names import AT, FOUND, NUMBER, PLACE, PREVIOUS, SORT_KEY, TIME
from operators.slots import KEYLESS, SLOT_BITS, first_hash, slots_of
from operators.sql import Sql
from operators.sql_text import named, over, select
from operators.state.block import Positions, SortKeys, distinct, spread
from operators.state.lookup import find_between
from operators.state.operator_state import State, TableKind, TraceSpec
from operators.state.pairing import KeyedRows, read_keyed, write
from operators.time import MIN_TIME, Clock
from operators.windows.slices import Times
from operators.windows.stream.ranges import Mask, Ordered, Ranges

_NUMBER_BITS = (64 - SLOT_BITS) // 2
_NUMBERS = (1 << _NUMBER_BITS) - 1
"""The bits of a sort key behind the slot: half of them tell the partitions of a slot apart, half the rows of one. So a
partition may keep 67 million rows at a time, and as many partitions come before one gets the number of another."""


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
        rows = pa.schema([*self.schema, pa.field(TIME, pa.int64()), pa.field(NUMBER, pa.int64())])
        numbers = [pa.field(name, pa.int64()) for name in self._numbers]
        keys = [self.schema.field(k) for k in self.keys]
        records = pa.schema([*keys, *numbers])
        names = tuple(field.name for field in keys)
        timers = TraceSpec(
            schema=pa.schema([*keys, pa.field(TIME, pa.int64())]), kind=TableKind.TIME_ORDERED, key=names
        )
        return {
            "rows": TraceSpec(schema=rows, kind=TableKind.KEYED),
            "partitions": TraceSpec(schema=records, kind=TableKind.KEYED),
            **({"timers": timers} if self.wakes else {}),
        }

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
            woken = state["timers"].between(clock.previous, clock.watermark)
            state["timers"].expire(clock.watermark)
        keys, owners = self._split(due.rows, woken, sql)
        if keys.num_rows == 0:
            nothing = np.empty(0, dtype=np.int64)
            return due, Ranges(nothing, nothing, nothing, nothing)
        sort_keys = state["partitions"].key_hash(keys, range(len(self.keys)))
        pairs = read_keyed(sql, state["partitions"], keys, sort_keys, len(self.keys))
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
        told = state.notes.get("partitions", 0)
        slots = np.empty(count, dtype=np.int64)
        slots[places] = slots_of(pairs.sort_keys)
        record["place"][new] = (slots[new] << _NUMBER_BITS) | ((told + np.arange(len(new))) & _NUMBERS)
        record["low"][new] = 1
        state.notes["partitions"] = told + len(new)
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
        kept = self._kept(state, arrivals.record["place"], first, seen)
        names = [*self.schema.names, TIME]
        coming = arrivals.rows.append_column(TIME, pa.array(arrivals.times))
        rows = coming
        if kept.num_rows:
            rows = pa.concat_tables([kept.select(names), coming]).combine_chunks()
            owners = np.concatenate([self._owners(kept, arrivals.record["place"]), arrivals.owners])
            numbers = np.concatenate([kept.column(NUMBER).to_numpy(), arrivals.numbers])
            rows = rows.take(pa.array(np.lexsort((numbers, owners))))
        counts = seen + 1 - first + arrivals.counts
        places = np.cumsum(counts) - counts - first
        owners = closed.owners
        ranges = Ranges(closed.first + places[owners], closed.last + places[owners], closed.starts, closed.ends)
        return Ordered(rows.select(self.schema.names), rows.column(TIME).to_numpy()), ranges

    def _kept(self, state: State, places: Times, first: Times, last: Times) -> pa.Table:
        """The rows of each partition with the numbers from `first` to `last`, both included."""
        reading = np.flatnonzero(first <= last)
        lows, highs = (self._sort_keys(places[reading], ends[reading]) for ends in (first, last))
        wraps = lows > highs
        if wraps.any():
            whole = places[reading][wraps]
            ends = self._sort_keys(whole, np.full(len(whole), _NUMBERS)), self._sort_keys(whole, 0 * whole)
            lows, highs = np.concatenate([lows, ends[1]]), np.concatenate([highs, highs[wraps]])
            highs[: len(wraps)][wraps] = ends[0]
        return find_between(state["rows"], lows, highs)

    def _owners(self, rows: pa.Table, places: Times) -> Positions:
        """The partitions of rows that were kept."""
        if not self.keys:
            return np.zeros(rows.num_rows, dtype=np.int64)
        found = (rows.column(SORT_KEY).to_numpy() >> np.uint64(_NUMBER_BITS)).astype(np.int64)
        order = np.argsort(places)
        owners: Positions = order[np.searchsorted(places[order], found)]
        return owners

    def _sort_keys(self, places: Times, numbers: Times) -> SortKeys:
        """Where rows are kept: by their partition, then by their number (of which the lower bits are enough)."""
        if not self.keys:
            return np.uint64(first_hash(KEYLESS)) | numbers.astype(np.uint64)
        return (places.astype(np.uint64) << np.uint64(_NUMBER_BITS)) | (numbers & _NUMBERS).astype(np.uint64)

    def _write_rows(self, state: State, arrivals: Arrivals, closed: Closed) -> None:
        """Add the rows that are still needed, and remove those that are no more."""
        record, low = arrivals.record, np.where(closed.alive, closed.low, arrivals.seen + 1)
        places = record["place"]
        gone = np.maximum(np.minimum(low, record["seen"] + 1) - record["low"], 0)
        leaving = np.repeat(places, gone), spread(record["low"], gone)
        stay = np.flatnonzero(arrivals.numbers >= low[arrivals.owners])
        rows = arrivals.rows.take(pa.array(stay))
        rows = rows.append_column(TIME, pa.array(arrivals.times[stay]))
        rows = rows.append_column(NUMBER, pa.array(arrivals.numbers[stay]))
        sort_keys = self._sort_keys(places[arrivals.owners[stay]], arrivals.numbers[stay])
        state["rows"].replace(rows, sort_keys, self._sort_keys(*leaving))

    def _write_records(self, state: State, pairs: KeyedRows, arrivals: Arrivals, closed: Closed) -> None:
        places = pairs.rows.column(PLACE).to_numpy()
        values = {"place": arrivals.record["place"], "seen": arrivals.seen, "low": closed.low, **closed.record}
        alive = closed.alive[places]
        columns = [pairs.rows.column(i) for i in range(len(self.keys))]
        columns += [pa.array(values[name][places]) for name in self._numbers]
        table = pa.table(columns, names=[*(self.schema.names[k] for k in self.keys), *self._numbers])
        write(state["partitions"], pairs, table.filter(pa.array(alive)), pairs.sort_keys[alive])
        if closed.wake is not None:
            times = closed.wake[places]
            set_ = times > MIN_TIME
            timers = table.select(range(len(self.keys))) if self.keys else table.select([])
            columns = [*timers.columns, pa.array(times)]
            timers = pa.table(columns, names=[*timers.column_names, TIME])
            state["timers"].add(timers.filter(pa.array(set_)), times[set_])


def first_of_each(rows: pa.Table, keys: Sequence[int], sql: Sql) -> Positions:
    """For each row the position of the first row that has the same values at `keys`."""
    if not keys or rows.num_rows == 0:
        return np.zeros(rows.num_rows, dtype=np.int64)
    names = [rows.column_names[k] for k in keys]
    placed = rows.select(names).append_column(AT, pa.array(np.arange(rows.num_rows)))
    statement = select([named(f"MIN({AT}) {over(names)}", "f")], "rows", order_by=[AT])
    firsts: Positions = sql(statement, {"rows": placed}).column("f").to_numpy()
    return firsts
