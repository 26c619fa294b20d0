"""Readers of each part of an Avro schema into a column, and how to skip it if nobody needs it.

A node reads one value of each place and returns them as one Arrow array; whole blocks pass through it, so that its cost
hardly depends on how many records there are. Here are values without parts, and unions; `nested_nodes` has the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from service.formats.avro.cursor import Cursor, Places
from service.formats.avro.values import OfBytes, OfInts
from service.formats.varints import Ints


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
