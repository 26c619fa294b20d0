"""The pairing of changes: a -row and a +row of one key become an update. Here weights become row kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.hashing import bucket_hash
from service.formats.contract import Positions

NONE = -1
"""The position of no row."""


class ChangePairs(NamedTuple):
    """One entry a change, in order: the positions of the row before and of the row after it. An insert has no row
    before (NONE), a delete none after; an update has both, and so has a row that was written again unchanged, which
    comes with weight 0."""

    before: Positions
    after: Positions


def pair(changes: pa.Table, key: Sequence[int] | None) -> ChangePairs:
    """Return the changes of a consolidated block, in which the rows of one key are adjacent and retractions come first.

    A row of weight n is n changes. Without a key no row replaces another; an empty key is that of a single row.
    """
    weights = changes["_weight"].to_numpy()
    rows = np.arange(len(weights), dtype=np.int64)
    if (weights == 1).all():
        return ChangePairs(np.full(len(rows), NONE), rows)
    copies = np.maximum(np.abs(weights), 1)
    if (copies != 1).any():
        rows, weights = np.repeat(rows, copies), np.repeat(weights, copies)
    before = np.where(weights <= 0, rows, NONE)
    after = np.where(weights >= 0, rows, NONE)
    replaced = np.flatnonzero((weights[:-1] < 0) & (weights[1:] > 0))
    if key is not None and len(replaced):
        replaced = replaced[_agree(changes, key, rows[replaced], rows[replaced + 1])]
        after[replaced] = rows[replaced + 1]
        kept = np.ones(len(rows), dtype=bool)
        kept[replaced + 1] = False
        before, after = before[kept], after[kept]
    return ChangePairs(before, after)


def is_update(pairs: ChangePairs) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which changes have a row before and a row after."""
    found: np.ndarray[Any, np.dtype[np.bool_]] = (pairs.before != NONE) & (pairs.after != NONE)
    return found


def split(pairs: ChangePairs, chosen: np.ndarray[Any, np.dtype[np.bool_]]) -> ChangePairs:
    """Return the changes with a delete and an insert in the place of each of the `chosen` updates.

    >>> pairs = ChangePairs(np.array([-1, 1]), np.array([0, 2]))
    >>> [each.tolist() for each in split(pairs, np.array([False, True]))]
    [[-1, 1, -1], [0, -1, 2]]
    """
    copies = np.where(chosen, 2, 1)
    before, after = np.repeat(pairs.before, copies), np.repeat(pairs.after, copies)
    second = (np.cumsum(copies) - 1)[chosen]
    before[second], after[second - 1] = NONE, NONE
    return ChangePairs(before, after)


def _agree(
    changes: pa.Table, key: Sequence[int], left: Positions, right: Positions
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether two rows have the same key; NULL equals NULL. Nested values are compared by their hash, since Arrow
    cannot compare them."""
    same = np.ones(len(left), dtype=bool)
    for position in key:
        column = changes.column(position)
        if pa.types.is_nested(column.type):
            hashes = bucket_hash(changes, (position,))
            same &= hashes[left] == hashes[right]
            continue
        a, b = column.take(pa.array(left)), column.take(pa.array(right))
        equal = pc.fill_null(pc.equal(a, b), False).to_numpy()
        same &= equal | (a.is_null().to_numpy() & b.is_null().to_numpy())
    return same
