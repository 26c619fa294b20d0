"""Slots: the ranges of the hash of a key by which rows are spread over tasks.

Law: the slot of a row is the upper SLOT_BITS bits of the hash of the columns that it was exchanged by, and the same
bits of every sort key that is made of a hash are the slot, too. So what a range of slots holds of a block that is
sorted by such keys is one slice of it, whoever wrote the block.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from operators.arrays import Numbers
from operators.hashing import Hashes, bucket_hash

SLOT_BITS = 12
SLOTS = 1 << SLOT_BITS
"""The number of ranges, and the most tasks of a level. Each bit more is one less to tell the keys of a slot apart."""

_SHIFT = np.uint64(64 - SLOT_BITS)
_SLOT = np.uint64((SLOTS - 1) << (64 - SLOT_BITS))
_WITHIN = np.uint64(SLOT_BITS)


def slots_of(hashes: Hashes) -> Numbers:
    """Return the slot of each hash."""
    return (hashes >> _SHIFT).astype(np.int64)


def first_hash(slot: int) -> int:
    """Return the lowest hash of a slot."""
    return slot << (64 - SLOT_BITS)


def placed_hash(table: pa.Table, columns: Sequence[int], order: Sequence[int] | None) -> Hashes:
    """Return a hash of the rows by `columns`, in the slot that those of them at `order` choose; without `order`, all
    do."""
    whole = bucket_hash(table, columns)
    if order is None:
        return whole
    chosen = bucket_hash(table, [columns[i] for i in order])
    return (chosen & _SLOT) | (whole >> _WITHIN)


KEYLESS = int(slots_of(bucket_hash(pa.table({"c0": pa.nulls(1)}), ()))[0])
"""The slot of all rows where there is no key."""
