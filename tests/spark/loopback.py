"""What crosses the loopback interface, captured by a raw socket: Linux only, and as root."""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

CAN_CAPTURE = sys.platform == "linux" and os.geteuid() == 0

_EVERY_PROTOCOL = 3
_BUFFER = 64 << 20


class Capture:
    """How many bytes crossed, and which of the needles that are looked for were among them."""

    def __init__(self, needles: Collection[bytes]) -> None:
        self.size = 0
        self.found: set[bytes] = set()
        self._needles = needles
        self._tails: dict[tuple[int, int], bytes] = {}
        self._longest = max(map(len, needles))

    def take(self, connection: tuple[int, int], payload: bytes) -> None:
        """A packet of one direction of a connection; a needle may lie across two of them."""
        self.size += len(payload)
        text = self._tails.get(connection, b"") + payload
        self.found |= {needle for needle in self._needles if needle in text}
        self._tails[connection] = text[-self._longest :]


@contextmanager
def capturing(ports: Collection[int], needles: Collection[bytes]) -> Iterator[Capture]:
    """Capture every TCP connection to one of `ports`, in both directions."""
    capture = Capture(needles)
    done = threading.Event()
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_EVERY_PROTOCOL)) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        raw.bind(("lo", _EVERY_PROTOCOL))
        raw.settimeout(0.2)
        thread = threading.Thread(target=_receive, args=(raw, frozenset(ports), capture, done), daemon=True)
        thread.start()
        try:
            yield capture
        finally:
            done.set()
            thread.join()


def _receive(raw: socket.socket, ports: frozenset[int], capture: Capture, done: threading.Event) -> None:
    while not done.is_set():
        try:
            packet = raw.recv(1 << 16)
        except TimeoutError:
            continue
        segment = _tcp(packet)
        if segment is None:
            continue
        source, target = struct.unpack_from("!HH", segment)
        if ports & {source, target}:
            capture.take((source, target), segment[(segment[12] >> 4) * 4 :])


def _tcp(packet: bytes) -> bytes | None:
    """The TCP segment of an IP packet, None where it is another protocol."""
    if packet[0] >> 4 == 4:
        return packet[(packet[0] & 15) * 4 :] if packet[9] == socket.IPPROTO_TCP else None
    return packet[40:] if packet[6] == socket.IPPROTO_TCP else None
