"""Splitting a block of changes over the shards of a level by the hash of its key: what an exchange does with rows.

The watermark goes to every shard beside them: `level_clock.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from operators.hashing import bucket_hash
from service.runtime.layout import Layout

Tags = np.ndarray[Any, np.dtype[np.int64]]


def partition_by_hash(table: pa.Table, key: tuple[int, ...], layout: Layout) -> list[tuple[int, pa.Table]]:
    """Return the non-empty parts of `table`, by shard, each in the order of the rows; without a key there is
    one part."""
    if table.num_rows == 0:
        return []
    if layout.shards == 1:
        return [(0, table)]
    if not key:
        return [(int(layout.shard_of(bucket_hash(table.slice(0, 1), ()))[0]), table)]
    shard = layout.shard_of(bucket_hash(table, key))
    order = np.argsort(shard, kind="stable")
    bounds = np.searchsorted(shard[order], np.arange(layout.shards + 1))
    sorted_table = table.take(pa.array(order))
    parts = ((s, int(bounds[s]), int(bounds[s + 1])) for s in range(layout.shards))
    return [(s, sorted_table.slice(start, stop - start)) for s, start, stop in parts if stop > start]


def partition_blocks(
    table: pa.Table, tags: Tags, key: tuple[int, ...], layout: Layout
) -> Iterator[tuple[tuple[int, int], pa.Table]]:
    """Yield the same for several blocks in one table, where `tags` holds the block of each row: the parts by (block,
    shard)."""
    if table.num_rows == 0:
        return
    codes = tags * layout.shards
    if layout.shards > 1:
        codes = codes + layout.shard_of(bucket_hash(table, key))
    order = np.argsort(codes, kind="stable")
    sorted_codes, sorted_table = codes[order], table.take(pa.array(order))
    starts = [0, *(np.flatnonzero(np.diff(sorted_codes)) + 1).tolist(), table.num_rows]
    for start, stop in pairwise(starts):
        yield divmod(int(sorted_codes[start]), layout.shards), sorted_table.slice(start, stop - start)
