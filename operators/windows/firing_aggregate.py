"""Aggregates per window and key that are answered early, when the window closes, and again for late rows.

A window and its key are the key of a grouping without a window, whose groups are forgotten when the lateness of their
window is over. What a batch changes in the groups is shown at once, or held back by `Firings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.aggregates.group_by import GroupBy, GroupPartial
from operators.aggregates.layout import ROWS
from operators.aggregates.partial import key_names, layout_of, partial_types
from operators.arrays import distinct, in_order
from operators.base import KernelDefaults
from operators.changes import weigh
from operators.columns import as_changes, no_changes, numbered, positional
from operators.kernel import Step
from operators.names import AT, ATTACHED_START, START, WEIGHT, WINDOW_END, WINDOW_START, columns
from operators.sql import Sql
from operators.sql_text import join, named, of, select
from operators.state.operator_state import State, TraceSpec
from operators.time import MIN_TIME, Clock
from operators.windows.closing import closed_at
from operators.windows.event_time import running_clock, window_columns
from operators.windows.firing import Firing, Firings
from operators.windows.shapes import Attached
from operators.windows.slices import Windows, closed_upto, windows_of
from operators.windows.window_partial import WindowPartial


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringAggregateOperator(KernelDefaults):
    """Aggregates the output of `partial`, one of `for_groups`, and answers more than once. `output` has the columns of
    `WindowAggregateOperator`, and rows of it may be retracted.

    A row is late for a window when the watermark had passed its end by the lateness. The watermark of the output is
    behind by the lateness, so that operators after it take the late answers.
    """

    partial: WindowPartial
    output: pa.Schema
    firing: Firing

    def __post_init__(self) -> None:
        if layout_of(self.partial).partial_types() != layout_of(self._grouping.partial).partial_types():
            raise ValueError("the partials are those of slices: take those of for_groups")

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.partial.output,)

    @property
    def _grouping(self) -> GroupBy:
        """The grouping by keys, start and end of the window."""
        partial, places = self.partial, len(self.partial.input)
        bounds = [pa.field(name, pa.int64()) for name in columns((places, places + 1))]
        keys = (*partial.keys, places, places + 1)
        grouped = GroupPartial(
            input=pa.schema([*partial.input, *bounds]),
            keys=keys,
            aggregates=partial.aggregates,
            append=partial.append,
            numbered=partial.numbered,
        )
        key_types = [grouped.input.field(k).type for k in keys]
        results = self.output.types[len(partial.keys) : len(self.output) - 3]
        return GroupBy(
            partial=grouped, output=positional([*key_types, *results]), ends=len(keys) - 1, placing=len(partial.keys)
        )

    @property
    def _firings(self) -> Firings:
        columns, count = list(self._grouping.output), len(self.partial.keys) + 2
        return Firings(pa.schema(columns[:count]), pa.schema(columns[count:]), self.firing, self.partial.zone)

    @property
    def version(self) -> int:
        """That of its grouping."""
        return self._grouping.version

    def traces(self) -> Mapping[str, TraceSpec]:
        held = {} if self.firing.at_once else self._firings.traces()
        return {**self._grouping.traces(), **held}

    def output_watermark(self, watermark: int) -> int:
        """Hold the watermark back by the lateness: until it is over, late answers come."""
        return watermark - self.firing.lateness if abs(watermark) < -MIN_TIME else watermark

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        partial = self.partial
        clock = running_clock(state, clock, partial.processing)
        rows = inputs[0].drop_columns([WEIGHT]).rename_columns(list(partial_types(partial)))
        rows, late_count = self._by_window(rows, clock.previous, sql)
        step = self._grouping.advance(state, [rows], clock, sql)
        changes = step.changes
        if not self.firing.at_once:
            changes = self._firings.fire(state, changes, clock, sql)
        if clock.watermark > MIN_TIME:
            self._forget(state, closed_upto(clock.watermark - self.firing.lateness, partial.zone))
        return Step(
            changes=self._answers(changes),
            late_count=late_count,
            unmatched_retractions=step.unmatched_retractions,
        )

    def _forget(self, state: State, upto: int) -> None:
        """Forget the windows that end (wall clock) at `upto` or before."""
        self._grouping.forget(state, upto)
        if not self.firing.at_once:
            self._firings.forget(state, upto)

    def _by_window(self, partials: pa.Table, previous: int, sql: Sql) -> tuple[pa.Table, int]:
        """The partials of each window that takes rows yet, and how many rows were in no such window."""
        partial, types = self.partial, partial_types(self.partial)
        columns = [*key_names(partial), WINDOW_START, WINDOW_END, *layout_of(partial).partial_types()]
        if partials.num_rows == 0:
            nothing = [partials.column(n) if n in types else pa.array([], pa.int64()) for n in columns]
            return weigh(pa.table(nothing, names=columns), 1), 0
        late, attached = 0, isinstance(partial.window, Attached)
        slices = distinct(partials.column(START).to_numpy())
        windows = Windows(slices, slices, slices)
        if not isinstance(partial.window, Attached):
            windows = windows_of(partial.window, slices)
        if previous > MIN_TIME and not partial.processing:
            open_ = ~closed_at(previous - self.firing.lateness, windows.ends, partial.zone)
            windows = Windows(windows.slices[open_], windows.starts[open_], windows.ends[open_])
            gone = ~np.isin(partials.column(START).to_numpy(), windows.slices)
            late = int(pc.sum(partials.filter(pa.array(gone)).column(ROWS)).as_py() or 0)
        taking = pa.table([windows.slices, windows.starts, windows.ends], names=[START, WINDOW_START, WINDOW_END])
        start, end = of("windows", [WINDOW_START, WINDOW_END])
        texts = {
            WINDOW_START: named(f"partials.{ATTACHED_START}", WINDOW_START) if attached else start,
            WINDOW_END: end,
        }
        items = [texts.get(name, f"partials.{name}") for name in columns]
        # The order of arrival is lost in a join.
        order = [of("partials", [AT])[0]] if partial.in_order else []
        partials = numbered(partials) if order else partials
        statement = select(items, join("partials", "windows", f"partials.{START} = windows.{START}"), order_by=order)
        return weigh(sql(statement, {"partials": partials, "windows": taking}), 1), late

    def _answers(self, changes: pa.Table) -> pa.Table:
        """Changes with the columns of the window behind the aggregates, in the order of the windows' ends."""
        if changes.num_rows == 0:
            return no_changes(self.output)
        count = len(self.partial.keys)
        changes, _ = in_order(changes, changes.column(count + 1).to_numpy())
        starts, ends = (changes.column(count + i).to_numpy() for i in range(2))
        bounds = window_columns(starts, ends, self.partial.zone)
        *values, weights = changes.columns
        columns = [*values[:count], *values[count + 2 :], *bounds, weights]
        return as_changes(pa.table(columns, names=[*self.output.names, WEIGHT]), self.output)
