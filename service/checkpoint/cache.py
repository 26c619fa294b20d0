"""Local copies of blocks of an object store, so that a lookup maps a file instead of asking for its bytes.

All workers of a host share them. A copy is only ever of a block that no one changes, and its name is never used again:
it is good for as long as it is there, whoever made it. Who has a copy mapped still reads it after it is removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from operators.state.mapped import MappedBytes

SHARE = 16
"""A worker looks at the size of the whole when it has added this fraction of what is allowed."""


class Cache:
    """Copies in `folder`, which nobody else may read, of `limit` bytes in all, or a little more."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._added = 0

    def fetch(self, name: str, load: Callable[[], pa.Buffer]) -> pa.Buffer | MappedBytes:
        """Return the block, mapped; from `load` where there is no copy, and none can be made."""
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
        """Keep a copy. A disk that is full has none: the block is fetched again when it is needed."""
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
            with suppress(FileNotFoundError):  # another worker is about it, too
                found = entry.stat()
                known.append((found.st_mtime, found.st_size, Path(entry.path)))
        held = sum(size for _, size, _ in known)
        for _, size, path in sorted(known):
            if held <= self._limit:
                return
            path.unlink(missing_ok=True)
            held -= size


def _private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for nobody but this user."""
    if not folder.is_dir():
        _private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _mapped(path: Path) -> MappedBytes:
    with pa.memory_map(str(path), "r") as file:
        return MappedBytes(file.read_buffer())
