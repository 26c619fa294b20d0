"""Local copies of blocks of an object store, so that a lookup maps a file instead of requesting its bytes.

All workers of a host share them. A block never changes and its name is never used again, so a copy is valid whoever
made it. A process that has mapped a copy can still read it after it is removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from operators.state.mapped import MappedBytes

SHARE = 16
"""The fraction of the limit that a worker adds before it checks the size of the whole cache."""


class Cache:
    """Copies in `folder`, which only this user may read, of about `limit` bytes in all."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._added = 0

    def fetch(self, name: str, load: Callable[[], pa.Buffer]) -> pa.Buffer | MappedBytes:
        """Return the block, mapped; call `load` if there is no copy and none can be made."""
        path = self._folder / name
        try:
            os.utime(path)
            return _mapped(path)
        except OSError:
            data = load()
        self.put(name, data)
        with suppress(OSError):
            return _mapped(path)
        return data

    def put(self, name: str, data: pa.Buffer) -> None:
        """Store a copy. On a full disk there is none: the block is fetched again when it is needed."""
        path = self._folder / name
        temporary = path.with_name(f".{name}.{os.getpid()}")
        try:
            _private(self._folder)
            with open(os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
                file.write(data)
            temporary.rename(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            return
        self._added += data.size
        if self._added * SHARE >= self._limit:
            self._added = 0
            self._shrink()

    def _shrink(self) -> None:
        """Remove the copies that were opened longest ago, down to the limit."""
        known: list[tuple[float, int, Path]] = []
        for entry in os.scandir(self._folder):
            with suppress(FileNotFoundError):  # another worker has removed it
                found = entry.stat()
                known.append((found.st_mtime, found.st_size, Path(entry.path)))
        held = sum(size for _, size, _ in known)
        for _, size, path in sorted(known):
            if held <= self._limit:
                return
            path.unlink(missing_ok=True)
            held -= size


def _private(folder: Path) -> None:
    """Make a folder and its missing parents, readable by this user only."""
    if not folder.is_dir():
        _private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _mapped(path: Path) -> MappedBytes:
    with pa.memory_map(str(path), "r") as file:
        return MappedBytes(file.read_buffer())
