"""The sockets between the JVM and its Python workers: Unix sockets, where a path of theirs fits.

A task writes to its worker in small pieces. Over TCP a piece waits until the piece before it is acknowledged, and a
receiver that has nothing to say acknowledges after 40 ms: each task of a small batch would wait that long.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from service.spark.internals.workers import SOCKET_NAME, UNIX_SOCKETS

LONGEST = 107
"""The bytes of the longest path of a Unix socket on Linux."""


def worker_sockets(temporary: Path) -> Mapping[str, str]:
    """Return the settings of Spark for the sockets of workers, which are in the folder for temporary files of their
    JVM. `temporary` is that of the driver; executors have short ones."""
    return {UNIX_SOCKETS: str(len(bytes(temporary / SOCKET_NAME)) <= LONGEST).lower()}
