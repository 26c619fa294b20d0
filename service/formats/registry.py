"""The codec of a table: a decoder for its columns, an encoder for its rows."""

from __future__ import annotations

from service.formats.changes.changelog import Changelog
from service.formats.changes.debezium import Debezium
from service.formats.changes.decoder import ChangeDecoder
from service.formats.contract import Decoder, Encoder
from service.formats.datagen import DatagenDecoder
from service.formats.json.decoder import JsonDecoder
from service.formats.json.options import flag
from service.formats.print import PrintEncoder
from service.formats.row_encoder import RowEncoder
from service.plan.table import Table


def decoder(table: Table, columns: tuple[int, ...]) -> Decoder:
    """A decoder of the physical and METADATA columns at these indexes of `table.columns`, in this order."""
    form = table.connector.value_format
    if table.connector.kind == "upsert-kafka":
        return JsonDecoder(table, columns, upsert=True)
    if table.connector.kind == "datagen":
        return DatagenDecoder(table, columns)
    match form.kind if form else "":
        case "json":
            return JsonDecoder(table, columns, upsert=False)
        case "debezium-json" if form:
            return ChangeDecoder(table, columns, Debezium(wrapped=flag(form, "schema-include")))
        case "changelog-json":
            return ChangeDecoder(table, columns, Changelog())
        case kind:
            raise ValueError(f"a table cannot be read as {kind or 'rows without a format'}")


def encoder(
    table: Table,
    columns: tuple[int, ...],
    query: str,
    key: tuple[int, ...] | None = None,
    partitions: int | None = None,
) -> Encoder:
    """An encoder for the rows of `query`, whose c0, c1, ... fill the columns at these indexes.

    `key` holds the positions whose values tell rows apart (none of them: there is one row at most), by default those of
    the PRIMARY KEY, if there is one: of a key's -row and +row one update is made. `partitions` is the number of the
    topic's partitions: with it, rows whose key is not written stay in the partition of their key all the same.
    """
    if key is None and table.key:
        key = tuple(columns.index(k) for k in table.key if k in columns)
    if table.connector.kind == "print":
        return PrintEncoder(table, columns, key)
    return RowEncoder(table, columns, query, key, partitions)
