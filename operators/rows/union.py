"""UNION ALL: the changes of all inputs, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from operators.base import KernelDefaults
from operators.columns import as_changes
from operators.kernel import Step
from operators.sql import Sql
from operators.time import Clock

if TYPE_CHECKING:
    from operators.state.operator_state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionAll(KernelDefaults):
    """All rows of `ports` inputs, each of which has the columns `output`."""

    ports: int
    output: pa.Schema

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.output,) * self.ports

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        return Step(changes=pa.concat_tables([as_changes(rows, self.output) for rows in inputs]))
