"""How the rows of a stream are spread over buckets, and where streams can meet without being moved again.

Rows that must meet (those of one group, or of one join key) must be in one bucket. A stream whose bucket was chosen by
the hash of some of the key's columns has them there already, so the next operator joins it in the same level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Spread = tuple[frozenset[int], ...]
"""The columns whose hash chose the bucket, in order; each as the set of columns that hold its value, empty if none does
any more. () = everything is in one bucket."""


@dataclass(frozen=True, slots=True)
class Stream:
    """The output of `producer` at `level`; `spread` is None where rows enter, at level 0."""

    producer: int
    level: int
    spread: Spread | None = None

    def renamed(self, producer: int, places: Mapping[int, Sequence[int]]) -> Stream:
        """The stream after a step that works row by row; `places` says where each column is now, if anywhere."""
        if self.spread is None:
            return Stream(producer, self.level)
        spread = tuple(frozenset(p for c in group for p in places.get(c, ())) for group in self.spread)
        return Stream(producer, self.level, spread)


class Side(NamedTuple):
    """A stream that comes to a meeting, with the positions of its key; the keys of all sides agree in number."""

    stream: Stream
    key: tuple[int, ...]


class Meeting(NamedTuple):
    """Where all sides meet: the level, which key columns (by their index in the key) are hashed, and for each side the
    positions to exchange by, or None where it is in place."""

    level: int
    order: tuple[int, ...]
    exchanges: tuple[tuple[int, ...] | None, ...]

    def cost(self) -> tuple[int, int]:
        """Later levels cost most, then exchanges."""
        return self.level, sum(e is not None for e in self.exchanges)


def meet(sides: Sequence[Side]) -> Meeting:
    """The earliest level at which rows of equal keys can meet; of those, the one with the fewest exchanges."""
    count = len(sides[0].key)
    candidates = [tuple(range(count))]
    candidates += [order for side in sides if (order := _order(side)) and order not in candidates]
    return min((_meeting(sides, order) for order in candidates), key=Meeting.cost)


def _order(side: Side) -> tuple[int, ...] | None:
    """Which key columns this side is already spread by; None where it is by something else."""
    if not side.stream.spread:
        return None
    order = []
    for group in side.stream.spread:
        found = next((i for i, column in enumerate(side.key) if column in group), None)
        if found is None:
            return None
        order.append(found)
    return tuple(order)


def _meeting(sides: Sequence[Side], order: tuple[int, ...]) -> Meeting:
    fits = [_is_spread_by(side, order) for side in sides]
    level = max(s.stream.level + (not fit) for s, fit in zip(sides, fits, strict=True))
    exchanges = tuple(
        None if fit and side.stream.level == level else tuple(side.key[i] for i in order)
        for side, fit in zip(sides, fits, strict=True)
    )
    return Meeting(level, order, exchanges)


def _is_spread_by(side: Side, order: tuple[int, ...]) -> bool:
    spread = side.stream.spread
    return (
        spread is not None
        and len(spread) == len(order)
        and all(side.key[i] in group for i, group in zip(order, spread, strict=True))
    )
