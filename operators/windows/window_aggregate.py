"""Aggregates per window and key, emitted once when the watermark closes the window.

State is the log of partials by slice, only ever appended to; a key is looked at when a window that it has rows in
closes, and never before. Slices are forgotten when the last window that they are in has closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.aggregates.layout import ROWS
from operators.aggregates.partial import key_names, layout_of, partial_types
from operators.arrays import distinct, in_order
from operators.base import KernelDefaults
from operators.changes import weigh
from operators.columns import as_changes, no_changes, numbered
from operators.kernel import Step
from operators.names import (
    AT,
    ATTACHED_START,
    SORT_KEY,
    START,
    TAG,
    TIMES,
    WEIGHT,
    WINDOW_END,
    WINDOW_START,
    old_answers,
    value_of,
)
from operators.sql import Sql
from operators.sql_text import inner, join, named, of, select, total
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.table import specs_of
from operators.state.tables.timed import TimedTable
from operators.time import MIN_TIME, Clock
from operators.windows.closing import closed_at, split_closed
from operators.windows.event_time import running_clock, window_columns
from operators.windows.shapes import Attached
from operators.windows.slices import Windows, horizon, last_ends, reach, windows_of
from operators.windows.window_partial import WindowPartial
from operators.windows.window_totals import totals


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAggregateOperator(KernelDefaults):
    """Aggregates the output of `partial` by window and key, as windows close, in the order of their ends.

    `output` has the keys, the aggregates, then window_start, window_end and window_time as `WindowRowsOperator` defines
    them.
    """

    partial: WindowPartial
    output: pa.Schema

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.partial.output,)

    def traces(self) -> Mapping[str, TraceSpec]:
        return specs_of(self._slices)

    @property
    def _slices(self) -> TimedTable:
        """The partials, by the starts of their slices."""
        schema = pa.schema(list(partial_types(self.partial).items()))
        return TimedTable(name="slices", schema=schema, key=tuple(key_names(self.partial)))

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        partial, slices = self.partial, self._slices
        clock = running_clock(state, clock, partial.processing)
        rows = inputs[0].drop_columns([WEIGHT]).rename_columns(list(partial_types(partial)))
        rows, late_count = self.split_late(rows, clock.previous)
        if rows.num_rows:
            slices.add(state, rows, rows.column(START).to_numpy())
        slices.combine(state, lambda merged: _combined(partial, merged, sql))
        after, upto = reach(partial.window, clock.previous, clock.watermark, partial.zone)
        changes, unmatched = [no_changes(self.output)], 0
        if partial.processing and rows.num_rows:
            # The clock was set back: the window has answered already, and answers once more for these rows.
            again = Clock(now=clock.now, watermark=clock.previous, previous=MIN_TIME)
            changes.append(self._closing(rows, again, sql)[0])
        if clock.watermark > clock.previous:
            due = slices.between(state, after, upto)
            if due.num_rows:
                closing, unmatched = self._closing(due, clock, sql)
                changes.append(closing)
            slices.expire_upto(state, horizon(partial.window, clock.watermark, partial.zone))
        return Step(changes=pa.concat_tables(changes), late_count=late_count, unmatched_retractions=unmatched)

    def split_late(self, rows: pa.Table, previous: int) -> tuple[pa.Table, int]:
        """Keep the partials of slices that are in a window still open; count the rows that the late ones stand for."""
        if previous == MIN_TIME or self.partial.processing or rows.num_rows == 0:
            return rows, 0
        window = self.partial.window
        ends = rows.column(START).to_numpy()
        ends = ends if isinstance(window, Attached) else last_ends(window, ends)
        rows, late = split_closed(rows, ends, previous, self.partial.zone)
        return rows, int(pc.sum(late.column(ROWS)).as_py() or 0)

    def _windows(self, due: pa.Table, clock: Clock) -> Windows:
        """The windows that close now, by slice."""
        window, slices = self.partial.window, due.column(START).to_numpy()
        starts = distinct(slices)
        windows = Windows(starts, starts, starts) if isinstance(window, Attached) else windows_of(window, starts)
        zone = self.partial.zone
        closing = closed_at(clock.watermark, windows.ends, zone)
        if clock.previous > MIN_TIME:
            closing &= ~closed_at(clock.previous, windows.ends, zone)
        return Windows(windows.slices[closing], windows.starts[closing], windows.ends[closing])

    def _closing(self, due: pa.Table, clock: Clock, sql: Sql) -> tuple[pa.Table, int]:
        """The windows that close, and how many rows were retracted from them that they never had."""
        windows = self._windows(due, clock)
        if len(windows.slices) == 0:
            return no_changes(self.output), 0
        layout, keys = layout_of(self.partial), key_names(self.partial)
        start = ATTACHED_START if isinstance(self.partial.window, Attached) else f"windows.{WINDOW_START}"
        closing = pa.table([windows.slices, windows.starts, windows.ends], names=[START, WINDOW_START, WINDOW_END])
        by = [*keys, WINDOW_START, WINDOW_END]
        types = self.output.types[len(keys) : len(keys) + len(layout.results)]
        items = [*keys, *layout.read("", old_answers(len(types)), types), WINDOW_START, WINDOW_END, ROWS]
        in_windows = join("due", "windows", f"due.{START} = windows.{START}")
        # The order of arrival is lost in a join.
        order = of("due", [AT]) if self.partial.in_order else []
        due = numbered(due) if order else due
        rows = inner(select(["due.*", named(start, WINDOW_START), WINDOW_END], in_windows, order_by=order))
        answers = sql(select(items, inner(totals(layout, by, rows))), {"due": due, "windows": closing})
        counts = answers.column(ROWS).to_numpy()
        answers = answers.drop_columns([ROWS])
        if not self.partial.append:
            answers = answers.filter(pa.array(counts > 0))
        answers, _ = in_order(answers, answers.column(WINDOW_END).to_numpy())
        bounds = [answers.column(name).to_numpy() for name in (WINDOW_START, WINDOW_END)]
        columns = [
            *answers.drop_columns([WINDOW_START, WINDOW_END]).columns,
            *window_columns(bounds[0], bounds[1], self.partial.zone),
        ]
        changes = as_changes(weigh(pa.table(columns, names=self.output.names), 1), self.output)
        return changes, -int(np.minimum(counts, 0).sum())


def _combined(partial: WindowPartial, rows: pa.Table, sql: Sql) -> pa.Table:
    """Partials of equal slice and key put together, for a merge of blocks."""
    layout = layout_of(partial)
    by = [*key_names(partial), *partial.times()]
    items = [text for placed in layout.accumulators for text in placed.combine()]
    if layout.sets:
        by = [*by, TAG, *(value_of(i) for i in range(len(layout.sets)))]
        items = [*items, total(TIMES)]
    statement = select([*by, *items, SORT_KEY], "rows", group_by=[*by, SORT_KEY], order_by=[SORT_KEY])
    return sql(statement, {"rows": rows}).select(rows.column_names).cast(rows.schema)
