"""The bytes of a column of texts, as numpy sees them without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Edges = np.ndarray[Any, np.dtype[np.int32]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
Rows = np.ndarray[Any, np.dtype[np.int64]]


def words(data: Bytes, width: int) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the numbers that `width` bytes from each place on are, the first byte the lowest."""
    return np.ndarray((max(0, len(data) - width + 1),), f"<u{width}", data, strides=(1,))


def characters(column: pa.Array) -> bytes:
    """Return the UTF-8 bytes of a text column, one text after the other."""
    data, edges = raw(column)
    return data[edges[0] : edges[-1]].tobytes()


def raw(column: pa.Array) -> tuple[Bytes, Edges]:
    """Return the bytes that a text column shares, and where in them each text begins and the last one ends."""
    _, offsets, data = column.buffers()
    if offsets is None or data is None:
        return np.zeros(0, dtype=np.uint8), np.zeros(len(column) + 1, dtype=np.int32)
    edges = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data, np.uint8), edges
