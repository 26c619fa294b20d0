"""The records that are too large for their topic: found for a whole block, mostly without a look at any."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.record_packing import OF_A_HEADER, OVERHEAD, packed

Flags = np.ndarray[Any, np.dtype[np.bool_]]
Sizes = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class RecordLimit:
    """The room for one record of `topic`: the producer sends keys and values of up to `sent` bytes, and the topic takes
    batches of up to `stored` bytes, compressed by `codec` (as Arrow names it; None: not compressed). `stored` is None
    where that is not known. Of what the topic has refused is known that it takes no record of `refused` bytes, and no
    batch of several records of more than `batch` bytes; None: it has refused none."""

    topic: str
    sent: int
    stored: int | None = None
    codec: str | None = None
    refused: int | None = None
    batch: int | None = None

    @property
    def taken(self) -> int | None:
        """The bytes that the topic takes at most, as far as it is known."""
        return least(self.stored, None if self.refused is None else self.refused - 1)

    def smaller(self, other: RecordLimit) -> RecordLimit:
        """Return a room in which nothing fits that does not fit into both."""
        return replace(
            self,
            sent=min(self.sent, other.sent),
            stored=least(self.stored, other.stored),
            codec=self.codec if self.codec == other.codec else None,
            refused=least(self.refused, other.refused),
            batch=least(self.batch, other.batch),
        )

    def too_large(self, records: pa.Table) -> dict[int, str]:
        """Return the positions of the records (formats.contract.OUT) that do not fit, ascending, each with a sentence
        that names its sizes."""
        taken = self.taken
        fits = self.sent if taken is None else min(self.sent, taken)
        if records.nbytes + OVERHEAD <= fits or _longest(records) + OVERHEAD <= fits:
            return {}
        keys, values = _lengths(records["key"]), _lengths(records["value"])
        plain = keys + values
        whole = plain + _header_bytes(records["headers"]) + OVERHEAD
        doubtful = plain > self.sent
        if taken is not None:
            doubtful |= whole > taken
        found: dict[int, str] = {}
        for place in map(int, np.flatnonzero(doubtful)):
            why = self._why(records, place, int(plain[place]), int(whole[place]))
            if why:
                found[place] = f"its record has a key of {keys[place]} bytes and a value of {values[place]}{why}"
        return found

    def _why(self, records: pa.Table, place: int, plain: int, whole: int) -> str:
        if plain > self.sent:
            return f", and the producer sends {self.sent} at most: see 'properties.max.request.size'"
        taken = self.taken
        if taken is None or whole <= taken:
            return ""
        reason = f"topic {self.topic} takes {self.stored} at most: see its max.message.bytes"
        if taken != self.stored:
            reason = f"topic {self.topic} has refused one of {self.refused}: see its max.message.bytes"
        if self.codec is None:
            return f", and {reason}"
        data = b"".join(records[name][place].as_py() or b"" for name in ("key", "value"))
        size = packed(data, whole - plain, self.codec)
        return f", compressed to {size}, and {reason}" if size > taken else ""


def least(*known: int | None) -> int | None:
    """Return the smallest of the numbers that are known."""
    return min((each for each in known if each is not None), default=None)


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
