"""Splitting a block of changes over the buckets of a level by the hash of its key."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from operators.hashing import bucket_hash

Tags = np.ndarray[Any, np.dtype[np.int64]]


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


def partition_blocks(
    table: pa.Table, tags: Tags, key: tuple[int, ...], buckets: int
) -> Iterator[tuple[tuple[int, int], pa.Table]]:
    """The same for several blocks in one table, of which `tags` tells each row's: the parts by (block, bucket)."""
    if table.num_rows == 0:
        return
    codes = tags * buckets
    if buckets > 1 and key:
        codes = codes + (bucket_hash(table, key) % np.uint64(buckets)).astype(np.int64)
    order = np.argsort(codes, kind="stable")
    sorted_codes, sorted_table = codes[order], table.take(pa.array(order))
    starts = [0, *(np.flatnonzero(np.diff(sorted_codes)) + 1).tolist(), table.num_rows]
    for start, stop in pairwise(starts):
        yield divmod(int(sorted_codes[start]), buckets), sorted_table.slice(start, stop - start)
