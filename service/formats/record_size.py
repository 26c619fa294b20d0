"""Which records are too large for the topic that they go to: found for a whole block, mostly without a look at any."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Flags = np.ndarray[Any, np.dtype[np.bool_]]
Sizes = np.ndarray[Any, np.dtype[np.int64]]

OVERHEAD = 128
"""Bytes that a batch of one record has beside key, value and headers, at most: its head has 61."""

OF_A_HEADER = 10
"""Bytes of the two lengths of a header, at most."""

_LEVELS = {"gzip": 6, "zstd": 3}
"""The levels at which librdkafka compresses; LZ4 and Snappy have none."""

_LZ4_BLOCK = 64 << 10
"""Bytes that librdkafka compresses for themselves with LZ4."""

_CLOSE = 1 / 32
"""Part of its size by which a compressed record may be larger than estimated: its batch is not compressed by the same
library."""


@dataclass(frozen=True, slots=True)
class RecordRoom:
    """The room for one record of `topic`: the producer sends keys and values of up to `sent` bytes, and the topic takes
    batches of up to `stored` bytes, compressed by `codec` (as Arrow names it; None: not compressed). `stored` is None
    where that is not known."""

    topic: str
    sent: int
    stored: int | None = None
    codec: str | None = None

    def smaller(self, other: RecordRoom) -> RecordRoom:
        """Return a room in which nothing fits that does not fit into both."""
        stored = [each.stored for each in (self, other) if each.stored is not None]
        codec = self.codec if self.codec == other.codec else None
        return replace(self, sent=min(self.sent, other.sent), stored=min(stored, default=None), codec=codec)

    def too_large(self, records: pa.Table) -> dict[int, str]:
        """Return the positions of the records (formats.contract.OUT) that do not fit, ascending, each with a sentence
        that names its sizes."""
        least = self.sent if self.stored is None else min(self.sent, self.stored)
        if records.nbytes + OVERHEAD <= least or _longest(records) + OVERHEAD <= least:
            return {}
        keys, values = _lengths(records["key"]), _lengths(records["value"])
        plain = keys + values
        whole = plain + _header_bytes(records["headers"]) + OVERHEAD
        doubtful = plain > self.sent
        if self.stored is not None:
            doubtful |= whole > self.stored
        found: dict[int, str] = {}
        for place in map(int, np.flatnonzero(doubtful)):
            why = self._why(records, place, int(plain[place]), int(whole[place]))
            if why:
                found[place] = f"its record has a key of {keys[place]} bytes and a value of {values[place]}{why}"
        return found

    def _why(self, records: pa.Table, place: int, plain: int, whole: int) -> str:
        if plain > self.sent:
            return f", and the producer sends {self.sent} at most: see 'properties.max.request.size'"
        if self.stored is None or whole <= self.stored:
            return ""
        told = f"topic {self.topic} takes {self.stored} at most: see its max.message.bytes"
        if self.codec is None:
            return f", and {told}"
        packed = self._packed(records, place, whole - plain)
        return f", compressed to {packed}, and {told}" if packed > self.stored else ""

    def _packed(self, records: pa.Table, place: int, beside: int) -> int:
        """The bytes of a record when it is sent, or some more."""
        assert self.codec is not None
        data = b"".join(records[name][place].as_py() or b"" for name in ("key", "value"))
        codec = pa.Codec(self.codec, _LEVELS.get(self.codec))
        step = _LZ4_BLOCK if self.codec == "lz4" else max(1, len(data))
        size = sum(len(codec.compress(data[at : at + step], asbytes=True)) for at in range(0, len(data), step))
        return min(int(size * (1 + _CLOSE)), len(data)) + beside


def _longest(records: pa.Table) -> int:
    """The bytes of the largest record, or more."""
    lists = records["headers"]
    of_headers = 0 if lists.null_count == len(lists) else int(_header_bytes(lists).max(initial=0))
    return of_headers + sum(pc.max(pc.binary_length(records[name])).as_py() or 0 for name in ("key", "value"))


def _lengths(column: pa.ChunkedArray) -> Sizes:
    found: Sizes = pc.fill_null(pc.binary_length(column), 0).to_numpy().astype(np.int64)
    return found


def _header_bytes(column: pa.ChunkedArray) -> Sizes:
    """The bytes of the headers of each record."""
    if column.null_count == len(column):
        return np.zeros(len(column), dtype=np.int64)
    lists = column.combine_chunks()
    names, values = lists.flatten().flatten()
    sizes = np.full(len(names), OF_A_HEADER, dtype=np.int64)
    for each in (names, values):
        sizes += pc.fill_null(pc.binary_length(each), 0).to_numpy(zero_copy_only=False)
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    ends = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    sums = np.concatenate(([0], np.cumsum(sizes)))
    return np.diff(sums[ends])
