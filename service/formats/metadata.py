"""METADATA columns that Kafka itself keeps beside a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from service.plan.table import TableColumn
from service.plan.types import arrow

_TIMESTAMP_TYPES = pa.array(["NoTimestampType", "CreateTime", "LogAppendTime"])


def _headers(records: pa.Table) -> pa.ChunkedArray:
    """Headers as a MAP; of a name that repeats the last counts, as in Flink."""
    maps = [
        None if each is None else list({h["key"]: h["value"] for h in each}.items())
        for each in records["headers"].to_pylist()
    ]
    return pa.chunked_array([pa.array(maps, pa.map_(pa.string(), pa.binary()))])


def _timestamp_type(records: pa.Table) -> pa.ChunkedArray:
    return pa.chunked_array([_TIMESTAMP_TYPES.take(pc.add(records["timestamp_type"].combine_chunks(), 1))])


def _timestamp(records: pa.Table) -> pa.ChunkedArray:
    """Raises ValueError where one is out of range (contract.RECORD)."""
    if records["timestamp"].null_count:
        raise ValueError("the record's timestamp is out of the range of TIMESTAMP")
    return records["timestamp"]


_READERS: Mapping[str, tuple[str, Callable[[pa.Table], pa.ChunkedArray]]] = {
    "topic": ("topic", lambda r: r["topic"]),
    "partition": ("partition", lambda r: r["partition"]),
    "offset": ("offset", lambda r: r["offset"]),
    "timestamp": ("timestamp", _timestamp),
    "timestamp-type": ("timestamp_type", _timestamp_type),
    "headers": ("headers", _headers),
    "leader-epoch": ("offset", lambda r: pa.chunked_array([pa.nulls(r.num_rows, pa.int32())])),
}

WRITABLE_METADATA = ("timestamp", "headers")
"""The keys that a row's own values may set when it is written."""


def record_column(key: str) -> str:
    """Return the column of a record from which the metadata `key` is read."""
    return _READERS[key][0]


def metadata_column(records: pa.Table, column: TableColumn) -> pa.ChunkedArray:
    """Return a METADATA column of every record."""
    found = _READERS[column.metadata][1](records)
    wanted = arrow(column.type)
    return found if found.type == wanted else found.cast(wanted)
