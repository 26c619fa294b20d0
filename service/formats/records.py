"""The common part of all decoders: take text out of the bytes of a block, separate bad records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.contract import DEAD_RECORD, DeadLetter

BAD_UTF8 = DeadLetter("bad-utf8", "the value is not UTF-8 text")


def texts(values: pa.ChunkedArray) -> tuple[pa.ChunkedArray, list[int]]:
    """Return bytes as text, and the positions of what is no UTF-8 (NULL in the text)."""
    try:
        return values.cast(pa.string()), []
    except pa.ArrowInvalid:
        bad: list[int] = []
        decoded: list[str | None] = []
        for index, value in enumerate(values.to_pylist()):
            try:
                decoded.append(None if value is None else value.decode())
            except UnicodeDecodeError:
                bad.append(index)
                decoded.append(None)
        return pa.chunked_array([pa.array(decoded, pa.string())]), bad


def dead(records: pa.Table, bad: Mapping[int, DeadLetter]) -> pa.Table:
    """Return the records at these positions with reason and detail, in order; columns that were not read are NULL."""
    spoken = {index: letter for index, letter in sorted(bad.items()) if letter.reason}
    if not spoken:
        return DEAD_RECORD.empty_table()
    rows = records.take(pa.array(list(spoken), pa.int64()))
    columns: list[Any] = []
    for field in DEAD_RECORD:
        if field.name == "reason":
            columns.append(pa.array([v.reason for v in spoken.values()], pa.string()))
        elif field.name == "detail":
            columns.append(pa.array([v.detail for v in spoken.values()], pa.string()))
        elif field.name in records.column_names:
            columns.append(rows[field.name].cast(field.type))
        else:
            columns.append(pa.nulls(len(spoken), field.type))
    return pa.table(columns, schema=DEAD_RECORD)


def missing(name: str, column: pa.ChunkedArray, bad: dict[int, DeadLetter], except_in: pa.Array | None = None) -> None:
    """Add to `bad` the rows in which the NOT NULL column `name` is NULL, but not those of `except_in`."""
    absent = column.is_null()
    if except_in is not None:
        absent = pc.and_not(absent, except_in)
    for index in np.flatnonzero(absent.to_numpy()):
        bad.setdefault(int(index), DeadLetter("missing-not-null", f'column "{name}" is NOT NULL, but has no value'))


def positions(count: int, without: Mapping[int, DeadLetter]) -> pa.Array:
    """Return the positions 0 to `count` that are not in `without`."""
    kept = np.ones(count, dtype=bool)
    kept[list(without)] = False
    return pa.array(np.flatnonzero(kept))


def block(columns: Sequence[pa.ChunkedArray | pa.Array], weights: pa.Array) -> pa.Table:
    """Return a block of changes."""
    named = {f"c{i}": column for i, column in enumerate(columns)}
    return pa.table({**named, "_weight": weights})
