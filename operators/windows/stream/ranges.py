"""Windows as ranges of rows that are in order, and the arithmetic of such ranges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.arrays import Mask, Positions, Times

EXPANDED = 262_144
"""The approximate number of rows of windows read at a time: a row counts once for each window that it is in."""


class Ranges(NamedTuple):
    """Windows over the rows of a table: window i has those from `first[i]` to `last[i]`, which is not included; it
    lasts from `starts[i]` to `ends[i]`, both in ms."""

    first: Positions
    last: Positions
    starts: Times
    ends: Times

    def taken(self, which: Positions | slice) -> Ranges:
        """Return some of the windows."""
        return Ranges(*(column[which] for column in self))

    def portions(self) -> Iterator[Ranges]:
        """Yield the windows in order, in groups whose rows are about `EXPANDED`, and one at least."""
        ends = np.cumsum(self.last - self.first)
        start = 0
        while start < len(ends):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + EXPANDED, "right")))
            yield self.taken(slice(start, stop))
            start = stop


class Ordered(NamedTuple):
    """Rows in the order of their windows, and their times in ms."""

    rows: pa.Table
    times: Times


def extremes(values: Times, first: Positions, last: Positions) -> tuple[Times, Times]:
    """Return the least and the greatest of `values` in each range; no range is empty."""
    if len(first) == 0:
        return first, first
    bounds = np.stack([first, last], axis=1).ravel()
    padded = np.append(values, values[-1:])
    return np.minimum.reduceat(padded, bounds)[::2], np.maximum.reduceat(padded, bounds)[::2]


def orbit(jump: Positions, starts: Positions) -> Positions:
    """Return the positions that are reached from `starts` by following `jump` again and again, in order.

    A jump leads on to a later position, or to len(jump), where it ends; no two of the starts lead to the same position.
    Each round doubles the length of the jumps, so the number of rounds is the logarithm of the longest way.
    """
    end = len(jump)
    step = np.append(jump, end)
    reached = starts[starts < end]
    while True:
        further = step[reached]
        further = further[further < end]
        if len(further) == 0:
            return np.sort(reached)
        reached = np.concatenate([reached, further])
        step = step[step]


def following(flags: Mask, ends: Positions) -> Positions:
    """Return for each position i the first at or after it whose flag is set and that is before `ends[i]`; len(flags) if
    there is none.

    >>> following(np.array([False, True, False, True]), np.array([4, 4, 3, 4])).tolist()
    [1, 1, 4, 3]
    """
    count = len(flags)
    set_ = np.append(np.flatnonzero(flags), count)
    found = set_[np.searchsorted(set_, np.arange(count))]
    return np.where(found < ends, found, count)


def places_of(
    owners: Positions, times: Times, wanted_owners: Positions, wanted: Times, *, after_equal: bool
) -> Positions:
    """Return where each wanted (owner, time) would stand among the sorted (owners, times): before those that are equal
    to it, or after them."""
    if len(owners) == 0 or owners[0] == owners[-1]:
        found: Positions = np.searchsorted(times, wanted, "right" if after_equal else "left")
        return found
    side = 1 if after_equal else -1
    order = np.lexsort(
        (
            np.concatenate([np.zeros(len(owners), np.int8), np.full(len(wanted), side, np.int8)]),
            np.concatenate([times, wanted]),
            np.concatenate([owners, wanted_owners]),
        )
    )
    before = np.cumsum(order < len(owners))
    places = np.empty(len(order), dtype=np.int64)
    places[order] = before
    return places[len(owners) :]
