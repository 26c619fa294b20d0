"""The requests that an object store was asked: of which kind, for which object, and by whose client."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
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
