"""The numpy arrays that operators compute with, and functions that numpy lacks."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]
"""A truth value for each row."""

Numbers = npt.NDArray[np.int64]
"""A whole number for each row."""

Positions = npt.NDArray[np.int64]
"""Positions of rows in a table, from 0; -1 for none where that is documented."""

Times = npt.NDArray[np.int64]
"""A time for each row, in ms since the epoch."""

Kind = TypeVar("Kind", bound=np.generic)


def distinct(values: npt.NDArray[Kind]) -> npt.NDArray[Kind]:
    """Return the distinct `values`, sorted: numpy's own `unique` hashes, which takes ten times as long."""
    ordered = np.sort(values)
    different: npt.NDArray[Kind] = ordered[heads(ordered)]
    return different


def heads(ordered: npt.NDArray[Any], *others: npt.NDArray[Any]) -> Positions:
    """Return the positions at which another value begins, of this or of one of the `others`, where equal ones stand
    together.

    >>> heads(np.array([5, 5, 7, 9, 9])).tolist()
    [0, 2, 3]
    >>> heads(np.array([5, 5, 7, 9, 9]), np.array([1, 2, 2, 2, 2])).tolist()
    [0, 1, 2, 3]
    """
    if len(ordered) == 0:
        return np.zeros(0, dtype=np.int64)
    differs = ordered[1:] != ordered[:-1]
    for other in others:
        differs |= other[1:] != other[:-1]
    return np.flatnonzero(np.concatenate([[True], differs]))


def among(values: npt.NDArray[Kind], wanted: npt.NDArray[Kind]) -> Mask:
    """Return which of `values` are among the `wanted`: numpy's own `isin` is as slow as its `unique`."""
    if len(wanted) == 0:
        return np.zeros(len(values), dtype=np.bool_)
    ordered = np.sort(wanted)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    found: Mask = ordered[at] == values
    return found


def repeated(values: npt.NDArray[Kind]) -> Mask:
    """Return which of `values` occur more than once."""
    order = np.argsort(values, kind="stable")
    same = values[order][1:] == values[order][:-1]
    found = np.zeros(len(values), dtype=np.bool_)
    if same.any():
        found[order[1:][same]] = True
        found[order[:-1][same]] = True
    return found


def spread(starts: Positions, counts: Positions) -> Positions:
    """Return the positions starts[i], starts[i] + 1, ..., counts[i] of them for each i, one after the other.

    >>> spread(np.array([10, 20]), np.array([2, 3])).tolist()
    [10, 11, 20, 21, 22]
    """
    total = int(counts.sum())
    if total == len(counts) and bool((counts == 1).all()):
        return starts
    ends = np.cumsum(counts)
    return np.arange(total, dtype=np.int64) + np.repeat(starts - ends + counts, counts)


def ascends(values: npt.NDArray[Any]) -> bool:
    """Return whether no value is less than the one before it."""
    return len(values) < 2 or bool((values[1:] >= values[:-1]).all())


def in_order(rows: pa.Table, values: npt.NDArray[Kind]) -> tuple[pa.Table, npt.NDArray[Kind]]:
    """Return `rows` and their `values` in the order of these; rows of one value keep their order."""
    if ascends(values):
        return rows, values
    order = np.argsort(values, kind="stable")
    return rows.take(pa.array(order)), values[order]
