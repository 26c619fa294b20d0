"""The rows of partitions in their order: by time, then arrival."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.columns import listed
from operators.sql import Sql
from operators.windows.slices import Times

TIME = "_t"
"""The column of a row's time in ms, which RANGE frames are ordered by."""

NUMBER = "_n"
"""The column that numbers rows by time, then arrival, for ROWS frames; those that are due from 0 on."""


def partition_by(partition: Sequence[int]) -> str:
    """Return the PARTITION BY clause of an OVER clause, with a blank behind it, or nothing."""
    return f"PARTITION BY {listed(partition)} " if partition else ""


def numbered(rows: pa.Table, times: Times, first: int) -> pa.Table:
    """Return `rows` with their times (ms) and numbers from `first` on."""
    numbers = np.arange(first, first + rows.num_rows)
    return rows.append_column(TIME, pa.array(times)).append_column(NUMBER, pa.array(numbers))


def in_order(rows: pa.Table, times: Times) -> tuple[pa.Table, Times]:
    """Return `rows` by their times; those of one time stay as they are."""
    if len(times) > 1 and not bool((times[1:] >= times[:-1]).all()):
        order = np.argsort(times, kind="stable")
        return rows.take(pa.array(order)), times[order]
    return rows, times


def newer(rows: pa.Table, times: Times, partition: Sequence[int], others: pa.Table, sql: Sql) -> npt.NDArray[np.bool_]:
    """Return which `rows` are newer than all the `others` (whose times are in `_t`) of their partitions."""
    asked = numbered(rows, times, 0)
    keys = [f"c{i}" for i in partition]
    on = " AND ".join(f"r.{k} IS NOT DISTINCT FROM a.{k}" for k in keys) or "true"
    last = f"SELECT {', '.join([*keys, f'MAX({TIME}) AS last'])} FROM others GROUP BY {', '.join(keys) or '()'}"
    statement = f"SELECT {NUMBER} FROM rows r JOIN ({last}) a ON {on} WHERE r.{TIME} <= a.last"
    stale = sql(statement, {"rows": asked, "others": others}).column(NUMBER).to_numpy()
    on_time = np.ones(rows.num_rows, dtype=np.bool_)
    on_time[stale] = False
    return on_time
