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

    def body(self) -> bytes:
        """The body of the request, which may come in chunks."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        whole = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
