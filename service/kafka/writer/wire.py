"""Frames on the Unix socket between a task and its writer process.

A frame is a kind (one byte), a length (eight bytes, big endian) and that many bytes: JSON for a message, an Arrow IPC
stream for rows.
"""

from __future__ import annotations

import json
import select
import socket
import struct
from typing import Any

import pyarrow as pa

_HEAD = struct.Struct("!cQ")
MESSAGE = b"J"
ROWS = b"R"
_LARGEST_FRAME = 1 << 40
"""The length from which the head of a frame counts as garbage: no batch is nearly so large."""


class PeerGone(ConnectionError):
    """The other side has closed the socket or died."""


def send_message(connection: socket.socket, message: dict[str, Any]) -> None:
    """Send `message`."""
    body = json.dumps(message).encode()
    _send(connection, MESSAGE, memoryview(body))


def send_rows(connection: socket.socket, rows: pa.RecordBatch) -> None:
    """Send `rows`."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    _send(connection, ROWS, memoryview(sink.getvalue()))


def receive(connection: socket.socket) -> dict[str, Any] | pa.RecordBatch:
    """Return the next frame: a message or rows. Raises PeerGone at the end of the connection."""
    kind, size = _HEAD.unpack(_exactly(connection, _HEAD.size))
    if kind not in (MESSAGE, ROWS) or size > _LARGEST_FRAME:
        raise PeerGone("the bytes on the socket are no frame")
    body = _exactly(connection, size)
    if kind == MESSAGE:
        message: dict[str, Any] = json.loads(bytes(body))
        return message
    with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
        return stream.read_next_batch()


def readable(connection: socket.socket) -> bool:
    """Return whether there is something to receive (or the end of the connection) right now."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def hung_up(connection: socket.socket) -> bool:
    """Return whether the other side has closed the socket or died. Looks ahead without reading anything."""
    try:
        return readable(connection) and connection.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True


def _send(connection: socket.socket, kind: bytes, body: memoryview) -> None:
    try:
        connection.sendall(_HEAD.pack(kind, body.nbytes))
        connection.sendall(body)
    except TimeoutError:
        raise
    except OSError as broken:
        raise PeerGone(str(broken)) from broken


def _exactly(connection: socket.socket, size: int) -> bytearray:
    body = bytearray(size)
    view = memoryview(body)
    filled = 0
    while filled < size:
        try:
            got = connection.recv_into(view[filled:])
        except TimeoutError:
            raise
        except OSError as broken:
            raise PeerGone(str(broken)) from broken
        if not got:
            raise PeerGone("the conversation ended")
        filled += got
    return body
