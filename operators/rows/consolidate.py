"""The net change of each row before the sink: changes of one key together, retractions before insertions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.base import KernelDefaults
from operators.changes import net
from operators.columns import as_changes, no_changes
from operators.hashing import bucket_hash
from operators.kernel import Step
from operators.names import WEIGHT
from operators.sql import Sql
from operators.state.operator_state import State
from operators.time import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidate(KernelDefaults):
    """Sum the weights of equal rows. `key` are the positions of the sink's key, () for the whole row.

    A row whose changes cancel is left out, but one that was written again unchanged (weight 0) is kept. An append-only
    input needs no consolidation: leave the operator out.
    """

    output: pa.Schema
    key: tuple[int, ...] = ()

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.output,)

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        (rows,) = inputs
        if rows.num_rows == 0:
            return Step(changes=no_changes(self.output))
        changes = net(sql, rows, self.output.names)
        order = np.lexsort((changes.column(WEIGHT).to_numpy(), bucket_hash(changes, self.key)))
        return Step(changes=as_changes(changes.take(pa.array(order)), self.output))
