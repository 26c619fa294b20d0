"""Encoding of the changes of an output: a row that its format cannot hold is a dead letter, and the others are written.

An update to a row that cannot be encoded is written as a delete of the previous row, an update from one as an insert of
the new row. This depends on the row alone, so a replay writes the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.names import WEIGHT
from operators.sql import Sql
from service.formats.contract import OUT, Encoder
from service.formats.not_encodable import NotEncodable
from service.runtime.dead_rows import block_of, middle, without_dead_rows


class EncodedBlock(NamedTuple):
    """Records (formats.contract.OUT), and the changes that could not be encoded, with a `_reason`; None if there are
    none."""

    records: pa.Table
    dead: pa.Table | None


def encode_changes(changes: pa.Table, encoder: Encoder, sql: Sql) -> EncodedBlock:
    """Encode the net changes of an output. Raises errors that no row causes: a registry that does not answer."""
    dead: list[pa.Table] = []
    found, failed = without_dead_rows(changes, lambda rows: _encodable(rows, encoder, sql), _between_updates)
    records = [OUT.empty_table()]
    for each in found:
        records.append(each.records)
        dead += [] if each.dead is None else [each.dead]
    if failed:
        dead.append(block_of(failed))
    return EncodedBlock(pa.concat_tables(records), pa.concat_tables(dead) if dead else None)


def _between_updates(changes: pa.Table) -> int:
    """Return a place near the middle, but not between the two rows of an update unless there is no other."""
    half = middle(changes)
    open_end = changes[WEIGHT][half - 1].as_py() < 0 and half + 1 < changes.num_rows
    return half + 1 if open_end else half


def _encodable(rows: pa.Table, encoder: Encoder, sql: Sql) -> EncodedBlock:
    """Encode the rows except those that the encoder rejects: one more attempt for each check that rejects some."""
    dead: list[pa.Table] = []
    while True:
        try:
            return EncodedBlock(encoder.encode(rows, sql), pa.concat_tables(dead) if dead else None)
        except NotEncodable as error:
            refused = rows.take(pa.array(error.rows))
            dead.append(refused.append_column("_reason", pa.array(error.reasons, pa.string())))
            kept = np.ones(rows.num_rows, dtype=np.bool_)
            kept[error.rows] = False
            rows = rows.filter(pa.array(kept))
