"""The last row of each key of an upsert stream, as a relation whose changes add up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.base import KernelDefaults
from operators.changes import difference
from operators.columns import no_changes, numbered
from operators.kernel import Step
from operators.names import AT, FOUND, PREVIOUS, WEIGHT, columns
from operators.sql import Sql
from operators.sql_text import differ, named, select
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.keyed import KeyedTable
from operators.state.tables.table import specs_of
from operators.time import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalizeOperator(KernelDefaults):
    """A row of weight 0 or more replaces the row of its key; one of weight -1 deletes it, whatever else it holds.

    Rows count in the order of the block. The net change of each key is emitted. A key that has not been written for
    `ttl` ms of processing time is forgotten (0 = never).
    """

    output: pa.Schema
    key: tuple[int, ...]
    ttl: int = 0

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.output,)

    def traces(self) -> Mapping[str, TraceSpec]:
        return specs_of(self._kept())

    def _kept(self) -> KeyedTable:
        """The row of each key."""
        fields = [self.output.field(name) for name in self._columns()]
        return KeyedTable(name="rows", schema=pa.schema(fields), keys=len(self.key), ttl=self.ttl)

    def _columns(self) -> list[str]:
        """The names of the columns, those of the key first."""
        rest = [i for i in range(len(self.output)) if i not in self.key]
        return columns([*self.key, *rest])

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        (rows,) = inputs
        kept = self._kept()
        kept.expire(state, clock.now)
        if rows.num_rows == 0:
            return Step(changes=no_changes(self.output))
        names = self._columns()
        latest = self._latest(rows, sql).select([*names, WEIGHT])
        pairs = kept.read(state, latest, sql)
        rest = names[len(self.key) :]
        differs = named(differ(rest, [PREVIOUS + name for name in rest]), "differs")
        was = pairs.rows.column(FOUND).to_numpy()
        is_ = pairs.rows.column(WEIGHT).to_numpy() >= 0
        changed = sql(select([differs], "pairs"), {"pairs": pairs.rows}).column("differs").to_numpy()
        kept.write(state, pairs, pairs.rows, clock.now, stays=is_, changed=~is_ | ~was | changed)
        new = columns(range(len(self.output)))
        old = [PREVIOUS + name for name in new]
        return Step(changes=difference(pairs.rows, old, new, was, is_, changed, self.output, refresh=self.ttl > 0))

    def _latest(self, rows: pa.Table, sql: Sql) -> pa.Table:
        """The last row of each key, in the order of arrival."""
        key = columns(self.key)
        keys = numbered(rows.select(key))
        last = sql(select([named(f"MAX({AT})", "at")], "keys", group_by=key), {"keys": keys}).column("at").to_numpy()
        return rows.take(pa.array(np.sort(last)))
