"""Records for the dead-letter and late topics. Their layout is documented in docs/operations.md.

A record that could not be decoded goes out with its own key, value and headers, and headers that say why and whence. A
row that could not be computed, or that came late, goes out as a JSON object of its columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.names import WEIGHT
from operators.sql import Sql
from service.formats.contract import OUT

HEADER = "tailrace-"
"""The prefix of every header that is added."""

NOT_COMPUTED = "not-computed"
"""The reason, in metrics, of a row that an operator could not compute; the row itself has the error."""

NOT_ENCODABLE = "not-encodable"
"""The reason of a row that the format of its sink cannot hold; its detail names the column and the cause."""

_LONGEST_HEADER = 4096
"""The most bytes of a header of ours: a reason may quote a value."""

NOT_DECODED = "not-decoded"
"""The reason of a record that makes a decoder fail unexpectedly; its detail is the error."""

REASONS = (
    "bad-avro",
    "bad-csv",
    "bad-json",
    "bad-protobuf",
    "bad-utf8",
    "bad-value",
    "missing-field",
    "missing-not-null",
    NOT_COMPUTED,
    NOT_DECODED,
    NOT_ENCODABLE,
    "schema-mismatch",
    "tombstone",
    "unknown-schema",
    "wrong-type",
)
"""The words that metrics use as reasons of dead letters."""


def dead_records(dead: pa.Table) -> pa.Table:
    """Return records (OUT) of dead ones (DEAD_RECORD): bytes as they came, headers tailrace-reason, -detail, -topic,
    -partition, -offset after the record's own."""
    rows = dead.num_rows
    names = set(dead.schema.names)
    headers = dead["headers"].to_pylist() if "headers" in names else [None] * rows
    described = zip(
        headers,
        *(dead[name].to_pylist() for name in ("reason", "detail", "topic", "partition", "offset")),
        strict=True,
    )
    new = [
        [*(own or ()), *_headers(reason=reason, detail=detail, topic=topic, partition=partition, offset=offset)]
        for own, reason, detail, topic, partition, offset in described
    ]
    return pa.table(
        {
            "key": dead["key"] if "key" in names else pa.nulls(rows, pa.binary()),
            "value": dead["value"] if "value" in names else pa.nulls(rows, pa.binary()),
            "partition": pa.nulls(rows, pa.int32()),
            "timestamp": pa.nulls(rows, pa.int64()),
            "headers": pa.array(new, OUT.field("headers").type),
        },
        schema=OUT,
    )


def row_records(rows: pa.Table, names: Sequence[str], operator: str, why: str, sql: Sql) -> pa.Table:
    """Return records (OUT) of rows that came late, or could not be computed or encoded (`why`).

    The value is a JSON object of the columns under their `names` (a column without one is partial work and left out)
    and `_weight`; BYTES are in base64. Headers name the operator and the reason: what a row says in its `_reason` is
    the reason of one that could not be computed, and the detail of one that could not be encoded.
    """
    named = [(name, f"c{i}", rows.schema.field(f"c{i}").type) for i, name in enumerate(names) if name]
    pairs = ", ".join(
        f"'{name.replace(chr(39), chr(39) * 2)}', {f'to_base64({column})' if pa.types.is_binary(type_) else column}"
        for name, column, type_ in [*named, (WEIGHT, WEIGHT, pa.int64())]
    )
    values = sql(f"SELECT encode(CAST(json_object({pairs}) AS VARCHAR)) AS v FROM r", {"r": rows})
    reasons = rows["_reason"].to_pylist() if "_reason" in rows.schema.names else [why] * rows.num_rows
    if why == NOT_ENCODABLE:
        headers = [_headers(reason=why, detail=detail, operator=operator) for detail in reasons]
    else:
        headers = [_headers(reason=reason, operator=operator) for reason in reasons]
    return pa.table(
        {
            "key": pa.nulls(rows.num_rows, pa.binary()),
            "value": values["v"],
            "partition": pa.nulls(rows.num_rows, pa.int32()),
            "timestamp": pa.nulls(rows.num_rows, pa.int64()),
            "headers": pa.array(headers, OUT.field("headers").type),
        },
        schema=OUT,
    )


def fitted(records: pa.Table, most: int) -> pa.Table:
    """Return the records (OUT) with those that are larger than `most` bytes cut, and a header tailrace-cut that says
    so.

    The value is cut first; a key and headers of the record's own that leave no room for it are left out.
    """
    sizes = sum(pc.fill_null(pc.binary_length(records[name]), 0).to_numpy() for name in ("key", "value"))
    # The sizes of a record and of each header, beside their bytes, are never larger.
    sizes += np.array([64 + sum(map(_size, each or ())) for each in records["headers"].to_pylist()], dtype=np.int64)
    large = np.flatnonzero(sizes > most)
    if not len(large):
        return records
    rows = records.to_pylist()
    for place in large:
        rows[place] = _cut(rows[place], most)
    return pa.Table.from_pylist(rows, schema=OUT)


def _cut(record: dict[str, Any], most: int) -> dict[str, Any]:
    key, value, headers = record["key"], record["value"] or b"", list(record["headers"] or ())
    room = most - 64 - _SAYING - len(key or b"") - sum(map(_size, headers))
    cuts = []
    if room < 0:
        headers, key = [h for h in headers if h["key"].startswith(HEADER)], None
        room = most - 64 - _SAYING - sum(map(_size, headers))
        cuts.append("without its key and its own headers")
    if len(value) > room:
        cuts.append(f"{max(room, 0)} of {len(value)} bytes")
    return {
        **record,
        "key": key,
        "value": None if record["value"] is None else value[: max(room, 0)],
        "headers": [*headers, *_headers(cut=", ".join(cuts))],
    }


_SAYING = 128
"""The bytes of the header that marks a cut record."""


def _size(header: Mapping[str, Any]) -> int:
    return 16 + len(header["key"].encode()) + len(header["value"] or b"")


def _headers(**values: object) -> list[dict[str, object]]:
    return [{"key": HEADER + name, "value": str(value).encode()[:_LONGEST_HEADER]} for name, value in values.items()]
