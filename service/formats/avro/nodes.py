"""How each part of an Avro schema is read into a column, and how it is passed over where nobody asks for it.

A node reads one value of each place and returns them as one Arrow array; whole blocks pass through it, so that its cost
hardly depends on how many records there are. Lists and maps are read item by item, the first items of all lists
together, then the second ones, and so on. Where only a few lists are left that are much longer than others, the places
of their items are found one by one, and the items are read together then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.avro.cursor import Cursor, Places
from service.formats.avro.skipping import Skipper
from service.formats.avro.values import OfBytes, OfInts
from service.formats.varints import Ints

_FEW = 8
"""So many lists or fewer are read one by one: what a step over a block costs apart from its rows is about as much."""

_MOST_EMPTY = 1 << 16
"""Items of a list that take no bytes at all. Any number of them would fit into a record."""


class Node(Protocol):
    """One part of a schema."""

    def read(self, cursor: Cursor, places: Places) -> pa.Array:
        """Return the value at each place, and move the places behind them."""

    def skip(self, cursor: Cursor, places: Places) -> None:
        """Move the places behind the values."""


@dataclass(frozen=True, slots=True)
class NullNode:
    """No bytes, and no value."""

    type: pa.DataType

    def read(self, cursor: Cursor, places: Places) -> pa.Array:
        return pa.nulls(len(places), self.type)

    def skip(self, cursor: Cursor, places: Places) -> None:
        pass


@dataclass(frozen=True, slots=True)
class BooleanNode:
    """A byte, 0 or 1."""

    def read(self, cursor: Cursor, places: Places) -> pa.Array:
        found = cursor.byte(places)
        odd = found > 1
        if odd.any():
            cursor.fail(places, odd, "a boolean is neither 0 nor 1")
        return pa.array(found != 0)

    def skip(self, cursor: Cursor, places: Places) -> None:
        cursor.moved(places, 1)


@dataclass(frozen=True, slots=True)
class IntegerNode:
    """An int or a long, as whatever column it makes."""

    column: OfInts
    narrow: bool = False

    def read(self, cursor: Cursor, places: Places) -> pa.Array:
        found = cursor.varint(places)
        if self.narrow:
            odd = (found < -(1 << 31)) | (found >= 1 << 31)
            if odd.any():
                cursor.fail(places, odd, "an int has more than 32 bits")
                found[odd] = 0
        return self.column(found, cursor, places)

    def skip(self, cursor: Cursor, places: Places) -> None:
        cursor.varint(places)


@dataclass(frozen=True, slots=True)
class FloatNode:
    """A float or a double, `kind` in numpy's words, as a column of type `type`."""

    kind: str
    type: pa.DataType

    def read(self, cursor: Cursor, places: Places) -> pa.Array:
        return pa.array(cursor.numbers(places, self.kind).astype(self.type.to_pandas_dtype()))

    def skip(self, cursor: Cursor, places: Places) -> None:
        cursor.moved(places, int(self.kind[-1]))


@dataclass(frozen=True, slots=True)
class BytesNode:
    """A string or bytes behind their length."""

    column: OfBytes

    def read(self, cursor: Cursor, places: Places) -> pa.Array:
        lengths = cursor.lengths(places)
        found = cursor.slices(places.at, lengths)
        cursor.moved(places, lengths)
        return self.column(found, cursor, places)

    def skip(self, cursor: Cursor, places: Places) -> None:
        cursor.moved(places, cursor.lengths(places))


@dataclass(frozen=True, slots=True)
class FixedNode:
    """Always as many bytes."""

    size: int
    column: OfBytes

    def read(self, cursor: Cursor, places: Places) -> pa.Array:
        before = places.at.copy()
        cursor.moved(places, self.size)
        gone = places.at == cursor.beyond if cursor.wrong else np.zeros(len(places), dtype=np.bool_)
        found = cursor.slices(np.where(gone, cursor.beyond, before), np.where(gone, 0, self.size))
        return self.column(found, cursor, places)

    def skip(self, cursor: Cursor, places: Places) -> None:
        cursor.moved(places, self.size)


@dataclass(frozen=True, slots=True)
class EnumerationNode:
    """The position of a symbol, as text."""

    symbols: tuple[str, ...]

    def read(self, cursor: Cursor, places: Places) -> pa.Array:
        found = cursor.varint(places)
        odd = (found < 0) | (found >= len(self.symbols))
        if odd.any():
            cursor.fail(places, odd, f"an enum has {len(self.symbols)} symbols, but the record has another one")
            found[odd] = 0
        return pa.array(self.symbols, pa.string()).take(pa.array(found))

    def skip(self, cursor: Cursor, places: Places) -> None:
        cursor.varint(places)


@dataclass(frozen=True, slots=True)
class UnionNode:
    """One of several, behind its position."""

    branches: tuple[Node, ...]

    def read(self, cursor: Cursor, places: Places) -> pa.Array:
        chosen = self._chosen(cursor, places)
        parts: list[pa.Array] = []
        source = np.zeros(len(places), dtype=np.int64)
        first = 0
        for branch, node in enumerate(self.branches):
            here = np.flatnonzero(chosen == branch)
            if len(here) == len(places):
                return node.read(cursor, places)
            if len(here) == 0:
                continue
            if isinstance(node, NullNode):
                source[here] = -1
                continue
            some = places.some(here)
            parts.append(node.read(cursor, some))
            places.at[here] = some.at
            source[here] = first + np.arange(len(here))
            first += len(here)
        return pa.concat_arrays(parts).take(pa.array(source, mask=source < 0))

    def skip(self, cursor: Cursor, places: Places) -> None:
        chosen = self._chosen(cursor, places)
        for branch, node in enumerate(self.branches):
            here = np.flatnonzero(chosen == branch)
            if len(here):
                some = places.some(here)
                node.skip(cursor, some)
                places.at[here] = some.at

    def _chosen(self, cursor: Cursor, places: Places) -> Ints:
        found = cursor.varint(places)
        odd = (found < 0) | (found >= len(self.branches))
        if odd.any():
            cursor.fail(places, odd, f"a union has {len(self.branches)} branches, but the record has another one")
            found[odd] = 0
        return found


@dataclass(frozen=True, slots=True)
class MismatchNode:
    """A schema that the column cannot take: a record that has it is wrong."""

    natural: Node
    type: pa.DataType
    why: str

    def read(self, cursor: Cursor, places: Places) -> pa.Array:
        cursor.fail(places, np.ones(len(places), dtype=np.bool_), self.why, "schema-mismatch")
        return pa.nulls(len(places), self.type)

    def skip(self, cursor: Cursor, places: Places) -> None:
        self.natural.skip(cursor, places)


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
