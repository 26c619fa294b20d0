"""The memory of a worker that has come to rest.

After a large batch the allocator keeps what was freed for the next one, which costs nothing while there is a backlog
(`service/spark/driver/allocation.py`). Once batches are small, that memory goes back to the system.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

SMALL = 0.1
"""Seconds of processor time of a small task."""

RESTS = 16
"""Small tasks in a row after which a worker rests: in a backlog, tasks of levels that receive little lie between those
that do the work."""

AGAIN = 1024
"""Small tasks after which a worker that rests looks again: little by little they leave something, too."""


class Rest:
    """Counts the tasks of this worker, and has `trim` give memory back when it rests."""

    def __init__(self, trim: Callable[[], None], used: Callable[[], float] = time.process_time) -> None:
        """`used` returns the processor time of this process."""
        self._trim = trim
        self._used = used
        self._small = 0

    @contextmanager
    def task(self) -> Iterator[None]:
        """Do a task."""
        before = self._used()
        try:
            yield
        finally:
            self._small = self._small + 1 if self._used() - before < SMALL else 0
            if self._small == RESTS or (self._small and self._small % AGAIN == 0):
                self._trim()


def trim() -> None:
    """Give what is freed back to the system, where the C library can."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


REST = Rest(trim)
"""That of this worker, which does one task at a time."""
