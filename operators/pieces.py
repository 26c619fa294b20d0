"""Cutting a table into pieces of a bounded size, since what is stored or sent as one value has to fit into memory."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

LARGEST = 64 << 20
"""Bytes of a piece: far below the 2 GiB that Arrow, a JVM and an object store put up with."""


def pieces(table: pa.Table, largest: int = LARGEST) -> Iterator[pa.Table]:
    """Split `table` into runs of rows of at most `largest` bytes; a row that is larger is a piece of its own."""
    if table.num_rows <= 1 or table.nbytes <= largest:
        yield table
        return
    half = table.num_rows // 2
    yield from pieces(table.slice(0, half), largest)
    yield from pieces(table.slice(half), largest)
