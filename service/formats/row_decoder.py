"""The decoder of records that are rows: one row a record; for upsert-kafka a null value takes the key's row back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.sql import Sql
from service.formats.contract import DeadLetter, Decoded, PartReader
from service.formats.metadata import metadata_column, record_column
from service.formats.record_parts import Part, key_part, required, value_part
from service.formats.records import block, dead, missing, positions
from service.plan.table import ColumnKind, Format, Table

ReaderOf = Callable[[Part, Format | None, Part], PartReader]
"""Makes the reader of the wanted columns of a key or value, from its form and all of its columns."""

TOMBSTONE = DeadLetter(
    "tombstone", "the value is null, which takes a row back: this format has only rows that are added"
)


class RowDecoder:
    """Reads rows from values and keys, each by the reader of its form. Picklable.

    With `upsert`, a record without a value deletes its key's row: it has weight -1 and only the key's columns.
    """

    def __init__(self, table: Table, columns: tuple[int, ...], readers: ReaderOf, *, upsert: bool) -> None:
        self._table = table
        self._columns = columns
        self._upsert = upsert
        physical = frozenset(i for i in columns if table.columns[i].kind is ColumnKind.PHYSICAL)
        self._value = value_part(table).only(physical)
        self._key = key_part(table).only(physical if upsert else physical - set(self._value.columns))
        self._value_reader = readers(self._value, table.connector.value_format, value_part(table))
        self._key_reader = readers(self._key, table.connector.key_format, key_part(table))
        self._required = frozenset(i for i in columns if required(table, i))

    def needs(self) -> tuple[str, ...]:
        wanted = {"value": None}
        if self._key.columns:
            wanted["key"] = None
        for index in self._columns:
            column = self._table.columns[index]
            if column.kind is ColumnKind.METADATA:
                wanted[record_column(column.metadata)] = None
        return tuple(name for name in wanted if name not in ("topic", "partition", "offset"))

    def decode(self, records: pa.Table, sql: Sql) -> Decoded:
        bad: dict[int, DeadLetter] = {}
        values = records["value"]
        weights = np.ones(records.num_rows, dtype=np.int64)
        if values.null_count:
            absent = np.flatnonzero(values.is_null().to_numpy())
            if self._upsert:
                weights[absent] = -1
            else:
                bad.update(dict.fromkeys(map(int, absent), TOMBSTONE))
        found = dict(zip(self._value.columns, self._value_reader.read(values, sql, bad), strict=True))
        if self._key.columns:
            keys = self._key_reader.read(records["key"], sql, bad)
            for index, column in zip(self._key.columns, keys, strict=True):
                # The value's own copy of a key column counts, where it has one.
                found[index] = column if index not in found else pc.coalesce(found[index], column)
        for index in self._columns:
            if self._table.columns[index].kind is ColumnKind.METADATA:
                found[index] = metadata_column(records, self._table.columns[index])
        self._check_required(found, pa.array(weights < 0), bad)
        changes = block([found[i] for i in self._columns], pa.array(weights))
        if not bad:
            return Decoded(changes, dead(records, bad))
        return Decoded(changes.take(positions(records.num_rows, bad)), dead(records, bad))

    def _check_required(self, found: dict[int, pa.ChunkedArray], deletes: pa.Array, bad: dict[int, DeadLetter]) -> None:
        for index in self._required:
            column = found[index]
            if column.null_count:
                name = self._table.columns[index].name
                exempt = index not in self._table.key and self._upsert
                missing(name, column, bad, except_in=deletes if exempt else None)
