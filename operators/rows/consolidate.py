"""The net change of each row before the sink: changes of one key together, retractions before insertions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators import pieces
from operators.arrays import heads
from operators.base import KernelDefaults
from operators.changes import net
from operators.columns import as_changes, no_changes
from operators.hashing import bucket_hash
from operators.kernel import Step, together
from operators.names import WEIGHT
from operators.pieces import row_bytes, runs
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
        return together(self.steps(state, inputs, clock, sql), no_changes(self.output))

    def steps(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Iterator[Step]:
        (rows,) = inputs
        if rows.num_rows == 0:
            yield Step(changes=no_changes(self.output))
            return
        parts = self._parts(rows)
        del inputs, rows
        for part in parts:
            changes = net(sql, part, self.output.names)
            order = np.lexsort((changes.column(WEIGHT).to_numpy(), bucket_hash(changes, self.key)))
            yield Step(changes=as_changes(changes.take(pa.array(order)), self.output))

    def _parts(self, rows: pa.Table) -> Iterator[pa.Table]:
        """The rows by the hash of their key, in parts of a bounded size: those of one key are in one part."""
        if rows.nbytes <= pieces.STEP:
            yield rows
            return
        hashes = bucket_hash(rows, self.key)
        order = np.argsort(hashes, kind="stable")
        first = heads(hashes[order])
        sizes = np.add.reduceat(row_bytes(rows)[order], first)
        ends = np.append(first, len(order))
        rows = rows.combine_chunks()  # to take rows out of several chunks would put them together each time
        for run in runs(sizes, pieces.STEP):
            yield rows.take(pa.array(order[ends[run.start] : ends[run.stop]]))
