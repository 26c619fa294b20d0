"""The distribution of a stream's rows over shards, and where streams can be joined without another exchange.

Rows of one group, or of one join key, must be in one shard. If a stream was exchanged by some of the key's columns,
they are co-located already, so the next operator runs in the same level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Distribution = tuple[frozenset[int], ...]
"""The columns whose hash chose the shard, in order; each as the set of columns that hold its value, empty if none does
any longer. () = everything is in one shard."""


@dataclass(frozen=True, slots=True)
class Stream:
    """The output of `producer` at `level`; `distribution` is None where rows enter, at level 0.

    After a FULL JOIN, of two columns the one that is no NULL holds the value that was hashed: `either` has these pairs,
    a set for each group of the distribution.
    """

    producer: int
    level: int
    distribution: Distribution | None = None
    either: tuple[frozenset[tuple[int, int]], ...] = ()

    def renamed(
        self,
        producer: int,
        places: Mapping[int, Sequence[int]],
        merged: Mapping[tuple[int, int], Sequence[int]] | None = None,
    ) -> Stream:
        """Return the stream after a stateless step; `places` holds the new position of each column, if it has one, and
        `merged` that of COALESCE of two columns."""
        if self.distribution is None:
            return Stream(producer, self.level)
        groups = [{p for c in group for p in places.get(c, ())} for group in self.distribution]
        for group, pairs in zip(groups, self.either, strict=False):
            group.update(p for pair in pairs for p in (merged or {}).get(pair, ()))
        either = tuple(
            frozenset((a, b) for left, right in pairs for a in places.get(left, ()) for b in places.get(right, ()))
            for pairs in self.either
        )
        return Stream(producer, self.level, tuple(map(frozenset, groups)), either)


class Input(NamedTuple):
    """An input of a co-located operator, with the positions of its key; all inputs have the same number of key
    columns."""

    stream: Stream
    key: tuple[int, ...]


class Placement(NamedTuple):
    """The place where all inputs are co-located: the level, the key columns that are hashed (by their index in the
    key), and for each input the positions to exchange by, or None if it needs no exchange."""

    level: int
    key_order: tuple[int, ...]
    exchanges: tuple[tuple[int, ...] | None, ...]

    def cost(self) -> tuple[int, int]:
        """Return the cost of the placement: later levels cost most, then exchanges."""
        return self.level, sum(e is not None for e in self.exchanges)


def co_locate(inputs: Sequence[Input]) -> Placement:
    """Return the earliest level at which rows of equal keys can be co-located; of those, the one with the fewest
    exchanges."""
    count = len(inputs[0].key)
    candidates = [tuple(range(count))]
    candidates += [key_order for input in inputs if (key_order := _key_order(input)) and key_order not in candidates]
    return min((_placement(inputs, key_order) for key_order in candidates), key=Placement.cost)


def _key_order(input: Input) -> tuple[int, ...] | None:
    """The key columns by which this input is distributed already; None if it is by others."""
    if not input.stream.distribution:
        return None
    key_order = []
    for group in input.stream.distribution:
        found = next((i for i, column in enumerate(input.key) if column in group), None)
        if found is None:
            return None
        key_order.append(found)
    return tuple(key_order)


def _placement(inputs: Sequence[Input], key_order: tuple[int, ...]) -> Placement:
    fits = [_is_distributed_by(input, key_order) for input in inputs]
    level = max(s.stream.level + (not fit) for s, fit in zip(inputs, fits, strict=True))
    exchanges = tuple(
        None if fit and input.stream.level == level else tuple(input.key[i] for i in key_order)
        for input, fit in zip(inputs, fits, strict=True)
    )
    return Placement(level, key_order, exchanges)


def _is_distributed_by(input: Input, key_order: tuple[int, ...]) -> bool:
    distribution = input.stream.distribution
    return (
        distribution is not None
        and len(distribution) == len(key_order)
        and all(input.key[i] in group for i, group in zip(key_order, distribution, strict=True))
    )
