"""Aggregates per session and key, emitted once when the watermark closes the session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.aggregates.layout import ROWS
from operators.aggregates.partial import key_names, layout_of
from operators.arrays import in_order
from operators.base import KernelDefaults
from operators.changes import weigh
from operators.columns import as_changes, no_changes
from operators.fingerprint import DUCKDB_TEXT
from operators.kernel import Step
from operators.names import AT, FIRST, LAST, SPOT, old_answers
from operators.sql import Sql
from operators.sql_text import every, inner, of, same, select
from operators.state.operator_state import State, TraceSpec
from operators.time import Clock
from operators.windows.event_time import milliseconds, running_clock, timed
from operators.windows.open_sessions import SessionUpdate, session_traces, update_sessions
from operators.windows.session_partial import SessionPartial
from operators.windows.slices import local
from operators.windows.window_totals import totals


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAggregate(KernelDefaults):
    """Aggregates the output of `partial` by session and key, or (`whole`) the rows that `partial` reads, which may be
    retracted.

    Rows that are only inserted are read whole as well where late ones are to be shown (`late_shown`); what is kept is
    the same.

    A row is late if the session that it makes or joins had closed with the batch before. Sessions come out in the order
    of their ends. `output` has the keys, the aggregates, then window_start, window_end (wall clock of the zone) and
    window_time (end - 1 ms, UTC).
    """

    partial: SessionPartial
    output: pa.Schema
    whole: bool = False
    late_shown: bool = field(default=False, metadata=DUCKDB_TEXT)

    @property
    def _reads_rows(self) -> bool:
        return self.whole or self.late_shown

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.partial.input if self._reads_rows else self.partial.output,)

    def traces(self) -> Mapping[str, TraceSpec]:
        return session_traces(self.partial)

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        partial, rows = self.partial, inputs[0]
        clock = running_clock(state, clock, partial.processing)
        first = partial.advance(state, inputs, clock, sql) if self._reads_rows else Step(changes=rows)
        update = update_sessions(partial, state, first.changes, clock, sql)
        changes = self._answers(update.closing, sql)
        if self._reads_rows:
            late = late_rows(partial, rows, update, sql)
            return Step(
                changes=changes,
                late={0: late} if late.num_rows else {},
                late_count=late.num_rows,
                dead=first.dead,
                unmatched_retractions=update.unmatched,
            )
        count = int(pc.sum(update.late.column(ROWS)).as_py() or 0)
        return Step(changes=changes, late_count=count, unmatched_retractions=update.unmatched)

    def _answers(self, closing: pa.Table, sql: Sql) -> pa.Table:
        if closing.num_rows == 0:
            return no_changes(self.output)
        layout, keys = layout_of(self.partial), key_names(self.partial)
        by = [*keys, FIRST, LAST]
        types = self.output.types[len(keys) : len(keys) + len(layout.results)]
        names = old_answers(len(types))
        groups = inner(totals(layout, by, inner(select(["*"], "closing"))))
        statement = select([*keys, *layout.read("", names, types), FIRST, LAST], groups, where=f"{ROWS} > 0")
        answers = sql(select([*keys, *names, *bounds(self.partial)], inner(statement)), {"closing": closing})
        answers, _ = in_order(answers, milliseconds(answers.column(answers.num_columns - 1)))
        return as_changes(weigh(answers.rename_columns(self.output.names), 1), self.output)


def bounds(partial: SessionPartial) -> list[str]:
    """Return DuckDB text for window_start, window_end and window_time of a session from FIRST to LAST."""
    start, end = f"make_timestamp({FIRST} * 1000)", f"make_timestamp(({LAST} + {partial.gap}) * 1000)"
    time = f"make_timestamp(({LAST} + {partial.gap - 1}) * 1000)"
    return [local(start, partial.zone), local(end, partial.zone), time]


def late_rows(partial: SessionPartial, rows: pa.Table, update: SessionUpdate, sql: Sql) -> pa.Table:
    """Return those of `rows` that are in the late pieces of `update`."""
    if update.late.num_rows == 0:
        return rows.slice(0, 0)
    rows, _ = timed(rows, partial.time)
    keys = key_names(partial)
    columns = [*(rows.column(k) for k in partial.keys), pa.array(milliseconds(rows.column(partial.time)))]
    placed = pa.table([*columns, pa.array(np.arange(rows.num_rows))], names=[*keys, SPOT, AT])
    belongs = f"EXISTS {inner(select(['1'], 'late', where=within_session('rows', 'late', keys)))}"
    late = sql(select([AT], "rows", where=belongs, order_by=[AT]), {"rows": placed, "late": update.late})
    return rows.take(late.column(AT).combine_chunks())


def within_session(rows: str, sessions: str, keys: Sequence[str]) -> str:
    """Return the condition that a row of the relation `rows` is in a session of the relation `sessions`."""
    return every([f"{SPOT} BETWEEN {FIRST} AND {LAST}", *([same(of(rows, keys), of(sessions, keys))] if keys else [])])
