"""The encoder of every format whose rows are JSON objects: rows to text in one statement, then an envelope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.hashing import bucket_hash
from operators.sql import Sql
from service.formats.changes.change_encodings import (
    ChangeEncoding,
    changelog,
    debezium,
    debezium_without_updates,
    plain,
    upsert,
)
from service.formats.changes.row_kinds import pair
from service.formats.contract import OUT
from service.formats.headers import own_headers, row_headers
from service.formats.json.options import json_options
from service.formats.json.parse import whole
from service.formats.json.text import object_text
from service.formats.layout import Part, key_part, value_part
from service.plan.table import ColumnKind, Format, Table

_HEADERS_OPTION = "tailrace.headers"


class RowEncoder:
    """Picklable. `columns` are the indexes into table.columns that c0, c1, ... fill, `key` the positions among them
    whose values tell rows apart; `partitions` is how many the topic has, for a key that is not written."""

    def __init__(
        self, table: Table, columns: tuple[int, ...], query: str, key: tuple[int, ...] | None, partitions: int | None
    ) -> None:
        place = {index: f"c{position}" for position, index in enumerate(columns)}
        self._key = key
        self._query = query
        self._form = table.connector.value_format or Format("json")
        self._keyed = bool(key_part(table).columns)
        self._tombstones = self._keyed and bool(table.key)
        self._partitions = None if self._keyed or key is None else partitions
        value = _object(value_part(table), place, self._form)
        key_text = _object(key_part(table), place, table.connector.key_format or self._form) if self._keyed else "NULL"
        self._statement = f"SELECT {value} AS value, {key_text} AS key FROM changes"
        self._kind = "upsert" if table.connector.kind == "upsert-kafka" else self._form.kind
        self._headers = table.connector.options.get(_HEADERS_OPTION, "false").lower() == "true"
        metadata = {
            c.metadata: position
            for position, c in enumerate(table.columns[index] for index in columns)
            if c.kind is ColumnKind.METADATA
        }
        self._timestamp, self._own_headers = metadata.get("timestamp"), metadata.get("headers")
        self._event_time = columns.index(table.rowtime) if table.rowtime in columns else None

    def encode(self, changes: pa.Table, sql: Sql) -> pa.Table:
        """Records (OUT) for the consolidated net changes of one batch."""
        if changes.num_rows == 0:
            return OUT.empty_table()
        pairs = pair(changes, self._key)
        texts = sql(self._statement, {"changes": changes})
        written = self._envelope()(whole(texts["value"]), pairs)
        rows = pa.array(written.rows)
        count = len(written.rows)

        def column(position: int | None) -> pa.Array | None:
            return None if position is None else whole(changes.column(position)).take(rows)

        timestamp = column(self._timestamp)
        own = column(self._own_headers)
        headers: pa.Array = pa.nulls(count, OUT.field("headers").type)
        if self._headers:
            headers = row_headers(written.kinds, self._query, column(self._event_time), own)
        elif own is not None:
            headers = own_headers(own)
        return pa.table(
            [
                whole(texts["key"]).take(rows).cast(pa.binary()) if self._keyed else pa.nulls(count, pa.binary()),
                written.values.cast(pa.binary()),
                self._chosen(changes, rows),
                pa.nulls(count, pa.int64()) if timestamp is None else pc.divide(timestamp.view(pa.int64()), 1000),
                headers,
            ],
            schema=OUT,
        )

    def _envelope(self) -> ChangeEncoding:
        match self._kind:
            case "json":
                return plain
            case "upsert":
                return upsert
            case "debezium-json":
                as_flink = self._form.options.get("tailrace.update", "u").lower() == "d-c"
                return (debezium_without_updates if as_flink else debezium)(tombstones=self._tombstones)
            case "changelog-json":
                return changelog
            case kind:
                raise ValueError(f"rows cannot be written as {kind}")

    def _chosen(self, changes: pa.Table, rows: pa.Array) -> pa.Array:
        """The partition by the row's key where the key is not in the record, so that a key stays in one partition."""
        if not self._partitions:
            return pa.nulls(len(rows), pa.int32())
        hashes = bucket_hash(changes, self._key or ()) % np.uint64(self._partitions)
        return pa.array(hashes.astype(np.int32)).take(rows)


def _object(part: Part, place: Mapping[int, str], form: Format) -> str:
    """The JSON object of a part's columns; a column that is not written is NULL."""
    expressions: Sequence[str] = [place.get(index, "NULL") for index in part.columns]
    return object_text(expressions, part.names, part.types, json_options(form))
