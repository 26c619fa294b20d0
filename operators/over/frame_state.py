"""The state of OVER windows: one `FrameState` for each kind of frame, which keeps what later rows need of those
emitted.

RANGE frames need the rows of the last so many milliseconds of each key, ROWS frames (and LAG) the last so many rows.
Unbounded frames need the accumulators of each key.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.hashing import bucket_hash
from operators.lateness import out_of_reach
from operators.names import (
    AHEAD,
    FOUND,
    ORDER_NUMBER,
    ORDER_TIME,
    PREVIOUS,
    ROWS,
    VALUE,
    WRITTEN,
    column,
    columns,
    key_columns,
)
from operators.over.calls import NEIGHBOURS, NUMBERINGS, OverCallSpec, bounded
from operators.over.running import RunningCall, running
from operators.over.sequence import newer, numbered
from operators.over.waiting import Due
from operators.sql import Sql
from operators.sql_text import all_named, inner, join, named, over, same, select
from operators.state.block import SortKeys, among, distinct
from operators.state.lookup import find, nested, sort_keys_of
from operators.state.operator_state import State, TableKind, TraceSpec
from operators.state.pairing import read_keyed, restrict_to, write
from operators.state.trace import Trace
from operators.windows.history import PartitionHistory
from operators.windows.slices import Times

Calls = Mapping[int, tuple[OverCallSpec, pa.DataType]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameState(ABC):
    """The state of one kind of frame, and the calls (by number) that it evaluates."""

    schema: pa.Schema
    partition: tuple[int, ...]
    calls: Calls
    ttl: int

    @property
    @abstractmethod
    def name(self) -> str:
        """The trace that it is kept in."""

    @abstractmethod
    def spec(self) -> TraceSpec:
        """Return what kind of trace that is."""

    def traces(self) -> Mapping[str, TraceSpec]:
        """Return all traces."""
        return {self.name: self.spec()}

    @abstractmethod
    def on_time(self, state: State, rows: pa.Table, times: Times, previous: int, sql: Sql) -> npt.NDArray[np.bool_]:
        """Return which `rows` behind the watermark `previous` are on time: they can still be evaluated and emitted."""

    @abstractmethod
    def evaluate(self, state: State, due: Due, now: int, sql: Sql) -> dict[int, pa.ChunkedArray]:
        """Return the answers of each call for the rows that are `due`, in their order; what has to be is remembered."""

    @property
    def reach(self) -> int | None:
        """How many ms behind the watermark emitted rows are kept, where they go by their time."""
        return None

    def expire(self, state: State, now: int) -> None:
        """Forget the keys without a row for longer than the time to live."""
        if self.ttl:
            for name in self.traces():
                state[name].expire(now - self.ttl)

    def with_timestamp(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema` with the time of writing, if keys are forgotten by it."""
        return pa.schema([*schema, pa.field(WRITTEN, pa.int64())]) if self.ttl else schema

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


def _sequence(before: pa.Table, times: Times, due: Due) -> pa.Table:
    """The rows before those that are due, these, and what is ahead of them, numbered; those that are due from 0 on."""
    rows = [numbered(before, times, -before.num_rows), numbered(due.rows, due.times, 0)]
    if due.ahead.num_rows:
        rows.append(numbered(due.ahead, due.ahead_times, due.rows.num_rows))
    return pa.concat_tables(rows).combine_chunks()


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeFrameState(FrameState):
    """RANGE frames: the rows that have been emitted in the time of the last two frames.

    A row behind the watermark by less than the longest frame is on time if no frame that has been emitted for its key
    reaches it; its own frame begins as much earlier, so rows stay for two frames. One that is further behind is late:
    what its frame held is gone.
    """

    @property
    def name(self) -> str:
        return "frame"

    @property
    def behind(self) -> int:
        """How many ms before its row the longest frame begins."""
        return max(call.frame.behind for call, _ in self.calls.values())

    @property
    def ahead(self) -> int:
        """How many ms behind its row the longest frame ends."""
        return max(call.frame.ahead for call, _ in self.calls.values())

    @property
    def history(self) -> PartitionHistory:
        """The emitted rows."""
        return PartitionHistory(self.schema, self.partition, self.behind + self.ahead)

    def spec(self) -> TraceSpec:
        return self.history.spec()

    @property
    def reach(self) -> int | None:
        return 2 * (self.behind + self.ahead)

    def expire(self, state: State, now: int) -> None:
        """Emitted rows go with the watermark, not with the time to live."""

    def on_time(self, state: State, rows: pa.Table, times: Times, previous: int, sql: Sql) -> npt.NDArray[np.bool_]:
        partitions = self.history.partitions(state[self.name], rows)
        highs = np.full(len(times), previous)
        emitted, of = self.history.read(state[self.name], partitions, times - self.ahead, highs)
        reached = emitted.append_column(ORDER_TIME, pa.array(of + self.ahead))
        free = newer(rows, times, self.partition, reached, sql)
        return free & ~out_of_reach(times, self.behind + self.ahead, previous)

    def evaluate(self, state: State, due: Due, now: int, sql: Sql) -> dict[int, pa.ChunkedArray]:
        trace = state[self.name]
        partitions = self.history.partitions(trace, due.rows)
        known, of = self.history.read(trace, partitions, due.times - self.behind, due.times)
        self.history.add(trace, due.rows, due.times)
        return self.by_number(self.in_windows(_sequence(known, of, due), {}, sql), due.rows.num_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsFrameState(FrameState):
    """ROWS frames, LAG and LEAD: the last rows of each key, at least one."""

    @property
    def name(self) -> str:
        return "recent"

    @property
    def kept(self) -> int:
        """How many rows of each key are kept."""
        return max(1, *(call.rows_behind for call, _ in self.calls.values()))

    def spec(self) -> TraceSpec:
        schema = pa.schema([*self.schema, pa.field(ORDER_TIME, pa.int64())])
        return TraceSpec(
            schema=self.with_timestamp(schema), kind=TableKind.KEYED, timestamp=WRITTEN if self.ttl else None
        )

    def on_time(self, state: State, rows: pa.Table, times: Times, previous: int, sql: Sql) -> npt.NDArray[np.bool_]:
        trace = state[self.name]
        emitted = find(trace, distinct(trace.key_hash(rows, self.partition)))
        return newer(rows, times, self.partition, emitted, sql)

    def evaluate(self, state: State, due: Due, now: int, sql: Sql) -> dict[int, pa.ChunkedArray]:
        trace, count = state[self.name], due.rows.num_rows
        hashes = trace.key_hash(due.rows, self.partition)
        known = find(trace, distinct(hashes))
        found: SortKeys = sort_keys_of(known)
        # Stored in the order of arrival within each hash, which is all that a frame can tell.
        rows = _sequence(known.select(self.schema.names), known.column(ORDER_TIME).to_numpy(), due)
        newest_first = over(columns(self.partition), [f"{ORDER_NUMBER} DESC"])
        back = f"ROW_NUMBER() {newest_first}"
        if due.ahead.num_rows:
            rows = rows.append_column(AHEAD, pa.array(rows.column(ORDER_NUMBER).to_numpy() >= count))
            back = f"COUNT(*) FILTER (WHERE NOT {AHEAD}) {newest_first}"
        answers = self.in_windows(rows, {"back": back}, sql)
        numbers = answers.column(ORDER_NUMBER).to_numpy()
        recent = np.sort(numbers[(answers.column("back").to_numpy() <= self.kept) & (numbers < count)])
        recent = recent + known.num_rows
        sort_keys = np.concatenate([found, hashes])[recent]
        stay = rows.select([*self.schema.names, ORDER_TIME]).take(pa.array(recent))
        if self.ttl:
            timestamps = known.column(WRITTEN).to_numpy() if known.num_rows else np.empty(0, dtype=np.int64)
            timestamps = np.where(
                among(sort_keys, hashes), now, np.concatenate([timestamps, np.full(count, now)])[recent]
            )
            stay = stay.append_column(WRITTEN, pa.array(timestamps))
        trace.replace(stay, sort_keys, found, now)
        return self.by_number(answers, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnboundedFrameState(FrameState):
    """Unbounded frames: the accumulators of each key, and of DISTINCT aggregates the values that have come.

    Whatever a call counts of the rows of a key only, such as the first of each value, is told by a column of its own
    (`running`), so that its accumulators are those of the rows that have it.
    """

    @property
    def name(self) -> str:
        return "totals"

    @property
    def _running(self) -> Mapping[int, RunningCall]:
        found = {}
        for i, (call, type_) in self.calls.items():
            choice = f"chosen{i}"
            if call.counts_once:
                choice = f"new{self._sets.index((call.arguments[0], call.filter))}"
            found[i] = running(call, self.schema, self.partition, type_, f"p{i}_", choice)
        return found

    @property
    def _sets(self) -> list[tuple[int, int | None]]:
        """The arguments and filters of DISTINCT aggregates; column new<j> tells the first rows of set j's values."""
        return list(dict.fromkeys((c.arguments[0], c.filter) for c, _ in self.calls.values() if c.counts_once))

    def _keys(self) -> list[pa.Field]:
        types = [self.schema.field(place).type for place in self.partition]
        return [pa.field(name, type_) for name, type_ in zip(self._key_columns, types, strict=True)]

    @property
    def _key_columns(self) -> list[str]:
        return key_columns(len(self.partition))

    def spec(self) -> TraceSpec:
        columns = [
            pa.field(name, type_)
            for call in self._running.values()
            for placed in call.kept
            for name, type_ in zip(placed.names, placed.accumulator.types, strict=True)
        ]
        schema = self.with_timestamp(pa.schema([*self._keys(), *columns]))
        return TraceSpec(schema=schema, kind=TableKind.KEYED, timestamp=WRITTEN if self.ttl else None)

    def traces(self) -> Mapping[str, TraceSpec]:
        traces = {self.name: self.spec()}
        for j, (value, _) in enumerate(self._sets):
            schema = self.with_timestamp(pa.schema([*self._keys(), pa.field(VALUE, self.schema.field(value).type)]))
            timestamp = WRITTEN if self.ttl else None
            traces[f"seen{j}"] = TraceSpec(schema=schema, kind=TableKind.KEYED, timestamp=timestamp)
        return traces

    def on_time(self, state: State, rows: pa.Table, times: Times, previous: int, sql: Sql) -> npt.NDArray[np.bool_]:
        return np.zeros(rows.num_rows, dtype=np.bool_)

    def evaluate(self, state: State, due: Due, now: int, sql: Sql) -> dict[int, pa.ChunkedArray]:
        trace, count = state[self.name], due.rows.num_rows
        keys = self._key_columns
        rows = _sequence(due.rows.slice(0, 0), due.times[:0], due)
        for j in range(len(self._sets)):
            rows = rows.append_column(f"new{j}", pa.array(self._first_of_values(state, rows, count, j, now, sql)))
        calls = self._running
        choices = {call.choice: call.chooses for call in calls.values() if call.chooses}
        if any(call.reads_kept for call in calls.values()):
            rows = self._beside_kept(trace, rows, sql)
        if choices:
            chosen = all_named(choices.values(), choices)
            rows = sql(select(["*", *chosen], "rows", order_by=[ORDER_NUMBER]), {"rows": rows})
        items = [
            named(text, name)
            for call in calls.values()
            for text, name in zip(call.starts, (n for p in call.kept for n in p.names), strict=True)
        ]
        answered = rows.slice(0, count)
        group = [str(i + 1) for i in range(len(keys))]
        delta = sql(select([*self._named_keys(), *items], "due", group_by=group), {"due": answered})
        pairs = read_keyed(sql, trace, delta, trace.key_hash(delta, range(len(keys))), len(keys))
        after = [text for call in calls.values() for p in call.kept for text in p.merge(PREVIOUS)]
        kept = sql(select([*keys, *after], "pairs"), {"pairs": pairs.rows})
        if self.ttl:
            kept = kept.append_column(WRITTEN, pa.array(np.full(kept.num_rows, now)))
        answers = self._answers(rows, pairs.rows, sql)
        write(trace, pairs, kept, pairs.sort_keys, now)
        return self.by_number(answers, count)

    def _named_keys(self) -> list[str]:
        return all_named(columns(self.partition), self._key_columns)

    def _first_of_values(
        self, state: State, rows: pa.Table, count: int, at: int, now: int, sql: Sql
    ) -> npt.NDArray[np.bool_]:
        """Which `rows` bring a value of set `at` that their key has not had; those of the first `count` are noted."""
        (value, condition), trace = self._sets[at], state[f"seen{at}"]
        keys = self._key_columns
        first_values = select(
            [*self._named_keys(), named(column(value), VALUE), named(f"MIN({ORDER_NUMBER})", "first")],
            "rows",
            where="" if condition is None else column(condition),
            group_by=[*keys, VALUE],
        )
        asked = sql(first_values, {"rows": rows})
        sort_keys = nested(trace.key_hash(asked, range(len(keys))), bucket_hash(asked, range(len(keys) + 1)))
        pairs = read_keyed(sql, trace, asked, sort_keys, len(keys) + 1)
        first, known = pairs.rows.column("first").to_numpy(), pairs.rows.column(FOUND).to_numpy()
        new = np.zeros(rows.num_rows, dtype=np.bool_)
        new[first[~known]] = True
        written = (first < count) & (~known | (self.ttl > 0))
        touched = among(pairs.sort_keys, pairs.sort_keys[written])
        stays = touched & (written | known)
        kept = pairs.rows.select([*keys, VALUE]).filter(pa.array(stays))
        if self.ttl:
            kept = kept.append_column(WRITTEN, pa.array(np.full(kept.num_rows, now)))
        write(trace, restrict_to(pairs, pairs.sort_keys[touched]), kept, pairs.sort_keys[stays], now)
        return new

    def _beside_kept(self, trace: Trace, rows: pa.Table, sql: Sql) -> pa.Table:
        """`rows`, each beside what is kept of its key."""
        keys = self._key_columns
        counted = select([*self._named_keys(), named("COUNT(*)", ROWS)], "rows", group_by=keys)
        asked = sql(counted, {"rows": rows})
        known = read_keyed(sql, trace, asked, trace.key_hash(asked, range(len(keys))), len(keys)).rows
        shown = ["rows.*"]
        for call in self._running.values():
            if call.reads_kept:
                shown += [f"{PREVIOUS}{name}" for placed in call.kept for name in placed.names]
        statement = select(shown, join("rows", "known", self._on()), order_by=[ORDER_NUMBER])
        return sql(statement, {"rows": rows, "known": known})

    def _on(self) -> str:
        return same(columns(self.partition), self._key_columns)

    def _answers(self, rows: pa.Table, known: pa.Table, sql: Sql) -> pa.Table:
        """The answers from what was kept of each key before and what has come up to the end of each row's frame."""
        windows, merged, shown = [ORDER_NUMBER, *columns(self.partition)], [ORDER_NUMBER], [ORDER_NUMBER]
        for i, call in self._running.items():
            names = [name for placed in call.kept for name in placed.names]
            windows += all_named(call.windows, names)
            merged += [text for placed in call.kept for text in placed.merge(PREVIOUS)]
            shown.append(named(call.answer, f"a{i}"))
        known = known.select([name for name in known.column_names if name.startswith((PREVIOUS, "k"))])
        beside = select(merged, join(inner(select(windows, "due")), "known", self._on()))
        statement = select(shown, inner(beside))
        return sql(statement, {"due": rows, "known": known})


def frame_states_of(
    schema: pa.Schema, partition: tuple[int, ...], calls: Sequence[OverCallSpec], types: Sequence[pa.DataType], ttl: int
) -> list[FrameState]:
    """Return the frame states that `calls` need, each with its calls."""
    kinds: dict[type[FrameState], dict[int, tuple[OverCallSpec, pa.DataType]]] = {}
    for i, (call, type_) in enumerate(zip(calls, types, strict=True)):
        kind: type[FrameState] = RangeFrameState
        if call.function in NEIGHBOURS or (call.frame.rows and call.frame.preceding is not None):
            kind = RowsFrameState
        if call.function in NUMBERINGS or (call.function not in NEIGHBOURS and call.frame.preceding is None):
            kind = UnboundedFrameState
        kinds.setdefault(kind, {})[i] = (call, type_)
    return [kind(schema=schema, partition=partition, calls=chosen, ttl=ttl) for kind, chosen in kinds.items()]
