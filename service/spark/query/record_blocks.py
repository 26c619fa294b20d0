"""Blocks of Kafka records as `java/tailrace/kafka` passes them on, and the columns of records that are made of them.

The values of a block are in a file (`value_files`). The other fields of the records are packed numbers and texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.spark.query.value_files import ValueFiles

OFFSET_BITS = 44
"""Bits of a position that hold the offset: 17 * 10^12 records a partition; the bits above hold the partition. As in
`java/tailrace/kafka/KafkaReader.java`."""

_NO_TIME = -(2**63)
"""The timestamp of a record whose own is outside the range of a TIMESTAMP."""

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def records_of(rows: pa.RecordBatch, files: ValueFiles, wanted: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the records (columns of `formats.contract.RECORD`) of each block: value and place, and those `wanted`."""
    for row in range(rows.num_rows):
        yield _records(_Block(rows, row), files, wanted)


class _Block:
    """One row from the JVM."""

    def __init__(self, rows: pa.RecordBatch, row: int) -> None:
        self._rows = rows
        self._row = row

    def value(self, name: str) -> pa.Scalar:
        return self._rows.column(name)[self._row]

    def packed(self, name: str) -> pa.Buffer:
        return self.value(name).as_buffer()

    def numbers(self, name: str) -> np.ndarray:
        return np.frombuffer(self.packed(name), np.int32)

    def longs(self, name: str) -> pa.Array:
        buffer = self.packed(name)
        return pa.Array.from_buffers(pa.int64(), buffer.size // 8, [None, buffer])

    def texts(self, lengths: str, texts: str, type_: pa.DataType | None = None) -> pa.Array:
        return _texts(self.numbers(lengths), self.packed(texts), type_ or pa.binary())


def _records(block: _Block, files: ValueFiles, wanted: Sequence[str]) -> pa.Table:
    position = block.longs("positions")
    lengths = block.numbers("value_lengths")
    size = int(np.maximum(lengths, 0, dtype=np.int64).sum())
    place = block.value("value_file").as_py(), block.value("value_block").as_py()
    columns = {"value": _texts(lengths, files.values(*place, size) if size else _NOTHING, pa.binary())}
    for name in wanted:
        columns[name] = _OTHERS[name](block)
    columns["partition"] = pc.shift_right(position, OFFSET_BITS).cast(pa.int32())
    columns["offset"] = pc.bit_wise_and(position, 2**OFFSET_BITS - 1)
    columns["topic"] = pa.repeat(block.value("topic"), len(position))
    return pa.table(columns)


_NOTHING = pa.py_buffer(b"")


def _texts(lengths: np.ndarray, texts: pa.Buffer, type_: pa.DataType) -> pa.Array:
    """Texts that lie one behind the other; one of length -1 is NULL."""
    there = lengths >= 0
    ends = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths if there.all() else np.maximum(lengths, 0), out=ends[1:])
    valid = None if there.all() else pa.array(there).buffers()[1]
    return pa.Array.from_buffers(type_, len(lengths), [valid, pa.py_buffer(ends), texts])


def _timestamps(block: _Block) -> pa.Array:
    found = block.longs("timestamps")
    there = pc.not_equal(found, _NO_TIME)
    return pc.if_else(there, found, None).cast(pa.timestamp("us"))


def _headers(block: _Block) -> pa.Array:
    counts = block.numbers("header_counts")
    names = block.texts("header_name_lengths", "header_names", pa.string())
    values = block.texts("header_value_lengths", "header_values")
    pairs = pa.StructArray.from_arrays([names, values], fields=list(_HEADERS.value_type))
    ends = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(np.maximum(counts, 0), out=ends[1:])
    return pa.ListArray.from_arrays(pa.array(ends), pairs, _HEADERS, mask=pa.array(counts < 0))


_OTHERS = {
    "key": lambda block: block.texts("key_lengths", "keys"),
    "timestamp": _timestamps,
    "timestamp_type": lambda block: pa.array(block.numbers("timestamp_types")),
    "headers": _headers,
}
"""The functions that make the other columns of the records from a block."""
