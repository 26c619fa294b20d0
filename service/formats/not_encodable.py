"""Rows that a format cannot hold: found for a whole block at once, with the column and the value that is to blame."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from service.formats.varints import Ints

Flags = np.ndarray[Any, np.dtype[np.bool_]]

_LONGEST = 100
"""Characters of a value that a reason quotes: the dead letter holds it whole."""


class NotEncodable(Exception):
    """Rows of a block that cannot be encoded: their positions, ascending, each once, and a sentence for each.

    The other rows of the block may have other values that cannot be encoded: this is what one check has found.
    """

    def __init__(self, rows: Ints, reasons: Sequence[str]) -> None:
        super().__init__(reasons[0])
        self.rows = rows
        self.reasons = tuple(reasons)

    def of_schema(self, number: int) -> NotEncodable:
        """Return the same with the id of the schema in front of each sentence."""
        return NotEncodable(self.rows, [f"schema {number}: {reason}" for reason in self.reasons])


@dataclass(frozen=True, slots=True)
class ValuePlaces:
    """The places that the values of a column come from: of each its row's position in the block, ascending; and the
    path to them, which begins with the column's name."""

    rows: Ints
    path: str = ""

    def inside(self, name: str, rows: Ints | None = None) -> ValuePlaces:
        """Return the places of the values under this name, whose rows are others if `rows` are given."""
        path = f"{self.path}.{name}" if self.path else name
        return ValuePlaces(self.rows if rows is None else rows, path)

    def where(self, chosen: Flags) -> ValuePlaces:
        """Return the places of some of the values."""
        return self if chosen.all() else ValuePlaces(self.rows[chosen], self.path)

    def refuse(self, bad: Flags, column: pa.Array, why: str) -> None:
        """Raise NotEncodable for the rows of the values that are `bad`, if there are any; a sentence ends in `why`."""
        if not bad.any():
            return
        places = np.flatnonzero(bad)
        rows, first = np.unique(self.rows[places], return_index=True)
        subject = f'column "{self.path}" is ' if self.path else "the value is "
        raise NotEncodable(rows, [f"{subject}{_shown(column[int(place)])}, {why}" for place in places[first]])

    def cast(self, column: pa.Array, wanted: pa.DataType, why: str) -> pa.Array:
        """Return the column as another type. Raises NotEncodable for the values that the type cannot hold."""
        try:
            return column.cast(wanted)
        except pa.ArrowInvalid:
            self.refuse(_uncastable(column, wanted), column, why)
            raise


def all_rows(count: int) -> ValuePlaces:
    """Return the positions of the rows of a block."""
    return ValuePlaces(np.arange(count))


def _uncastable(column: pa.Array, wanted: pa.DataType) -> Flags:
    """Which values cannot be cast, by halves."""
    bad = np.zeros(len(column), dtype=np.bool_)
    pending = [(0, len(column))]
    while pending:
        start, count = pending.pop()
        try:
            column.slice(start, count).cast(wanted)
        except pa.ArrowInvalid:
            if count == 1:
                bad[start] = True
            else:
                pending += [(start, count // 2), (start + count // 2, count - count // 2)]
    return bad


def _shown(value: pa.Scalar) -> str:
    if not value.is_valid:
        return "NULL"
    if pa.types.is_temporal(value.type):
        return str(value.cast(pa.string()))
    plain = value.as_py()
    if isinstance(plain, bytes):
        text = plain[:_LONGEST].hex()
        return f"0x{text[:_LONGEST]}{'…' if len(plain) * 2 > _LONGEST else ''}"
    text = json.dumps(plain, ensure_ascii=False) if isinstance(plain, str) else str(plain)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
