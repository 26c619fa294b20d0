"""LIMIT without ORDER BY: the first rows that arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from operators.base import KernelDefaults
from operators.columns import as_changes
from operators.kernel import Step
from operators.sql import Sql
from operators.state.operator_state import State
from operators.time import Clock

ARRIVED = "arrived"
"""The note that counts the rows that have come, up to the last that is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOperator(KernelDefaults):
    """The rows numbered `first` to `last` as they arrive, from 1; all rows of the input have weight 1."""

    output: pa.Schema
    first: int
    last: int

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.output,)

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        (rows,) = inputs
        before = state.notes.get(ARRIVED, 0)
        state.notes[ARRIVED] = min(before + rows.num_rows, self.last)
        start = max(self.first - 1 - before, 0)
        wanted = rows.slice(min(start, rows.num_rows), max(self.last - before - start, 0))
        return Step(changes=as_changes(wanted, self.output))
