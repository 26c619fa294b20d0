"""Keep all rows by the sink's key and emit the one written last, as Flink's upsert materializer does.

The plan puts it before a sink whose key it cannot prove to be unique. Two rows may have the same key for a while, for
example when two holders swap their seats in two batches. When the emitted row is retracted, the previous one is
emitted again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.base import KernelDefaults
from operators.columns import as_changes, no_changes
from operators.hashing import bucket_hash
from operators.kernel import Step
from operators.names import COUNT, SINCE, WEIGHT, columns
from operators.sql import Sql
from operators.sql_text import comma, over, total
from operators.state.operator_state import State, TraceSpec
from operators.state.tables.grouped import GroupedTable
from operators.state.tables.table import specs_of
from operators.time import Clock

BATCH = "batch"
"""The note that counts batches, so that what was written later is known even where the clock stood still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialize(KernelDefaults):
    """One row a `key`: of those that are there, the one whose count grew in the latest batch; of several, the
    greatest. Rows of one key come out together, what leaves before what comes."""

    output: pa.Schema
    key: tuple[int, ...]

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.output,)

    def traces(self) -> Mapping[str, TraceSpec]:
        return specs_of(self._counted)

    @property
    def _counted(self) -> GroupedTable:
        """The rows of each key with their counts."""
        schema = pa.schema([*self.output, pa.field(COUNT, pa.int64()), pa.field(SINCE, pa.int64())])
        return GroupedTable(name="rows", schema=schema, group=self.key, members=len(self.output))

    def advance(self, state: State, inputs: Sequence[pa.Table], clock: Clock, sql: Sql) -> Step:
        (changes,) = inputs
        if changes.num_rows == 0:
            return Step(changes=no_changes(self.output))
        counted = self._counted
        kept = counted.read(state, counted.hashes(state, changes))
        rows = sql(self._statement(), {"kept": kept, "changes": changes})
        left = rows.column("now").to_numpy()
        grew = rows.column("grew").to_numpy()
        state.notes[BATCH] = state.notes.get(BATCH, 0) + 1
        since = np.where(grew, state.notes[BATCH], rows.column("since").fill_null(0).to_numpy())
        rows = rows.set_column(rows.column_names.index("since"), "since", pa.array(since))
        stay = rows.filter(pa.array(left > 0))
        stored = stay.select([*self.output.names, "now", "since"]).rename_columns([*self.output.names, COUNT, SINCE])
        counted.write(state, kept, stored)
        return Step(changes=self._difference(rows), unmatched_retractions=int(-left[left < 0].sum()))

    def _statement(self) -> str:
        """Every row of the touched keys with its count before and after, and whether it was and is the one shown."""
        names = comma(self.output.names)
        key, last = columns(self.key), f"{names} DESC"
        newest_before = over([*key, "was > 0"], ["since DESC", last])
        newest = over([*key, "now > 0"], ["grew DESC", "CASE WHEN grew THEN 0 ELSE since END DESC", last])
        return f"""
            WITH together AS (
                SELECT {names}, {COUNT} AS was, 0 AS delta, {SINCE} AS since, false AS refreshed FROM kept
                UNION ALL
                SELECT {names}, 0, {WEIGHT}, NULL, {WEIGHT} = 0 FROM changes
            ), rows AS (
                SELECT {names}, {total("was")}, CAST(SUM(was + delta) AS BIGINT) AS now,
                    SUM(delta) > 0 AS grew, CAST(MAX(since) AS BIGINT) AS since, bool_or(refreshed) AS refreshed
                FROM together GROUP BY {names}
            )
            SELECT *,
                was > 0 AND row_number() {newest_before} = 1 AS shown_before,
                now > 0 AND row_number() {newest} = 1 AS shown
            FROM rows
        """

    def _difference(self, rows: pa.Table) -> pa.Table:
        was, is_ = (rows.column(name).to_numpy() for name in ("shown_before", "shown"))
        refreshed = rows.column("refreshed").to_numpy() & was & is_
        touched = (was != is_) | refreshed
        weights = is_.astype(np.int64) - was.astype(np.int64)
        out = rows.select(self.output.names).append_column(WEIGHT, pa.array(weights)).filter(pa.array(touched))
        order = np.lexsort((out.column(WEIGHT).to_numpy(), bucket_hash(out, self.key)))
        return as_changes(out.take(pa.array(order)), self.output)
