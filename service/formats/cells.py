"""The bytes of values that are written, a whole block at a time: what the writers of Avro and Protocol Buffers share.

Every part of a schema makes `Cells`: the bytes of each value, one after the other, and how many bytes each has. A
record puts the cells of its fields together, a list those of its items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from service.formats.varints import Ints, Octets, Words


@dataclass(frozen=True, slots=True)
class Cells:
    """The bytes of values, one after the other, and how many each has."""

    lengths: Ints
    data: Octets

    def binary(self) -> pa.Array:
        """Return the values as an Arrow array."""
        offsets = np.zeros(len(self.lengths) + 1, dtype=np.int64)
        self.lengths.cumsum(out=offsets[1:])
        if offsets[-1] >= 1 << 31:
            raise pa.ArrowCapacityError("the records of a block have more than 2 GiB")
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.binary(), len(self.lengths), buffers)


def unsigned(rest: Words) -> Cells:
    """Return numbers without a sign, seven bits a byte; `rest` is overwritten."""
    if len(rest) == 0:
        return empty(0)
    most = max(1, (int(rest.max()).bit_length() + 6) // 7)
    if most == 1:
        return Cells(np.ones(len(rest), dtype=np.int64), rest.astype(np.uint8))
    made = np.empty((len(rest), most), dtype=np.uint8)
    lengths = np.ones(len(rest), dtype=np.int64)
    for place in range(most):
        more = rest > np.uint64(0x7F)
        made[:, place] = (rest & np.uint64(0x7F)).astype(np.uint8) | (more.view(np.uint8) << 7)
        lengths += more
        rest >>= np.uint64(7)
    return Cells(lengths, made[np.arange(most) < lengths[:, None]])


def signed(values: Ints) -> Cells:
    """Return numbers whose sign is the lowest bit, seven bits a byte: ints and longs of Avro, sint64 of Protocol
    Buffers."""
    return unsigned(((values << 1) ^ (values >> 63)).view(np.uint64))


def empty(count: int) -> Cells:
    """Return an empty text for each of `count` values."""
    return Cells(np.zeros(count, dtype=np.int64), np.zeros(0, dtype=np.uint8))


def constant(data: bytes, count: int) -> Cells:
    """Return the same bytes for every value."""
    return Cells(np.full(count, len(data)), np.tile(np.frombuffer(data, np.uint8), count))


def even(values: Any, width: int) -> Cells:
    """Return the bytes of numbers of one width, as they are in memory."""
    return Cells(np.full(len(values), width), np.frombuffer(values.tobytes(), np.uint8))


def bytes_of(column: pa.Array) -> Cells:
    """Return texts or bytes as they are."""
    if len(column) == 0:
        return empty(0)
    column = column.cast(pa.binary())
    _, where, data = column.buffers()
    offsets = np.frombuffer(where, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    raw = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    return Cells(np.diff(offsets), raw[offsets[0] : offsets[-1]])


def flat_map(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the keys and the values of maps, none of which is NULL, one after the other."""
    offsets = column.offsets
    first, last = (int(offsets[i].as_py()) for i in (0, len(column)))
    return column.keys.slice(first, last - first), column.items.slice(first, last - first)


def gathered(items: Cells, counts: Ints) -> Cells:
    """Return the items of lists, concatenated for each list; `counts` are the lengths of the lists."""
    edges = np.zeros(len(counts) + 1, dtype=np.int64)
    counts.cumsum(out=edges[1:])
    ends = np.zeros(len(items.lengths) + 1, dtype=np.int64)
    items.lengths.cumsum(out=ends[1:])
    return Cells(np.diff(ends[edges]), items.data)


def spread(cells: Cells, there: Any) -> Cells:
    """Return the cells for the values that are `there`, empty ones for the others."""
    lengths = np.zeros(len(there), dtype=np.int64)
    lengths[there] = cells.lengths
    return Cells(lengths, cells.data)


def joined(cells: Sequence[Cells]) -> Cells:
    """Return the concatenated bytes of several cells, at least one."""
    if len(cells) == 1:
        return cells[0]
    lengths = np.sum([each.lengths for each in cells], axis=0)
    starts = lengths.cumsum() - lengths
    made = np.empty(int(lengths.sum()), dtype=np.uint8)
    for each in cells:
        _put(made, starts, each)
        starts = starts + each.lengths
    return Cells(lengths, made)


def _put(made: Octets, starts: Ints, cells: Cells) -> None:
    """Write cells at these places."""
    if len(cells.data) == 0:
        return
    width = int(cells.lengths[0])
    if (cells.lengths == width).all():
        source = cells.data.reshape(len(starts), width)
        for place in range(width) if width <= 16 else ():
            made[starts + place] = source[:, place]
        if width <= 16:
            return
    own = cells.lengths.cumsum() - cells.lengths
    made[np.repeat(starts - own, cells.lengths) + np.arange(len(cells.data))] = cells.data
