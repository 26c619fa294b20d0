"""Reads a block whose records have several schemas: the records of each schema together, then all in their order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from service.formats.contract import DeadLetter
from service.formats.varints import Ints, Octets
from service.plan.types import DataType, arrow

K = TypeVar("K", bound=Hashable)

Groups = Callable[[Any, Ints, Ints, Ints], Sequence[tuple[K, Ints]]]
"""From the bytes, where each value begins and ends, and the positions of those that are there, to the positions of each
schema's."""

Read = Callable[[K, Any, Ints, Ints], "tuple[list[pa.Array], dict[int, DeadLetter]] | DeadLetter"]
"""From a schema, the bytes and where its values lie to their columns and what is wrong with some of them, or with
all."""


def read_by_schema(
    values: pa.ChunkedArray, types: Sequence[DataType], groups: Groups[K], read: Read[K], bad: dict[int, DeadLetter]
) -> list[pa.ChunkedArray]:
    """Return a column of each type, NULL where there is no value or none that can be read; `bad` grows."""
    column = values.combine_chunks()
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    data, starts, ends = slices(column)
    present = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    parts: list[list[pa.Array]] = []
    source = np.full(len(column), -1, dtype=np.int64)
    count = 0
    for schema, rows in groups(data, starts, ends, present):
        found = read(schema, data, starts[rows], ends[rows])
        if isinstance(found, DeadLetter):
            bad.update(dict.fromkeys(map(int, rows), found))
            continue
        columns, wrong = found
        bad.update({int(rows[place]): letter for place, letter in wrong.items()})
        parts.append(columns)
        source[rows] = count + np.arange(len(rows))
        count += len(rows)
    if len(parts) == 1 and count == len(column):
        return [pa.chunked_array([each]) for each in parts[0]]
    taken = pa.array(source, mask=source < 0)
    return [
        pa.chunked_array([pa.concat_arrays([pa.nulls(0, arrow(t)), *(p[i] for p in parts)]).take(taken)])
        for i, t in enumerate(types)
    ]


def slices(column: pa.Array) -> tuple[Octets, Ints, Ints]:
    """Return the bytes of a column, and where each value lies in them."""
    _, where, data = column.buffers()
    offsets = np.frombuffer(where, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    raw = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    if len(offsets) == 0:
        return raw, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    return raw[first:last], offsets[:-1] - first, offsets[1:] - first
