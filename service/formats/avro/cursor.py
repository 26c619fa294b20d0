"""Reads Avro's primitives at one place of every record of a block at a time.

The bytes of all records lie behind each other. A `Places` holds where the next value of each of some records begins; a
read returns the values and moves the places. Whatever is wrong with a record is noted once, and its place moves behind
the block, where nothing but zeros follows: those read as 0, as empty, as the first branch of a union. So a bad record
disturbs no other, and no read needs to ask whether a record is a good one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from service.formats.contract import DeadLetter
from service.formats.varints import PADDING, Ints, Words, numbers, words_of, zigzag

Flags = np.ndarray[Any, np.dtype[np.bool_]]

TOO_SHORT = "the record ends in the middle of a value"


@dataclass(slots=True)
class Places:
    """The place to read next (`at`), the record that this is part of, and where that record ends."""

    at: Ints
    record: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.at)

    def some(self, chosen: Any) -> Places:
        """Return those at these positions."""
        return Places(self.at[chosen], self.record[chosen], self.end[chosen])


class Cursor:
    """The bytes of a block of records, and what was found wrong with some of them (`wrong`, by record)."""

    def __init__(self, data: Any, starts: Ints, ends: Ints, longest_fixed: int = 0) -> None:
        """`data` are the bytes, as an array of uint8; `starts` and `ends` say where each record lies."""
        self.data = np.concatenate([data, np.zeros(PADDING + longest_fixed, dtype=np.uint8)])
        self.beyond = len(data)
        self._words = words_of(self.data)
        self.buffer = pa.py_buffer(self.data)
        self.starts, self.ends = starts, ends
        self.failed: Flags = np.zeros(len(starts), dtype=np.bool_)
        self.wrong: dict[int, DeadLetter] = {}

    def places(self) -> Places:
        """Return the beginning of every record."""
        return Places(self.starts.copy(), np.arange(len(self.starts)), self.ends.copy())

    def fail(self, places: Places, where: Flags, why: str, reason: str = "bad-avro") -> None:
        """Note that the records of those places are wrong, unless something was noted of them before."""
        records = np.unique(places.record[where])
        records = records[~self.failed[records]]
        self.failed[records] = True
        self.wrong.update(dict.fromkeys(map(int, records), DeadLetter(reason, why)))
        places.at[where] = self.beyond

    def moved(self, places: Places, step: Any) -> None:
        """Move the places by `step` bytes; a record that ends before is wrong."""
        places.at += step
        over = places.at > places.end
        if over.any():
            self.fail(places, over, TOO_SHORT)
        if self.wrong:
            places.at[self.failed[places.record]] = self.beyond

    def words(self, at: Ints) -> Words:
        """Return the eight bytes from each place on, as little-endian numbers."""
        return self._words[at]

    def byte(self, places: Places) -> Any:
        """Return the next byte of each."""
        found = self.data[places.at]
        self.moved(places, 1)
        return found

    def numbers(self, places: Places, kind: str) -> Any:
        """Return the next FLOAT or DOUBLE of each; `kind` is its numpy type."""
        width = np.dtype(kind).itemsize
        word = self.words(places.at)
        self.moved(places, width)
        return word.view(kind) if width == 8 else word.astype(np.uint32).view(kind)

    def varint(self, places: Places) -> Ints:
        """Return the next int or long of each."""
        found = numbers(self._words, places.at)
        if len(found.long) and (found.tenth > 1).any():
            endless = np.zeros(len(places), dtype=np.bool_)
            endless[found.long[found.tenth > 1]] = True
            found.sizes[endless] = 0
            self.fail(places, endless, "a number has more than ten bytes")
        self.moved(places, found.sizes)
        return zigzag(found.values)

    def lengths(self, places: Places) -> Ints:
        """Return the length in front of bytes or a text, which lie at the places then; 0 where it is none."""
        found = self.varint(places)
        odd = (found < 0) | (found > places.end - places.at)
        if odd.any():
            self.fail(places, odd, "the length of a text or of bytes is not possible")
            found[self.failed[places.record]] = 0
        return found

    def slices(self, at: Ints, lengths: Ints) -> pa.Array:
        """Return the bytes from each place on. The places ascend but for records that are wrong."""
        edges = np.empty(2 * len(at), dtype=np.int64)
        edges[0::2], edges[1::2] = at, at + lengths
        if self.wrong:
            gone = at >= self.beyond
            edges[0::2][gone] = edges[1::2][gone] = 0
            edges = np.maximum.accumulate(edges)
        if len(edges) == 0:
            return pa.array([], pa.binary())
        offsets = pa.py_buffer(edges.astype(np.int32))
        every = pa.Array.from_buffers(pa.binary(), len(edges) - 1, [None, offsets, self.buffer])
        return every.take(pa.array(np.arange(0, len(edges) - 1, 2)))
