"""An input with retractions as an insert-only one.

Changes wait until the watermark reaches their time; then each row is emitted as many times as it still exists. A row
that is retracted before that is as if it had never come; a retraction that comes later is late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.base import KernelDefaults
from operators.changes import weigh
from operators.columns import as_changes, weighted
from operators.kernel import Step
from operators.lateness import has_passed
from operators.names import PLACE, WEIGHT, column, columns
from operators.sql import Sql
from operators.sql_text import select, total
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.table import specs_of
from operators.state.tables.timed import TimedTable
from operators.time import Clock
from operators.windows.event_time import milliseconds, running_clock, timed


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleOperator(KernelDefaults):
    """The rows of an updating input of which none is retracted again.

    `time` is the position of the time attribute, `partition` are columns that rows are spread by. A row that comes
    behind the watermark is handed on at once, for who reads it to say whether it is late. In `processing` time the
    times are those of windows, which the clock reaches.
    """

    output: pa.Schema
    partition: tuple[int, ...]
    time: int
    processing: bool = False

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.output,)

    def traces(self) -> Mapping[str, TraceSpec]:
        return specs_of(self._waiting)

    @property
    def _waiting(self) -> TimedTable:
        """The changes ahead of the watermark."""
        return TimedTable(name="changes", schema=weighted(self.output), key=tuple(columns(self.partition)))

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        clock = running_clock(state, clock, self.processing)
        changes, dead = timed(inputs[0], self.time)
        times = milliseconds(changes.column(self.time))
        behind, reached = has_passed(times, clock.previous), has_passed(times, clock.watermark)
        self._waiting.add(state, changes.filter(pa.array(~reached)), times[~reached])
        due = [self._waiting.take(state, clock.watermark), changes.filter(pa.array(reached & ~behind))]
        names = weighted(self.output).names
        there, missing = self._net(pa.concat_tables([each.select(names) for each in due]), sql)
        late, retracted = self._net(changes.filter(pa.array(behind)), sql)
        return Step(
            changes=pa.concat_tables([late, there]),
            late={0: retracted} if retracted.num_rows else {},
            late_count=_rows(retracted),
            unmatched_retractions=_rows(missing),
            dead=dead,
        )

    def _net(self, changes: pa.Table, sql: Sql) -> tuple[pa.Table, pa.Table]:
        """The rows that there are more of, each as often, and those that there are less of; by time, then arrival."""
        if changes.num_rows == 0:
            nothing = as_changes(changes, self.output)
            return nothing, nothing
        numbers = pa.array(np.arange(changes.num_rows))
        net = sql(
            select(
                [*self.output.names, total(WEIGHT)],
                "changes",
                group_by=self.output.names,
                having=f"SUM({WEIGHT}) <> 0",
                order_by=[column(self.time), f"MIN({PLACE})"],
            ),
            {"changes": changes.append_column(PLACE, numbers)},
        )
        weights = net.column(WEIGHT).to_numpy()
        more = np.repeat(np.arange(net.num_rows), np.maximum(weights, 0))
        there = weigh(net.drop_columns([WEIGHT]).take(pa.array(more)), 1)
        return as_changes(there, self.output), as_changes(net.filter(pa.array(weights < 0)), self.output)


def _rows(retractions: pa.Table) -> int:
    """How many rows the retractions take back."""
    return -int(retractions.column(WEIGHT).to_numpy().sum())
