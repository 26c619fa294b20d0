"""Rows as an Arrow IPC stream: the form of blocks of state and of payloads."""

from __future__ import annotations

import pyarrow as pa


def stream_of(rows: pa.Table) -> pa.Buffer:
    """Return an Arrow IPC stream of `rows`, in a buffer of its size: one that grows ends up to twice as large."""
    measured = pa.MockOutputStream()
    _write(measured, rows)
    buffer = pa.allocate_buffer(measured.size())
    _write(pa.FixedSizeBufferWriter(buffer), rows)
    return buffer


def _write(sink: pa.NativeFile, rows: pa.Table) -> None:
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
