"""A window table function that is not aggregated at once: each row once a window that it is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from operators.base import KernelDefaults
from operators.columns import as_changes, no_changes
from operators.kernel import Step
from operators.names import START, WEIGHT, column, columns
from operators.sql import Sql
from operators.sql_text import named, select
from operators.state.operator_state import State
from operators.time import Clock
from operators.windows.event_time import timed, window_columns
from operators.windows.shapes import Cumulate, Hop
from operators.windows.slices import local, rows_in_windows, slice_text


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRowsOperator(KernelDefaults):
    """Appends its windows to each row, one row a window: the columns of `input`, then window_start, window_end (wall
    clock of `zone`) and window_time (end - 1 ms, UTC).

    `time` is the position of the time attribute, a TIMESTAMP; `zone` is None where it is wall-clock time already, else
    the session's zone, to whose wall clock the windows are aligned. A row without time is in no window: it is dead.
    """

    input: pa.Schema
    time: int
    window: Hop | Cumulate
    zone: str | None = None

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.input,)

    @property
    def output(self) -> pa.Schema:
        places = len(self.input)
        added = [pa.field(name, pa.timestamp("us")) for name in columns(range(places, places + 3))]
        return pa.schema([*self.input, *added])

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        rows, dead = timed(inputs[0], self.time)
        if rows.num_rows == 0:
            return Step(changes=no_changes(self.output), dead=dead)
        start, inside = slice_text(self.window, local(column(self.time), self.zone))
        items = [named(start, START), named(inside or "true", "inside")]
        slices = sql(select(items, "changes"), {"changes": rows})
        if inside is not None:
            rows = rows.filter(slices.column("inside"))
            slices = slices.filter(slices.column("inside"))
        starts = slices.column(START).to_numpy()
        found = rows_in_windows(self.window, starts)
        table = rows.take(pa.array(found.rows))
        bounds = window_columns(found.starts, found.ends, self.zone)
        for name, values in zip(self.output.names[len(self.input) :], bounds, strict=True):
            table = table.append_column(name, values)
        return Step(changes=as_changes(table.select([*self.output.names, WEIGHT]), self.output), dead=dead)
