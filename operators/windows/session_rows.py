"""The table function SESSION that is not aggregated at once: each row with its session, once that closes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.aggregates.partial import key_names
from operators.base import KernelDefaults
from operators.columns import as_changes, no_changes
from operators.hashing import Hashes
from operators.kernel import Step
from operators.names import AT, FIRST, LAST, SORT_KEY, SPOT, WEIGHT, columns
from operators.sql import Sql
from operators.sql_text import inner, join, select, total
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.grouped import GroupedTable, numbers_of, places_of
from operators.state.tables.table import specs_of
from operators.time import Clock
from operators.windows.event_time import milliseconds, running_clock, timed
from operators.windows.open_sessions import SessionUpdate, session_traces, update_sessions
from operators.windows.session_aggregate import bounds, late_rows, within_session
from operators.windows.session_partial import SessionPartial
from operators.windows.sessions import Extents


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRows(KernelDefaults):
    """Appends its session to each row that `partial` reads, which has no aggregates; its keys are those of PARTITION
    BY.

    The columns of `output` are those of the input, then window_start, window_end and window_time as `SessionAggregate`
    has them. Rows that were retracted before their session closed do not come out, so the output only gains rows.
    Sessions come out in the order of their ends; the rows of a session as they came, where rows are only added.
    """

    partial: SessionPartial

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.partial.input,)

    @property
    def output(self) -> pa.Schema:
        places = len(self.partial.input)
        bounds_ = [pa.field(name, pa.timestamp("us")) for name in columns(range(places, places + 3))]
        return pa.schema([*self.partial.input, *bounds_])

    def traces(self) -> Mapping[str, TraceSpec]:
        return {**session_traces(self.partial), **specs_of(self._rows)}

    @property
    def _rows(self) -> GroupedTable:
        """The rows of open sessions, by key; where rows are retracted, each once, with its weight."""
        schema = pa.schema([*self.partial.input, pa.field(SPOT, pa.int64()), pa.field(WEIGHT, pa.int64())])
        return GroupedTable(name="rows", schema=schema, group=self.partial.keys, members=len(self.partial.input))

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        partial, rows = self.partial, inputs[0]
        clock = running_clock(state, clock, partial.processing)
        first = partial.advance(state, inputs, clock, sql)
        update = update_sessions(partial, state, first.changes, clock, sql)
        late = late_rows(partial, rows, update, sql)
        self._keep(state, timed(rows, partial.time)[0], update, sql)
        changes = self._released(state, update, sql)
        return Step(
            changes=changes,
            late={0: late} if late.num_rows else {},
            late_count=late.num_rows,
            dead=first.dead,
            unmatched_retractions=update.unmatched,
        )

    def _keep(self, state: State, rows: pa.Table, update: SessionUpdate, sql: Sql) -> None:
        """Add the rows that are not late."""
        partial, table = self.partial, self._rows
        if update.late.num_rows:
            rows = rows.filter(pa.array(_sessions_of(partial, rows, update.late, sql).firsts == _NONE))
        if rows.num_rows == 0:
            return
        rows = rows.append_column(SPOT, pa.array(milliseconds(rows.column(partial.time))))
        if partial.append:
            count = state.notes.get("rows", 0)
            state.notes["rows"] = count + rows.num_rows
            table.write(state, None, table.numbered(state, rows, count))
            return
        known = table.read_members(state, rows)
        table.write(state, known, self._put(state, known, table.placed(state, rows), sql))

    def _put(self, state: State, known: pa.Table, rows: pa.Table, sql: Sql) -> pa.Table:
        """Return what is left of the rows that are `known`, once `rows` came and went."""
        together = pa.concat_tables([known, rows.select(known.column_names)])
        by = [*self.partial.input.names, SPOT, SORT_KEY]
        statement = select([*by, total(WEIGHT)], "together", group_by=by, having=f"SUM({WEIGHT}) > 0")
        return sql(statement, {"together": together})

    def _in_order(self, kept: pa.Table) -> tuple[pa.Table, Hashes]:
        """Return rows that leave the state with WEIGHT, and what orders the rows of a session."""
        return kept, numbers_of(kept)

    def _released(self, state: State, update: SessionUpdate, sql: Sql) -> pa.Table:
        """The rows of the sessions that close; they leave the state."""
        partial, table = self.partial, self._rows
        if update.closing.num_rows == 0:
            return no_changes(self.output)
        kept = table.read(state, places_of(update.closing))
        found = _sessions_of(partial, kept, update.closing, sql)
        leaves = found.firsts != _NONE
        table.write(state, kept, kept, stays=~leaves, changed=leaves)
        spanned = kept.append_column(FIRST, pa.array(found.firsts)).append_column(LAST, pa.array(found.lasts))
        out, numbers = self._in_order(spanned.filter(pa.array(leaves)))
        out = out.take(pa.array(np.lexsort((numbers, out.column(LAST).to_numpy()))))
        added = sql(select(bounds(partial), "spans"), {"spans": out.select([FIRST, LAST])})
        shown = [*out.select(partial.input.names).columns, *added.columns, out.column(WEIGHT)]
        return as_changes(pa.table(shown, names=[*self.output.names, WEIGHT]), self.output)


_NONE = np.iinfo(np.int64).min
"""The first time of a row that is in none of the sessions asked for."""


def _sessions_of(partial: SessionPartial, rows: pa.Table, pieces: pa.Table, sql: Sql) -> Extents:
    """The session of each row among those of `pieces`; `_NONE` for a row in none of them."""
    keys = key_names(partial)
    times = milliseconds(rows.column(partial.time))
    names = [*keys, SPOT, AT]
    placed = pa.table([*(rows.column(k) for k in partial.keys), times, np.arange(rows.num_rows)], names=names)
    sessions = select([*keys, FIRST, LAST], "pieces", group_by=[*keys, FIRST, LAST])
    both = join("rows", inner(sessions, "sessions"), within_session("rows", "sessions", keys))
    found = sql(select([AT, FIRST, LAST], both), {"rows": placed, "pieces": pieces})
    at = found.column(AT).to_numpy()
    firsts, lasts = (np.full(rows.num_rows, _NONE, dtype=np.int64) for _ in range(2))
    firsts[at] = found.column(FIRST).to_numpy()
    lasts[at] = found.column(LAST).to_numpy()
    return Extents(firsts, lasts)
