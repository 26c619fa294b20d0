"""Windows that overlap, aggregated in the order in which rows arrived: each row that comes has a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.base import KernelDefaults
from operators.kernel import Step
from operators.names import SEQUENCE, WEIGHT
from operators.sql import Sql
from operators.state.operator_state import State, TraceSpec
from operators.time import Clock
from operators.windows.firing_aggregate import FiringAggregateOperator
from operators.windows.window_aggregate import WindowAggregateOperator
from operators.windows.window_partial import WindowPartial


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedWindows(KernelDefaults):
    """Number the rows, whose weights are all 1, and aggregate them as `of` does, whose partial is `numbered`.

    The numbers are those of arrival in the shard, so this stands behind the exchange.
    """

    of: WindowAggregateOperator | FiringAggregateOperator

    @property
    def partial(self) -> WindowPartial:
        """The half of the aggregate that stands before its state."""
        return self.of.partial

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.partial.input,)

    @property
    def output(self) -> pa.Schema:
        return self.of.output

    @property
    def version(self) -> int:
        """That of the aggregate."""
        return self.of.version

    def traces(self) -> Mapping[str, TraceSpec]:
        return self.of.traces()

    def output_watermark(self, watermark: int) -> int:
        """Hold the watermark back as the aggregate does."""
        return self.of.output_watermark(watermark)

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        rows = inputs[0]
        first = state.notes.get("rows", 0)
        state.notes["rows"] = first + rows.num_rows
        numbers = pa.array(np.arange(first, first + rows.num_rows))
        numbered = rows.drop_columns([WEIGHT]).append_column(SEQUENCE, numbers)
        partials = self.partial.advance(state, [numbered.append_column(WEIGHT, rows.column(WEIGHT))], clock, sql)
        answers = self.of.advance(state, [partials.changes], clock, sql)
        return Step(
            changes=answers.changes,
            late=partials.late,
            late_count=partials.late_count + answers.late_count,
            dead=partials.dead,
            unmatched_retractions=answers.unmatched_retractions,
        )
