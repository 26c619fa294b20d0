"""Rows as an Arrow IPC stream: the form of blocks of state and of payloads."""

from __future__ import annotations

import pyarrow as pa

SMALL = 64 << 10
"""Bytes of rows whose stream is written once, into a buffer that grows: to measure it first takes as long again."""


def stream_of(rows: pa.Table) -> pa.Buffer:
    """Return an Arrow IPC stream of `rows`, in a buffer of its size unless it is small: a buffer that grows ends up to
    twice as large."""
    if rows.get_total_buffer_size() <= SMALL:
        grown = pa.BufferOutputStream()
        _write(grown, rows)
        return grown.getvalue()
    measured = pa.MockOutputStream()
    _write(measured, rows)
    buffer = pa.allocate_buffer(measured.size())
    _write(pa.FixedSizeBufferWriter(buffer), rows)
    return buffer


def _write(sink: pa.NativeFile, rows: pa.Table) -> None:
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
