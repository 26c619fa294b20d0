"""The defaults of joins: two inputs, side by side in the output, answered in steps of a bounded size."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from operators.base import KernelDefaults
from operators.columns import no_changes, positional
from operators.joins.kinds import JoinKind
from operators.joins.shown import joined_types
from operators.kernel import Kernel, Step, together
from operators.sql import Sql
from operators.state.operator_state import State
from operators.time import Clock


class JoinDefaults(KernelDefaults):
    """The defaults of a join of `left` and `right`, which gives its answers as `steps`."""

    __slots__ = ()

    left: pa.Schema
    right: pa.Schema
    kind: JoinKind

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        """Left, then right."""
        return (self.left, self.right)

    @property
    def output(self) -> pa.Schema:
        """The columns that a join of this kind shows."""
        return positional(joined_types(self.kind, self.left, self.right))

    def advance(self: Kernel, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        """Return the steps of a batch as one."""
        return together(self.steps(state, inputs, clock, sql), no_changes(self.output))
