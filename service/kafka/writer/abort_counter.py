"""A count of aborted transactions that survives the failure of their tasks.

The count is the length of a file, so that it outlives the writer process. The next task on the host that commits resets
it and reports it with its own metrics.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path


def add(path: Path) -> None:
    """Count one more; if the disk is full, it is not counted."""
    with suppress(OSError), path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(b".")
        file.flush()


def take(path: Path) -> int:
    """Return the count and reset it."""
    try:
        with path.open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            counted = os.fstat(file.fileno()).st_size
            file.truncate(0)
            return counted
    except FileNotFoundError:
        return 0
