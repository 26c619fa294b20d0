"""The keys that can match: a NULL key equals nothing, unless it is compared by IS NOT DISTINCT FROM."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc


def split_matchable(rows: pa.Table, keys: Sequence[int], null_safe: Sequence[bool]) -> tuple[pa.Table, pa.Table]:
    """Split `rows` into those whose keys can equal any, and those with a NULL in a key that is not `null_safe`.

    >>> rows = pa.table({"c0": [1, None], "c1": ["a", "b"]})
    >>> [part.to_pylist() for part in split_matchable(rows, keys=[0], null_safe=[False])]
    [[{'c0': 1, 'c1': 'a'}], [{'c0': None, 'c1': 'b'}]]
    """
    null: pa.ChunkedArray | None = None
    for key, safe in zip(keys, null_safe, strict=True):
        column = rows.column(key)
        if not safe and column.null_count:
            null = column.is_null() if null is None else pc.or_(null, column.is_null())
    if null is None:
        return rows, rows.slice(0, 0)
    return rows.filter(pc.invert(null)), rows.filter(null)
