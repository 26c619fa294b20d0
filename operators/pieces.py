"""Cutting a table into pieces of a bounded size, since what is stored or sent as one value has to fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.arrays import Numbers

LARGEST = 64 << 20
"""Bytes of a piece: far below the 2 GiB that Arrow, a JVM and an object store put up with."""


STEP = 16 << 20
"""Bytes of a piece that the next operator takes at once: it is copied several times on its way."""


def pieces(table: pa.Table, largest: int = LARGEST) -> Iterator[pa.Table]:
    """Split `table` into runs of rows of at most `largest` bytes; a row that is larger is a piece of its own."""
    if table.num_rows <= 1 or table.nbytes <= largest:
        yield table
        return
    half = table.num_rows // 2
    yield from pieces(table.slice(0, half), largest)
    yield from pieces(table.slice(half), largest)


def gathered(tables: Iterable[pa.Table]) -> Iterator[list[pa.Table]]:
    """Yield groups of `tables`, in order, each of at most STEP bytes unless one table alone is larger."""
    held: list[pa.Table] = []
    size = 0
    for table in tables:
        if held and size + table.nbytes > STEP:
            yield held
            held, size = [], 0
        held.append(table)
        size += table.nbytes
    if held:
        yield held


def row_bytes(table: pa.Table) -> Numbers:
    """Return the bytes of each row, near enough: texts as long as they are, what is nested as long as the mean."""
    sizes = np.zeros(table.num_rows, dtype=np.int64)
    if not table.num_rows:
        return sizes
    for column in table.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy() + 4
        else:
            sizes += -(-column.nbytes // table.num_rows)
    return sizes


def runs(sizes: Numbers, most: int) -> Iterator[slice]:
    """Cut items into runs whose sizes add up to at most `most`; an item that is larger is a run of its own."""
    total = np.cumsum(sizes)
    start = base = 0
    while start < len(sizes):
        stop = max(start + 1, int(np.searchsorted(total, base + most, side="right")))
        yield slice(start, stop)
        start, base = stop, int(total[stop - 1])
