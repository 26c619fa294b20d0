"""The requests that an object store was asked: of which kind, for which object, and by whose client."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple

JAVA = re.compile("hadoop|java|GHFS", re.IGNORECASE)
"""What the clients of the JVM call themselves: theirs are Spark's requests. The others are of Arrow's clients."""


class StoreRequest(NamedTuple):
    """One request: `kind` is GET, HEAD, PUT, COPY, DELETE or LIST; `name` is the key within the bucket, of a LIST its
    prefix."""

    kind: str
    name: str
    by_spark: bool


class RequestLog:
    """All requests so far, in their order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._log: list[StoreRequest] = []

    def note(self, kind: str, name: str, agent: str) -> None:
        """Count a request of a client that calls itself `agent`."""
        with self._lock:
            self._log.append(StoreRequest(kind, name, JAVA.search(agent) is not None))

    def all(self) -> Sequence[StoreRequest]:
        """Return a copy."""
        with self._lock:
            return list(self._log)


class StoreHandler(BaseHTTPRequestHandler):
    """The side of HTTP that all stores of tests have in common."""

    protocol_version = "HTTP/1.1"
    # With Nagle's algorithm a body would wait 40 ms until its head is acknowledged.
    disable_nagle_algorithm = True

    def handle_one_request(self) -> None:
        """Answer a request. One that is cut short changes nothing, as real stores promise."""
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def body(self) -> bytes:
        """Return the body of the request, which may come in chunks; ConnectionError where it is cut short."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self._exactly(int(self.headers.get("Content-Length") or 0))
        whole = b""
        while size := int(self._line().partition(b";")[0], 16):
            whole += self._exactly(size)
            self._line()
        self._line()
        return whole

    def _exactly(self, size: int) -> bytes:
        found = self.rfile.read(size)
        if len(found) < size:
            raise ConnectionError(f"a body ends after {len(found)} of {size} bytes")
        return found

    def _line(self) -> bytes:
        found = self.rfile.readline()
        if not found.endswith(b"\n"):
            raise ConnectionError("a body ends between its chunks")
        return found

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
