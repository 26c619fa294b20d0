"""The remaining columns of a relation: their old positions, and their new ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from service.plan.nodes import Node

Places = Mapping[int, int]
"""Old positions of the columns that are left, and their new ones."""

T = TypeVar("T")


class Pruned(NamedTuple):
    """A node without its unused columns, and where the others are now."""

    node: Node
    places: Places


def at(positions: Iterable[int], places: Places) -> tuple[int, ...]:
    """Return the new positions of the columns at `positions`.

    >>> at((3, 1), {1: 0, 3: 1})
    (1, 0)
    """
    return tuple(places[p] for p in positions)


def places_of(kept: Iterable[int]) -> Places:
    """Return where the columns at the positions `kept` are when only these are left, in this order.

    >>> places_of([1, 3])
    {1: 0, 3: 1}
    """
    return {old: new for new, old in enumerate(kept)}


def picked(items: tuple[T, ...], kept: Iterable[int]) -> tuple[T, ...]:
    """Return the items at the positions `kept`."""
    return tuple(items[i] for i in kept)


def in_new_order(items: tuple[T, ...], places: Places) -> tuple[T, ...]:
    """Return the items that are left, in their new order."""
    return tuple(items[old] for old, _ in sorted(places.items(), key=lambda p: p[1]))
