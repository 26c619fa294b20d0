"""The rows of partitions in their order: by time, then arrival."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Times
from operators.names import ORDER_NUMBER, ORDER_TIME, columns
from operators.sql import Sql
from operators.sql_text import inner, join, named, of, same, select


def sequenced(rows: pa.Table, times: Times, first: int) -> pa.Table:
    """Return `rows` with their times (ms) and numbers from `first` on."""
    numbers = np.arange(first, first + rows.num_rows)
    return rows.append_column(ORDER_TIME, pa.array(times)).append_column(ORDER_NUMBER, pa.array(numbers))


def newer(rows: pa.Table, times: Times, partition: Sequence[int], others: pa.Table, sql: Sql) -> Mask:
    """Return which `rows` are newer than all the `others` (whose times are in `_t`) of their partitions."""
    asked = sequenced(rows, times, 0)
    keys = columns(partition)
    last = inner(select([*keys, named(f"MAX({ORDER_TIME})", "last")], "others", group_by=keys))
    newest = join("rows r", f"{last} a", same(of("r", keys), of("a", keys)))
    statement = select([ORDER_NUMBER], newest, where=f"r.{ORDER_TIME} <= a.last")
    stale = sql(statement, {"rows": asked, "others": others}).column(ORDER_NUMBER).to_numpy()
    on_time = np.ones(rows.num_rows, dtype=np.bool_)
    on_time[stale] = False
    return on_time
