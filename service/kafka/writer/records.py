"""Rows in the form that librdkafka takes: addresses and lengths, computed for a whole block at once.

No row becomes a Python object on its way to Kafka: keys and values stay in Arrow's memory, and librdkafka copies them
from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
RECORDS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
        ("timestamp", pa.int64()),
    ]
)
"""The records to write, in order. Only `topic` is required; a missing column is null in every row. partition null =
chosen by the key as Java's default partitioner does; key null = none; value null = a tombstone; timestamp in
milliseconds since the epoch, null = when it is written."""

Addresses = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

_EMPTY = np.zeros(1, dtype=np.uint8)
"""The address of an empty key or value: librdkafka takes an address of zero as null."""


class Strings(NamedTuple):
    """A binary column in memory: the address (0 = null) and length of each row. `owner` keeps the bytes alive."""

    address: Addresses
    length: Integers
    owner: object


class TopicRows(NamedTuple):
    """Rows of one topic, in order: `rows` of them, keys and values of `size` bytes. A column of nulls only is None."""

    topic: str
    key: Strings | None
    value: Strings | None
    partition: npt.NDArray[np.int32] | None
    timestamp: Integers | None
    headers: Headers | None
    rows: int
    size: int


class Headers(NamedTuple):
    """Headers of all rows, one after the other; those of row i are first[i] to first[i + 1].

    A name is a code; the few distinct names lie at `name_address`, ended by a zero byte as C wants them, in `names`.
    """

    first: Integers
    code: npt.NDArray[np.int32]
    name_address: Addresses
    names: npt.NDArray[np.uint8]
    value: Strings


def by_topic(records: pa.RecordBatch) -> Iterator[TopicRows]:
    """Split `records` by topic; the order within a topic is kept."""
    topics = _column(records, "topic")
    if topics is None or topics.null_count:
        raise ValueError("every record needs a topic")
    if pa.types.is_dictionary(topics.type):
        topics = topics.cast(pa.string())
    distinct = pc.unique(topics).to_pylist()
    for topic in distinct:
        yield _rows_of(topic, records if len(distinct) == 1 else records.filter(pc.equal(topics, topic)))


def one_row(topic: str, partition: int, key: bytes, value: bytes) -> TopicRows:
    """Return a single record."""
    held = [np.frombuffer(text, dtype=np.uint8) for text in (key, value)]
    strings = [Strings(np.array([each.ctypes.data], np.uint64), np.array([each.size]), each) for each in held]
    where = np.array([partition], np.int32)
    return TopicRows(topic, strings[0], strings[1], where, timestamp=None, headers=None, rows=1, size=0)


def _rows_of(topic: str, records: pa.RecordBatch) -> TopicRows:
    key, value = (_strings(_column(records, name)) for name in ("key", "value"))
    partition, timestamp = (_column(records, name) for name in ("partition", "timestamp"))
    return TopicRows(
        topic=topic,
        key=key,
        value=value,
        partition=None if partition is None else _numbers(partition, pa.int32(), -1),
        timestamp=None if timestamp is None else _numbers(timestamp, pa.int64(), 0),
        headers=_headers(_column(records, "headers")),
        rows=records.num_rows,
        size=sum(int(each.length.sum()) for each in (key, value) if each is not None),
    )


def _column(records: pa.RecordBatch, name: str) -> pa.Array | None:
    """The column, or None where it is missing or null in every row."""
    place = records.schema.get_field_index(name)
    if place < 0:
        return None
    column = records.column(place)
    return None if column.null_count == len(column) and len(column) else column


def _numbers(column: pa.Array, kind: pa.DataType, absent: int) -> npt.NDArray[Any]:
    numbers: npt.NDArray[Any] = column.cast(kind).fill_null(absent).to_numpy(zero_copy_only=False)
    return numbers


def _strings(column: pa.Array | None) -> Strings | None:
    """Addresses and lengths of the rows of a binary or string column."""
    if column is None:
        return None
    if not (pa.types.is_binary(column.type) or pa.types.is_string(column.type)):
        column = column.cast(pa.binary())
    _, offsets, data = column.buffers()
    if not len(column):
        return Strings(np.zeros(0, np.uint64), np.zeros(0, np.int64), column)
    bounds = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    length = np.diff(bounds)
    start = _EMPTY.ctypes.data if data is None or not data.address else data.address
    address = (bounds[:-1] + start).astype(np.uint64)
    if column.null_count:
        null = column.is_null().to_numpy(zero_copy_only=False)
        address[null] = 0
        length[null] = 0
    return Strings(address, length, column)


def _headers(column: pa.Array | None) -> Headers | None:
    """Headers of a list<struct<key, value>> or map<string, binary> column."""
    if column is None:
        return None
    if pa.types.is_map(column.type):
        column = column.cast(HEADERS)
    items = column.flatten()
    names, values = items.flatten()
    counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    first = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    encoded = names.cast(pa.string()).dictionary_encode()
    code = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    value = _strings(values)
    if value is None:
        value = Strings(np.zeros(len(code), np.uint64), np.zeros(len(code), np.int64), None)
    spelled = [name.encode() + b"\0" for name in encoded.dictionary.to_pylist()]
    names = np.frombuffer(b"".join(spelled) or b"\0", dtype=np.uint8)
    starts = np.concatenate(([0], np.cumsum([len(name) for name in spelled], dtype=np.int64)))[: len(spelled)]
    return Headers(first, code, (starts + names.ctypes.data).astype(np.uint64), names, value)
