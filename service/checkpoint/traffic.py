"""What is asked of the object store that holds a checkpoint, counted where it is asked."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Literal, NamedTuple

Operation = Literal["read", "write", "list", "look", "copy", "remove"]
"""What is done with a file; a client sends one to three requests for it."""


class Traffic(NamedTuple):
    """The operations of a while by their kind, and the bytes that were read and written."""

    operations: Mapping[Operation, int]
    read: int
    written: int


class TrafficCounter:
    """Counts for all threads of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._operations = Counter[Operation]()
        self._read = self._written = 0

    def count(self, operation: Operation, *, read: int = 0, written: int = 0) -> None:
        """Count an operation, and the bytes that it has moved."""
        with self._lock:
            self._operations[operation] += 1
            self._read += read
            self._written += written

    def take(self) -> Traffic:
        """Return what was counted since this was last asked."""
        with self._lock:
            taken = Traffic(dict(self._operations), self._read, self._written)
            self._operations.clear()
            self._read = self._written = 0
        return taken
