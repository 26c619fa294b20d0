"""Which rows of two tables belong together: the one statement of every join."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.sql import NOT_COMPUTABLE, Sql

Places = npt.NDArray[np.int64]


class Pairs(NamedTuple):
    """Pair i is row `left[i]` of one table and row `right[i]` of the other."""

    left: Places
    right: Places


def condition(left: Sequence[int], right: Sequence[int], null_safe: Sequence[bool], width: int) -> str:
    """The text that the keys are equal, over the columns of left, then right (the first `width` are left's)."""
    equal = [
        f"c{lk} {'IS NOT DISTINCT FROM' if safe else '='} c{width + rk}"
        for lk, rk, safe in zip(left, right, null_safe, strict=True)
    ]
    return " AND ".join(equal) or "true"


def match(sql: Sql, on: str, parts: Sequence[tuple[pa.Table, pa.Table, int, int]], width: int) -> Pairs:
    """The pairs for which `on` is true, in several `parts`: two tables and what to add to the numbers of their rows."""
    texts, tables = [], {}
    for i, (left, right, left_base, right_base) in enumerate(parts):
        if left.num_rows == 0 or right.num_rows == 0:
            continue
        tables[f"l{i}"] = _numbered(left, 0, left_base, "li")
        tables[f"r{i}"] = _numbered(right, width, right_base, "ri")
        texts.append(f"SELECT li, ri FROM l{i} JOIN r{i} ON {on}")
    if not texts:
        nothing = np.empty(0, dtype=np.int64)
        return Pairs(nothing, nothing)
    pairs = sql(" UNION ALL ".join(texts), tables)
    return Pairs(pairs.column("li").to_numpy(), pairs.column("ri").to_numpy())


def match_where_computable(
    sql: Sql, on: str, residual: str | None, parts: Sequence[tuple[pa.Table, pa.Table, int, int]], width: int
) -> Pairs:
    """The pairs of `match` for which `residual`, a condition over any columns, is true as well.

    A pair for which it cannot be computed does not match.
    """
    if residual is None:
        return match(sql, on, parts, width)
    try:
        return match(sql, f"{on} AND ({residual})", parts, width)
    except NOT_COMPUTABLE:
        return match(sql, f"{on} AND TRY(({residual}))", parts, width)


def _numbered(rows: pa.Table, first: int, base: int, name: str) -> pa.Table:
    """`rows` with columns c<first>, ... and the number of each row, counted from `base`."""
    numbers = pa.array(np.arange(base, base + rows.num_rows))
    return rows.rename_columns([f"c{first + i}" for i in range(rows.num_columns)]).append_column(name, numbers)


def holds(sql: Sql, residual: str, pairs: pa.Table) -> npt.NDArray[np.bool_]:
    """For which `pairs` (columns c0, c1, ... of left, then right) `residual` is true; where it fails it is not."""
    statement = "SELECT COALESCE({0}, false) AS holds FROM pairs"
    try:
        answer = sql(statement.format(f"({residual})"), {"pairs": pairs})
    except NOT_COMPUTABLE:
        answer = sql(statement.format(f"TRY(({residual}))"), {"pairs": pairs})
    found: npt.NDArray[np.bool_] = answer.column("holds").to_numpy()
    return found
