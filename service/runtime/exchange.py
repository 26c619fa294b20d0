"""Splitting a block of changes over the buckets of a level by the hash of its key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from operators.hashing import bucket_hash


def partition_by_hash(table: pa.Table, key: tuple[int, ...], buckets: int) -> list[tuple[int, pa.Table]]:
    """The non-empty parts of `table`, by bucket, each in the order of the rows; without a key all goes to bucket 0."""
    if table.num_rows == 0:
        return []
    if buckets == 1 or not key:
        return [(0, table)]
    bucket = (bucket_hash(table, key) % np.uint64(buckets)).astype(np.int64)
    order = np.argsort(bucket, kind="stable")
    bounds = np.searchsorted(bucket[order], np.arange(buckets + 1))
    sorted_table = table.take(pa.array(order))
    parts = ((b, int(bounds[b]), int(bounds[b + 1])) for b in range(buckets))
    return [(b, sorted_table.slice(start, stop - start)) for b, start, stop in parts if stop > start]
