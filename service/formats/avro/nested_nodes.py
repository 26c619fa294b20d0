"""Readers of records, lists and maps of an Avro schema into columns.

Lists and maps are read item by item, the first items of all lists together, then the second ones, and so on. Where only
a few lists are left that are much longer than others, the places of their items are found one by one, and the items are
read together then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.avro.cursor import Cursor, Places
from service.formats.avro.nodes import Node
from service.formats.avro.skipping import Skipper
from service.formats.varints import Ints

_FEW = 8
"""Up to this many lists are read one by one: what a step over a block costs apart from its rows is about as much."""

_MOST_EMPTY = 1 << 16
"""Items of a list that take no bytes. Any number of them would fit into a record."""


@dataclass(frozen=True, slots=True)
class RecordNode:
    """The fields of a record in the order of the writer.

    `columns` says which column of the answer each is, -1 for none; `missing` are the columns that the writer does not
    have, each an array of one value.
    """

    members: tuple[Node, ...]
    columns: tuple[int, ...]
    missing: tuple[tuple[int, pa.Array], ...]
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]

    def fields(self, cursor: Cursor, places: Places) -> list[pa.Array]:
        """Return the columns."""
        found: list[Any] = [None] * len(self.names)
        for node, column in zip(self.members, self.columns, strict=True):
            if column < 0:
                node.skip(cursor, places)
            else:
                found[column] = node.read(cursor, places)
        for column, value in self.missing:
            found[column] = value.take(pa.array(np.zeros(len(places), dtype=np.int64)))
        return found

    def read(self, cursor: Cursor, places: Places) -> pa.Array:
        count = len(places)
        found = self.fields(cursor, places)
        fields = [pa.field(n, t) for n, t in zip(self.names, self.types, strict=True)]
        return pa.StructArray.from_arrays(found, fields=fields) if found else pa.array([{}] * count, pa.struct([]))

    def skip(self, cursor: Cursor, places: Places) -> None:
        for node in self.members:
            node.skip(cursor, places)


@dataclass(frozen=True, slots=True)
class ListNode:
    """An array: blocks of items until an empty one. `item` reads an item, `finish` makes a column of offsets and items.

    `smallest` is the number of bytes that an item has at least.
    """

    item: Node
    skipper: Skipper
    smallest: int
    finish: Callable[[pa.Array, pa.Array], pa.Array]

    def read(self, cursor: Cursor, places: Places) -> pa.Array:
        parts: list[pa.Array] = []
        parents: list[Ints] = []

        def keep(rows: Ints, some: Places) -> None:
            parts.append(self.item.read(cursor, some))
            parents.append(rows)

        self._blocks(cursor, places, keep)
        if not parts:
            parts, parents = [self.item.read(cursor, places.some(slice(0, 0)))], [np.zeros(0, dtype=np.int64)]
        rows = np.concatenate(parents)
        offsets = np.zeros(len(places) + 1, dtype=np.int64)
        offsets[1:] = np.bincount(rows, minlength=len(places)).cumsum()
        items = pa.concat_arrays(parts)
        if len(parts) > 1:
            items = items.take(pa.array(np.argsort(rows, kind="stable")))
        return self.finish(pa.array(offsets, pa.int32()), items)

    def skip(self, cursor: Cursor, places: Places) -> None:
        self._blocks(cursor, places, lambda rows, some: self.item.skip(cursor, some))

    def _blocks(self, cursor: Cursor, places: Places, each: Callable[[Ints, Places], None]) -> None:
        rows = np.arange(len(places))
        while len(rows):
            some = places.some(rows)
            counts = cursor.varint(some)
            sized = np.flatnonzero(counts < 0)
            if len(sized):
                with_size = some.some(sized)
                cursor.varint(with_size)  # the bytes of the block, for those who pass over it
                some.at[sized] = with_size.at
                counts[sized] = -counts[sized]
            most = (some.end - some.at) // self.smallest if self.smallest else _MOST_EMPTY
            odd = (counts < 0) | (counts > most)
            if odd.any():
                cursor.fail(some, odd, "an array or a map has more items than the record has bytes")
            if cursor.wrong:
                counts[cursor.failed[some.record]] = 0
            self._items(cursor, some, rows, counts, each)
            if cursor.wrong:
                counts[cursor.failed[some.record]] = 0
            places.at[rows] = some.at
            rows = rows[counts > 0]

    def _items(
        self, cursor: Cursor, some: Places, rows: Ints, counts: Ints, each: Callable[[Ints, Places], None]
    ) -> None:
        done = 0
        left = np.flatnonzero(counts > 0)
        while len(left):
            if len(left) <= _FEW and int(counts[left].max()) - done > _FEW:
                for one in left:
                    self._one_list(cursor, some, rows, int(one), int(counts[one]) - done, each)
                return
            items = some.some(left)
            each(rows[left], items)
            some.at[left] = items.at
            done += 1
            left = left[counts[left] > done]

    def _one_list(
        self, cursor: Cursor, some: Places, rows: Ints, one: int, count: int, each: Callable[[Ints, Places], None]
    ) -> None:
        """Read `count` items of one list: first find where they begin."""
        at, end = int(some.at[one]), int(some.end[one])
        if cursor.failed[some.record[one]]:
            return
        starts = np.empty(count, dtype=np.int64)
        try:
            for number in range(count):
                starts[number] = at
                at = self.skipper(cursor.data, at, end)
        except (IndexError, ValueError, RecursionError):
            only = np.zeros(len(some), dtype=np.bool_)
            only[one] = True
            cursor.fail(some, only, "the record ends in the middle of a value")
            return
        each(
            np.full(count, rows[one]),
            Places(starts, np.full(count, some.record[one]), np.full(count, some.end[one])),
        )
        some.at[one] = at if not cursor.failed[some.record[one]] else cursor.beyond


@dataclass(frozen=True, slots=True)
class RecursiveNode:
    """A named type inside of itself, which is only ever passed over: a column's type has an end."""

    skipper: Skipper

    def read(self, cursor: Cursor, places: Places) -> pa.Array:
        raise AssertionError("a column's type has an end")

    def skip(self, cursor: Cursor, places: Places) -> None:
        for index in range(len(places)):
            if cursor.failed[places.record[index]]:
                continue
            try:
                places.at[index] = self.skipper(cursor.data, int(places.at[index]), int(places.end[index]))
            except (IndexError, ValueError, RecursionError):
                only = np.zeros(len(places), dtype=np.bool_)
                only[index] = True
                cursor.fail(places, only, "the record ends in the middle of a value, or is nested too deeply")


@dataclass(frozen=True, slots=True)
class ListColumn:
    """Makes an ARRAY of offsets and items."""

    type: pa.DataType

    def __call__(self, offsets: pa.Array, items: pa.Array) -> pa.Array:
        return pa.ListArray.from_arrays(offsets, items, type=self.type)


@dataclass(frozen=True, slots=True)
class MapColumn:
    """Makes a MAP of offsets and entries."""

    type: pa.DataType

    def __call__(self, offsets: pa.Array, items: pa.Array) -> pa.Array:
        keys, values = (pc.struct_field(items, [i]) for i in range(2))
        return pa.MapArray.from_arrays(offsets, keys, values, type=self.type)


def nothing(offsets: pa.Array, items: pa.Array) -> pa.Array:
    """Refuse: a list that no column takes is only passed over."""
    raise AssertionError("no column takes this list")
