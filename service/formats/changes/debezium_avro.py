"""The encoding of changes in debezium-avro-confluent: {before, after, op}, around the Avro of their rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.changes.change_encodings import (
    BEFORE,
    DELETE,
    ChangeEncoding,
    EncodedChanges,
    kinds_of,
    row_by_row,
    texts_at,
    with_tombstones,
)
from service.formats.changes.change_pairs import NONE, ChangePairs
from service.formats.contract import Positions
from service.formats.framing import HEADER, LONGEST

_NONE = b"\x00"
"""The first branch of the union of a row: null."""

_ROW = b"\x02"
"""Its second branch: the row follows."""

_OPERATION = b"\x02\x02"
"""The second branch of the union of the operation, a string of one character."""


def debezium_avro(*, tombstones: bool, updates: bool) -> ChangeEncoding:
    """Return changes as records; with `updates` an update is one record of op "u", else a "d" and a "c", as Flink
    writes it.

    What is encoded is each row behind the id of the schema of changes, as `AvroWriter` leaves it.

    >>> rows = pa.array([b"\\0\\0\\0\\0\\x07A", b"\\0\\0\\0\\0\\x07B"])  # schema 7; the rows A and B
    >>> update = ChangePairs(np.array([0]), np.array([1]))
    >>> debezium_avro(tombstones=False, updates=True)(rows, update).values[0].as_py()
    b'\\x00\\x00\\x00\\x00\\x07\\x02A\\x02B\\x02\\x02u'
    """

    def write(rows: pa.Array, pairs: ChangePairs) -> EncodedChanges:
        if updates:
            kinds = kinds_of(pairs)
            before, after = pairs.before, pairs.after
            operations = pa.array([b"c", b"", b"u", b"d"], pa.binary()).take(pa.array(kinds))
            places = np.where(after == NONE, before, after)
        else:
            places, kinds = row_by_row(pairs)
            gone = (kinds == BEFORE) | (kinds == DELETE)
            before, after = np.where(gone, places, NONE), np.where(gone, NONE, places)
            operations = pa.array([b"c", b"d", b"c", b"d"], pa.binary()).take(pa.array(kinds))
        headers, bodies = pc.binary_slice(rows, 0, HEADER), pc.binary_slice(rows, HEADER, LONGEST)
        sides = (_side(bodies, before), _side(bodies, after))
        values = _joined(texts_at(headers, places), *sides, _OPERATION, operations)
        written = EncodedChanges(values, places, kinds)
        return with_tombstones(written) if tombstones else written

    return write


def _side(bodies: pa.Array, places: Positions) -> pa.Array:
    """The row before or after: a union of null and the row."""
    return pc.fill_null(_joined(_ROW, texts_at(bodies, places)), pa.scalar(_NONE, pa.binary()))


def _joined(*parts: pa.Array | bytes) -> pa.Array:
    binaries = [pa.scalar(part, pa.binary()) if isinstance(part, bytes) else part for part in parts]
    return pc.binary_join_element_wise(*binaries, pa.scalar(b"", pa.binary()))
