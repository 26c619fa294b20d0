"""The records of debezium-json, read and written: {"before":…,"after":…,"op":"c"|"r"|"u"|"d"}, when read perhaps in an
envelope with their schema."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.changes.beside_rows import of_millis
from service.formats.changes.change_encodings import (
    BEFORE,
    DELETE,
    ChangeEncoding,
    EncodedChanges,
    joined,
    kinds_of,
    row_by_row,
    texts_at,
    with_tombstones,
)
from service.formats.changes.change_pairs import NONE, ChangePairs
from service.formats.changes.decoder import ChangeRows, dead_where, one_of
from service.formats.contract import DeadLetter
from service.formats.json.parse import Fields
from service.formats.record_parts import Part
from service.plan.table import TableColumn
from service.plan.types import BIGINT, STRING, DataType, Map, Row, arrow

_SOURCE_KEYS = {
    "value.source.timestamp": "ts_ms",
    "value.source.database": "db",
    "value.source.schema": "schema",
    "value.source.table": "table",
}

_UNKNOWN = DeadLetter("bad-value", 'the change has no "op" that is known: c, r, u or d')
_NO_BEFORE = DeadLetter(
    "bad-value",
    'an update or a delete has no "before": the database must log whole rows (in PostgreSQL: REPLICA IDENTITY FULL)',
)
_NO_AFTER = DeadLetter("bad-value", 'an insert or an update has no "after"')


class Debezium:
    """The shape of debezium-json; with `wrapped`, of a record with schema and payload."""

    def __init__(self, *, wrapped: bool) -> None:
        self._wrapped = wrapped
        self._inside: tuple[str, ...] = ()

    def fields(self, rows: Part, metadata: Sequence[TableColumn]) -> Fields:
        row = Row(rows.names, rows.types)
        inside: dict[str, DataType] = {"before": row, "after": row, "op": STRING}
        wanted = {c.metadata for c in metadata}
        if "value.ingestion-timestamp" in wanted:
            inside["ts_ms"] = BIGINT
        if wanted & {*_SOURCE_KEYS, "value.source.properties"}:
            inside["source"] = Map(STRING, STRING)
        self._inside = tuple(inside)
        payload = Row(tuple(inside), tuple(inside.values()))
        if not self._wrapped:
            return Fields(payload.names, payload.types, repeats=2)
        if "value.schema" in wanted:
            return Fields(("payload", "schema"), (payload, STRING), repeats=2)
        return Fields(("payload",), (payload,), repeats=2)

    def change_rows(self, fields: Sequence[pa.Array], records: pa.Array) -> ChangeRows:
        inside = self._payload(fields)
        before, after, op = inside["before"], inside["after"], inside["op"]
        comes, leaves = one_of(op, "c", "r", "u"), one_of(op, "u", "d")
        no_before = leaves & before.is_null().to_numpy(zero_copy_only=False)
        no_after = comes & after.is_null().to_numpy(zero_copy_only=False)
        bad = {
            **dead_where(no_after, _NO_AFTER),
            **dead_where(no_before, _NO_BEFORE),
            **dead_where(~(comes | leaves), _UNKNOWN),
        }
        return ChangeRows(before, after, leaves, comes, leaves & comes, bad)

    def metadata(self, fields: Sequence[pa.Array], column: TableColumn) -> pa.Array:
        inside = self._payload(fields)
        wanted = arrow(column.type)
        match column.metadata:
            case "value.schema":
                found = fields[1] if self._wrapped else pa.nulls(len(fields[0]), pa.string())
            case "value.ingestion-timestamp":
                found = of_millis(inside["ts_ms"])
            case "value.source.properties":
                found = inside["source"]
            case "value.source.timestamp":
                found = of_millis(_whole(_property(inside["source"], "ts_ms")))
            case key if key in _SOURCE_KEYS:
                found = _property(inside["source"], _SOURCE_KEYS[key])
            case key:
                raise ValueError(f"debezium-json has no metadata '{key}'")
        return found if found.type == wanted else found.cast(wanted)

    def _payload(self, fields: Sequence[pa.Array]) -> dict[str, pa.Array]:
        if not self._wrapped:
            return dict(zip(self._inside, fields, strict=True))
        return {name: pc.struct_field(fields[0], [i]) for i, name in enumerate(self._inside)}


def _whole(texts: pa.Array) -> pa.Array:
    """Texts as numbers; NULL where one is no number."""
    return pc.cast(pc.if_else(pc.match_substring_regex(texts, r"^-?[0-9]{1,15}$"), texts, None), pa.int64())


def _property(source: pa.MapArray, key: str) -> pa.Array:
    return pc.map_lookup(source, pa.scalar(key), "first")


def encode(*, tombstones: bool) -> ChangeEncoding:
    """Return an encoding that writes an update as one record of op "u", between an insert ("c") and a delete ("d").

    After a delete comes, if asked for, a record without a value, with which Kafka forgets the key.

    >>> texts = pa.array(['{"n":1}', '{"n":2}'])
    >>> pairs = ChangePairs(np.array([-1, 0, 1]), np.array([0, 1, -1]))  # an insert, an update, a delete
    >>> print(*encode(tombstones=True)(texts, pairs).values, sep="\\n")
    {"before":null,"after":{"n":1},"op":"c"}
    {"before":{"n":1},"after":{"n":2},"op":"u"}
    {"before":{"n":2},"after":null,"op":"d"}
    None
    """

    def write(texts: pa.Array, pairs: ChangePairs) -> EncodedChanges:
        kinds = kinds_of(pairs)
        ops = pa.array(["c", "", "u", "d"]).take(pa.array(kinds))
        values = _written(texts_at(texts, pairs.before), texts_at(texts, pairs.after), ops)
        rows = np.where(pairs.after == NONE, pairs.before, pairs.after)
        return (
            with_tombstones(EncodedChanges(values, rows, kinds)) if tombstones else EncodedChanges(values, rows, kinds)
        )

    return write


def encode_without_updates(*, tombstones: bool) -> ChangeEncoding:
    """Return the encoding of Flink: an update is a delete ("d") and an insert ("c"), as are -U and +U.

    >>> texts = pa.array(['{"n":1}', '{"n":2}'])
    >>> pairs = ChangePairs(np.array([-1, 0, 1]), np.array([0, 1, -1]))  # an insert, an update, a delete
    >>> print(*encode_without_updates(tombstones=False)(texts, pairs).values, sep="\\n")
    {"before":null,"after":{"n":1},"op":"c"}
    {"before":{"n":1},"after":null,"op":"d"}
    {"before":null,"after":{"n":2},"op":"c"}
    {"before":{"n":2},"after":null,"op":"d"}
    """

    def write(texts: pa.Array, pairs: ChangePairs) -> EncodedChanges:
        rows, kinds = row_by_row(pairs)
        gone = (kinds == BEFORE) | (kinds == DELETE)
        ops = pa.array(["c", "d", "c", "d"]).take(pa.array(kinds))
        before = texts_at(texts, np.where(gone, rows, NONE))
        after = texts_at(texts, np.where(gone, NONE, rows))
        values = _written(before, after, ops)
        written = EncodedChanges(values, rows, kinds)
        return with_tombstones(written) if tombstones else written

    return write


def _written(before: pa.Array, after: pa.Array, ops: pa.Array) -> pa.Array:
    null = pa.scalar("null")
    return joined(
        '{"before":', pc.fill_null(before, null), ',"after":', pc.fill_null(after, null), ',"op":"', ops, '"}'
    )
