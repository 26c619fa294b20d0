"""The state of unbounded frames: the accumulators of each key, and of DISTINCT aggregates the values that have come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Times
from operators.names import FOUND, ORDER_NUMBER, PREVIOUS, ROWS, VALUE, column, columns, key_columns
from operators.over.frame_state import FrameState, in_sequence
from operators.over.running import RunningCall, running
from operators.over.waiting import Due
from operators.sql import Sql
from operators.sql_text import all_named, inner, join, named, same, select
from operators.state.operator_state import State
from operators.state.tables.keyed import KeyedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class UnboundedFrameState(FrameState):
    """Unbounded frames: the accumulators of each key, and of DISTINCT aggregates the values that have come.

    If a call counts only some rows of a key, such as the first of each value, a separate column (`running`) marks them,
    and its accumulators are those of the marked rows.
    """

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
        """The arguments and filters of DISTINCT aggregates; column new<j> marks the first rows of set j's values."""
        return list(dict.fromkeys((c.arguments[0], c.filter) for c, _ in self.calls.values() if c.counts_once))

    def _keys(self) -> list[pa.Field]:
        types = [self.schema.field(place).type for place in self.partition]
        return [pa.field(name, type_) for name, type_ in zip(self._key_columns, types, strict=True)]

    @property
    def _key_columns(self) -> list[str]:
        return key_columns(len(self.partition))

    @property
    def _totals(self) -> KeyedTable:
        """The accumulators of each key."""
        columns = [
            pa.field(name, type_)
            for call in self._running.values()
            for placed in call.kept
            for name, type_ in zip(placed.names, placed.accumulator.types, strict=True)
        ]
        schema = pa.schema([*self._keys(), *columns])
        return KeyedTable(name="totals", schema=schema, keys=len(self.partition), ttl=self.ttl)

    def _seen(self, at: int) -> KeyedTable:
        """The values of set `at` that each key has had."""
        value, _ = self._sets[at]
        keys = len(self.partition)
        return KeyedTable(
            name=f"seen{at}",
            schema=pa.schema([*self._keys(), pa.field(VALUE, self.schema.field(value).type)]),
            keys=keys + 1,
            group=tuple(range(keys)),
            ttl=self.ttl,
        )

    def tables(self) -> tuple[KeyedTable, ...]:
        return (self._totals, *map(self._seen, range(len(self._sets))))

    def expire(self, state: State, now: int) -> None:
        for table in self.tables():
            table.expire(state, now)

    def forget(self, state: State, watermark: int) -> None:
        """Do nothing: keys expire by the time to live alone."""

    def on_time(self, state: State, rows: pa.Table, times: Times, previous: int, sql: Sql) -> Mask:
        return np.zeros(rows.num_rows, dtype=np.bool_)

    def evaluate(self, state: State, due: Due, now: int, sql: Sql) -> dict[int, pa.ChunkedArray]:
        totals, count = self._totals, due.rows.num_rows
        keys = self._key_columns
        rows = in_sequence(due.rows.slice(0, 0), due.times[:0], due)
        for j in range(len(self._sets)):
            rows = rows.append_column(f"new{j}", pa.array(self._first_of_values(state, rows, count, j, now, sql)))
        calls = self._running
        choices = {call.choice: call.chooses for call in calls.values() if call.chooses}
        if any(call.reads_kept for call in calls.values()):
            rows = self._beside_kept(state, rows, sql)
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
        pairs = totals.read(state, delta, sql)
        after = [text for call in calls.values() for p in call.kept for text in p.merge(PREVIOUS)]
        kept = sql(select([*keys, *after], "pairs"), {"pairs": pairs.rows})
        answers = self._answers(rows, pairs.rows, sql)
        totals.write(state, pairs, kept, now)
        return self.by_number(answers, count)

    def _named_keys(self) -> list[str]:
        return all_named(columns(self.partition), self._key_columns)

    def _first_of_values(self, state: State, rows: pa.Table, count: int, at: int, now: int, sql: Sql) -> Mask:
        """Which `rows` bring a value of set `at` that their key has not had; those of the first `count` are noted."""
        (value, condition), seen = self._sets[at], self._seen(at)
        keys = self._key_columns
        first_values = select(
            [*self._named_keys(), named(column(value), VALUE), named(f"MIN({ORDER_NUMBER})", "first")],
            "rows",
            where="" if condition is None else column(condition),
            group_by=[*keys, VALUE],
        )
        asked = sql(first_values, {"rows": rows})
        pairs = seen.read(state, asked, sql)
        first, known = pairs.rows.column("first").to_numpy(), pairs.rows.column(FOUND).to_numpy()
        new = np.zeros(rows.num_rows, dtype=np.bool_)
        new[first[~known]] = True
        came = first < count
        seen.write(state, pairs, pairs.rows, now, stays=came | known, changed=came & ~known, renewed=came)
        return new

    def _beside_kept(self, state: State, rows: pa.Table, sql: Sql) -> pa.Table:
        """`rows`, each beside the accumulators of its key."""
        keys = self._key_columns
        counted = select([*self._named_keys(), named("COUNT(*)", ROWS)], "rows", group_by=keys)
        asked = sql(counted, {"rows": rows})
        known = self._totals.read(state, asked, sql).rows
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
