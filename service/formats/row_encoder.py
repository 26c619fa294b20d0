"""The encoder of rows: keys and values in one statement, then the form that changes have on the wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.hashing import bucket_hash
from operators.sql import Sql
from service.formats.changes.change_encodings import ChangeEncoding, EncodedChanges
from service.formats.changes.change_pairs import is_update, pair, split
from service.formats.contract import OUT, PartWriter
from service.formats.headers import own_headers, row_headers
from service.formats.json.parse import whole
from service.formats.not_encodable import NotEncodable
from service.formats.record_parts import Part, key_part, value_part
from service.formats.record_size import RecordLimit
from service.plan.table import ColumnKind, Format, Table

_HEADERS_OPTION = "tailrace.headers"


WriterOf = Callable[[Part, Format, Mapping[int, str]], PartWriter]
"""Makes the writer of a key or value, from its form and the position of each column in a block."""


class RowEncoder:
    """Writes the rows of a block as records. Picklable.

    `columns` are the indexes into table.columns that c0, c1, ... fill, `key` the positions among them whose values tell
    rows apart; `partitions` is how many the topic has, for a key that is not written. `encoding` gives the form of
    changes. A record that does not fit into `room` is not written.
    """

    def __init__(
        self,
        table: Table,
        columns: tuple[int, ...],
        query: str,
        key: tuple[int, ...] | None,
        partitions: int | None,
        writers: WriterOf,
        encoding: Callable[[bool], ChangeEncoding],
        room: RecordLimit | None = None,
    ) -> None:
        place = {index: f"c{position}" for position, index in enumerate(columns)}
        self._key = key
        self._query = query
        form = table.connector.value_format or Format("json")
        keyed = bool(key_part(table).columns)
        self._tombstones = keyed and bool(table.key)
        self._partitions = None if keyed or key is None else partitions
        self._value_writer = writers(value_part(table), form, place)
        self._key_writer = writers(key_part(table), table.connector.key_format or form, place) if keyed else None
        of_key = self._key_writer.expression if self._key_writer else "NULL"
        self._statement = f"SELECT {self._value_writer.expression} AS value, {of_key} AS key FROM changes"
        self._encoding = encoding
        self._room = room
        self._headers = table.connector.options.get(_HEADERS_OPTION, "false").lower() == "true"
        metadata = {
            c.metadata: position
            for position, c in enumerate(table.columns[index] for index in columns)
            if c.kind is ColumnKind.METADATA
        }
        self._timestamp, self._own_headers = metadata.get("timestamp"), metadata.get("headers")
        self._event_time = columns.index(table.rowtime) if table.rowtime in columns else None

    def encode(self, changes: pa.Table, sql: Sql) -> pa.Table:
        """Return records (OUT) for the consolidated net changes of one batch. Raises NotEncodable."""
        if changes.num_rows == 0:
            return OUT.empty_table()
        texts = sql(self._statement, {"changes": changes})
        values = self._value_writer.finish(whole(texts["value"]))
        keys = None if self._key_writer is None else self._key_writer.finish(whole(texts["key"]))
        pairs = pair(changes, self._key)
        written = self._encoding(self._tombstones)(values, pairs)
        records = self._records(changes, written, keys)
        if self._room is None:
            return records
        large = self._room.too_large(records)
        together = is_update(pairs) & np.isin(pairs.after, written.rows[list(large)])
        if together.any():
            # A record that has the rows before and after may be too large where neither is.
            written = self._encoding(self._tombstones)(values, split(pairs, together))
            records = self._records(changes, written, keys)
            large = self._room.too_large(records)
        if large:
            rows, first = np.unique(written.rows[list(large)], return_index=True)
            reasons = list(large.values())
            raise NotEncodable(rows, [reasons[place] for place in first])
        return records

    def _records(self, changes: pa.Table, written: EncodedChanges, keys: pa.Array | None) -> pa.Table:
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
                pa.nulls(count, pa.binary()) if keys is None else keys.take(rows).cast(pa.binary()),
                written.values.cast(pa.binary()),
                self._chosen(changes, rows),
                pa.nulls(count, pa.int64()) if timestamp is None else pc.divide(timestamp.view(pa.int64()), 1000),
                headers,
            ],
            schema=OUT,
        )

    def _chosen(self, changes: pa.Table, rows: pa.Array) -> pa.Array:
        """The partition by the row's key where the key is not in the record, so that a key stays in one partition."""
        if not self._partitions:
            return pa.nulls(len(rows), pa.int32())
        hashes = bucket_hash(changes, self._key or ()) % np.uint64(self._partitions)
        return pa.array(hashes.astype(np.int32)).take(rows)
