"""The rows of each session in the order in which they arrived, where rows may be retracted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.columns import numbered
from operators.hashing import Hashes
from operators.names import AT, NUMBERS, SORT_KEY, SPOT, WEIGHT
from operators.sql import Sql
from operators.sql_text import inner, named, over, select
from operators.state.operator_state import State
from operators.state.tables.grouped import GroupedTable
from operators.windows.session_rows import SessionRows


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionArrivals(SessionRows):
    """`SessionRows` over rows that may be retracted, which come out as they came: an update is a new row.

    Each row that comes has a number in its shard. Rows that are equal are kept once with their numbers, the oldest
    first; one that is retracted takes the oldest number with it. So the order follows from the changes alone, not
    from how they were cut into batches.
    """

    @property
    def _rows(self) -> GroupedTable:
        schema = pa.schema([*self.partial.input, pa.field(SPOT, pa.int64()), pa.field(NUMBERS, pa.list_(pa.int64()))])
        return GroupedTable(name="rows", schema=schema, group=self.partial.keys, members=len(self.partial.input))

    def _put(self, state: State, known: pa.Table, rows: pa.Table, sql: Sql) -> pa.Table:
        names = [*self.partial.input.names, SPOT, SORT_KEY]
        before = state.notes.get("rows", 0)
        came = np.maximum(rows.column(WEIGHT).to_numpy(), 0)
        state.notes["rows"] = before + int(came.sum())
        last = f"{before} + CAST(SUM(GREATEST({WEIGHT}, 0)) {over([], [AT])} AS BIGINT)"
        arrived = f"range(s - GREATEST({WEIGHT}, 0) + 1, s + 1)"
        each = select([*names, WEIGHT, AT, named(last, "s")], "rows")
        added = select([*names, named(arrived, NUMBERS), named(f"GREATEST(-{WEIGHT}, 0)", "gone"), AT], inner(each))
        kept = select([*names, NUMBERS, named("0", "gone"), named("-1", AT)], "known")
        numbers = f"FLATTEN(LIST({NUMBERS} ORDER BY {AT}))[CAST(SUM(gone) AS BIGINT) + 1:]"
        both = inner(f"{kept} UNION ALL {added}")
        left = sql(
            select([*names, named(numbers, NUMBERS)], both, group_by=names),
            {"known": known, "rows": numbered(rows)},
        )
        return left.filter(pc.greater(pc.list_value_length(left.column(NUMBERS)), 0))

    def _in_order(self, kept: pa.Table) -> tuple[pa.Table, Hashes]:
        lists = kept.column(NUMBERS).combine_chunks()
        rows = kept.take(pc.list_parent_indices(lists))
        weights = pa.array(np.ones(rows.num_rows, dtype=np.int64))
        return rows.append_column(WEIGHT, weights), pc.list_flatten(lists).to_numpy().astype(np.uint64)
