"""The changes that follow from old rows, new rows and which of them differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from operators.arrays import Mask
from operators.columns import as_changes
from operators.names import WEIGHT
from operators.sql import Sql
from operators.sql_text import select, total


def weigh(rows: pa.Table, weight: int) -> pa.Table:
    """Return `rows`, each with the same weight."""
    return rows.append_column(WEIGHT, pa.array(np.full(rows.num_rows, weight, dtype=np.int64)))


def net(sql: Sql, changes: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the net change of each row of `columns`: equal rows as one, with the sum of their weights.

    Rows whose weights cancel are left out, but a row that was written again unchanged (weight 0) is kept.
    """
    remains = f"SUM({WEIGHT}) <> 0 OR COUNT(*) FILTER (WHERE {WEIGHT} = 0) > 0"
    return sql(select([*columns, total(WEIGHT)], "changes", group_by=columns, having=remains), {"changes": changes})


def difference(
    rows: pa.Table,
    old: Sequence[str],
    new: Sequence[str],
    was: Mask,
    is_: Mask,
    differs: Mask,
    output: pa.Schema,
    refresh: bool,
) -> pa.Table:
    """Return the retractions, then the insertions, then (to `refresh` readers with a TTL) the rows that were written
    again unchanged.

    `old` and `new` name the columns of each row before and after; `was` and `is_` say whether it existed before and
    exists after.
    """
    parts = [(was & (~is_ | differs), old, -1), (is_ & (~was | differs), new, 1)]
    if refresh:
        parts.append((was & is_ & ~differs, new, 0))
    tables = [
        weigh(rows.select(names).filter(pa.array(mask)).rename_columns(output.names), weight)
        for mask, names, weight in parts
    ]
    return as_changes(pa.concat_tables(tables), output)
