"""Decoders of `json`, and of upsert-kafka over it: one row a record, a null value taking the key's row back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.sql import Sql
from service.formats.contract import Decoded
from service.formats.json.document import Document, Rejection
from service.formats.json.options import JsonOptions, json_options
from service.formats.json.parse import Fields
from service.formats.layout import Part, key_part, required, value_part
from service.formats.metadata import metadata_column, record_column
from service.formats.records import BAD_UTF8, block, dead, missing, positions, texts
from service.plan.table import ColumnKind, Format, Table

TOMBSTONE = Rejection(
    "tombstone", "the value is null, which takes a row back: this format has only rows that are added"
)


class JsonDecoder:
    """Rows from the JSON objects of value and key. With `upsert`, a record without a value deletes its key's row: it
    has weight -1 and only the key's columns."""

    def __init__(self, table: Table, columns: tuple[int, ...], *, upsert: bool) -> None:
        self._table = table
        self._columns = columns
        self._upsert = upsert
        physical = frozenset(i for i in columns if table.columns[i].kind is ColumnKind.PHYSICAL)
        self._value = value_part(table).only(physical)
        self._key = key_part(table).only(physical if upsert else physical - set(self._value.columns))
        self._value_document = Document(_fields(self._value), _options(table.connector.value_format))
        self._key_document = Document(_fields(self._key), _options(table.connector.key_format))
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
        bad: dict[int, Rejection] = {}
        values = records["value"]
        weights = np.ones(records.num_rows, dtype=np.int64)
        if values.null_count:
            absent = np.flatnonzero(values.is_null().to_numpy())
            if self._upsert:
                weights[absent] = -1
            else:
                bad.update(dict.fromkeys(map(int, absent), TOMBSTONE))
        found = dict(zip(self._value.columns, fields_of(self._value_document, values, sql, bad), strict=True))
        if self._key.columns:
            for index, column in zip(
                self._key.columns, fields_of(self._key_document, records["key"], sql, bad), strict=True
            ):
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

    def _check_required(self, found: dict[int, pa.ChunkedArray], deletes: pa.Array, bad: dict[int, Rejection]) -> None:
        for index in self._required:
            column = found[index]
            if column.null_count:
                name = self._table.columns[index].name
                exempt = index not in self._table.key and self._upsert
                missing(name, column, bad, except_in=deletes if exempt else None)


def fields_of(
    document: Document, values: pa.ChunkedArray, sql: Sql, bad: dict[int, Rejection]
) -> list[pa.ChunkedArray]:
    """The document's fields for every record, NULL where there is no value or none that can be read; `bad` grows."""
    decoded, broken = texts(values)
    bad.update(dict.fromkeys(broken, BAD_UTF8))
    if not decoded.null_count:
        answer = document.read(decoded, sql)
        bad.update(answer.bad)
        return answer.columns
    present = np.flatnonzero(decoded.is_valid().to_numpy())
    answer = document.read(decoded.drop_null(), sql)
    bad.update({int(present[i]): rejection for i, rejection in answer.bad.items()})
    spread = np.full(len(values), -1, dtype=np.int64)
    spread[present] = np.arange(len(present))
    taken = pa.array(spread, mask=spread < 0)
    return [column.take(taken) for column in answer.columns]


def _fields(part: Part) -> Fields:
    return Fields(part.names, part.types)


def _options(form: Format | None) -> JsonOptions:
    return JsonOptions() if form is None else json_options(form)
