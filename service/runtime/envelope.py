"""Envelopes: how blocks and clocks travel between the levels of a program.

An envelope is one row of an exchange, addressed to a shard of a level. A level passes on envelopes for later levels
unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

import pyarrow as pa

from operators.arrow_stream import SMALL, stream_of
from operators.pieces import pieces

EGRESS = 2**31 - 1
"""The level of everything that leaves the program: output changes, late and dead rows, task metrics."""


class Kind(IntEnum):
    """The content of an envelope, and so the meaning of its `address`."""

    ROWS = 0  # payload: changes; address: exchange
    # Address: the producer. Of a source `watermark` is the newest, payload: `partition_clocks`; of an operator
    # `watermark` is its own, payload: as OFFSETS. Who sends and who receives it is in `level_clock.py`.
    CLOCK = 1
    TICK = 2  # payload: `watermarks.Tick`
    OUTPUT = 3  # payload: changes; address: output
    LATE = 4  # payload: rows; address: operator, and the `port` of it that they came to
    DEAD_ROWS = 5  # payload: rows that an operator could not compute; address and `port` as those of LATE
    DEAD_RECORDS = 6  # payload: records that a format could not decode; address: source
    METRICS = 7  # payload: JSON of `task_metrics.TaskMetrics`
    OFFSETS = 8  # payload: digests of the source ranges that the batch was made from, see `source_digest`
    STATE = 9  # payload: JSON of `service.checkpoint.version.ShardState`; address: level
    SHARED_ROWS = 10  # payload: changes of several channels, see `shared_payloads`; address: exchange


class Envelope(NamedTuple):
    """One row of an exchange.

    `now` is the processing time of the batch and `watermark` that of the channel, both in milliseconds since the epoch;
    `idle` marks a channel that says nothing about time. `payload` is an Arrow IPC stream, or JSON, or empty; where a
    runner keeps it in a file on the way, `file` names that and `payload` is empty. `port` is the input of the operator
    that LATE and DEAD_ROWS came to; where rows enter, every operator has one. Sorting by (channel, sequence) gives the
    same order on every replay.
    """

    shard: int
    level: int
    kind: int
    address: int
    channel: str
    sequence: int
    now: int
    watermark: int
    idle: bool
    payload: bytes
    file: str = ""
    port: int = 0


SCHEMA = pa.schema(
    [
        ("shard", pa.int32()),
        ("level", pa.int32()),
        ("kind", pa.int32()),
        ("address", pa.int32()),
        ("channel", pa.string()),
        ("sequence", pa.int64()),
        ("now", pa.int64()),
        ("watermark", pa.int64()),
        ("idle", pa.bool_()),
        ("payload", pa.binary()),
        ("file", pa.string()),
        ("port", pa.int32()),
    ]
)


def batch_of(envelopes: Iterable[Envelope]) -> pa.RecordBatch:
    """Return envelopes as one Arrow record batch of SCHEMA."""
    columns = list(zip(*envelopes, strict=True)) or [()] * len(SCHEMA)
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


_TOGETHER = 256, 32 << 20
"""The limits of a record batch, in envelopes and in bytes of payload: few batches, each of which needs little
memory."""


def blocks_of(envelopes: Iterator[Envelope]) -> Iterator[pa.RecordBatch]:
    """Yield envelopes in record batches of a bounded number and size."""
    most, largest = _TOGETHER
    held: list[Envelope] = []
    size = 0
    for envelope in envelopes:
        if held and (len(held) >= most or size + len(envelope.payload) > largest):
            yield batch_of(held)
            held, size = [], 0
        held.append(envelope)
        size += len(envelope.payload)
    if held:
        yield batch_of(held)


def from_batch(batch: pa.RecordBatch) -> list[Envelope]:
    """Return the envelopes of a record batch of SCHEMA."""
    return [Envelope(*row) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]


PAYLOAD = 8 << 20
"""Bytes of rows in a payload: while it is made it is in memory three times."""


def pack(table: pa.Table) -> bytes:
    """Return a table as an Arrow IPC stream."""
    return bytes(stream_of(table).to_pybytes())  # `bytes` of the buffer itself takes twice as long


def packed(tables: Iterable[pa.Table], largest: int = PAYLOAD) -> Iterator[bytes]:
    """Yield the payloads that carry the rows of `tables`, which have one schema, in order; each holds at most `largest`
    bytes of rows, unless one row alone is larger."""
    held: list[pa.Table] = []
    size: int | None = 0  # None: of one small table, not counted yet. To count its bytes takes longer than to pack it.
    for table in tables:
        if size is None:
            size = held[0].nbytes
        # Buffers that columns share are counted once here: of 64 KiB, that makes no payload too large.
        if not held and table.get_total_buffer_size() <= min(SMALL, largest):
            held, size = [table], None
            continue
        for piece in pieces(table, largest):
            if held and size + piece.nbytes > largest:
                yield pack(pa.concat_tables(held).combine_chunks())
                held, size = [], 0
            held.append(piece)
            size += piece.nbytes
    if held:
        yield pack(pa.concat_tables(held).combine_chunks())


def unpack(payload: bytes) -> pa.Table:
    """Return the table of an Arrow IPC stream, read in place."""
    return pa.ipc.open_stream(pa.py_buffer(payload)).read_all()


def table_of(envelope: Envelope) -> pa.Table:
    """Return the rows that an envelope carries, read in place, also from a file."""
    if not envelope.file:
        return unpack(envelope.payload)
    with pa.memory_map(envelope.file) as mapped:
        return pa.ipc.open_stream(mapped).read_all()
