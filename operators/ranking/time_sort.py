"""ORDER BY time: rows come out in the order of their times, once the watermark has reached them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from operators.base import KernelDefaults
from operators.changes import weigh
from operators.columns import as_changes, no_changes, numbered
from operators.kernel import Step, count_late
from operators.lateness import split_late
from operators.names import AT, WEIGHT
from operators.ranking.ranking import OrderBy
from operators.sql import Sql
from operators.sql_text import select
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.table import specs_of
from operators.state.tables.timed import TimedTable
from operators.time import Clock
from operators.windows.event_time import with_times


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSortOperator(KernelDefaults):
    """The rows of the input, all of weight 1, sorted by `order`, whose first column is the time attribute.

    A row that is not newer than the watermark is late: others of its time or later ones have come out. Rows that tie
    stay in the order of arrival. In `processing` time the rows of a batch are sorted by the rest of `order`.
    """

    output: pa.Schema
    order: tuple[OrderBy, ...]
    processing: bool = False

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.output,)

    def traces(self) -> Mapping[str, TraceSpec]:
        return {} if self.processing else specs_of(self._waiting)

    @property
    def _waiting(self) -> TimedTable:
        """The rows ahead of the watermark."""
        return TimedTable(name="rows", schema=self.output)

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        if self.processing:
            return Step(changes=self._sorted(inputs[0].drop_columns([WEIGHT]), sql))
        waiting, time = self._waiting, self.order[0].column
        rows, times, dead = with_times(inputs[0], time, clock.now)
        rows, times, late = split_late(rows, times, clock.previous)
        waiting.add(state, rows, times)
        due = waiting.take(state, clock.watermark)
        return Step(changes=self._sorted(due, sql), late=late, late_count=count_late(late), dead=dead)

    def _sorted(self, rows: pa.Table, sql: Sql) -> pa.Table:
        if rows.num_rows == 0:
            return no_changes(self.output)
        statement = select(self.output.names, "rows", order_by=[*(key.text for key in self.order), AT])
        rows = sql(statement, {"rows": numbered(rows)})
        return as_changes(weigh(rows, 1), self.output)
