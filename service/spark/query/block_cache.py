"""Local copies of state blocks, so that a lookup maps a file instead of asking Spark for its bytes.

The state store is where blocks live; a copy is never trusted beyond one run of the driver, since its folder is named
after the run. Any worker of the host may serve any bucket, so copies are shared through the file system. What a bucket
that has moved to another host leaves behind is removed (see `residents`), maybe at the moment when it comes back.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa


def private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for nobody but this user: there is state in it."""
    if not folder.is_dir():
        private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


class BlockCache:
    """Copies of the blocks of one bucket of one level."""

    def __init__(self, folder: Path) -> None:
        """Made anew for every batch: the time of the folder says when the bucket was here last."""
        self._folder = folder
        private_folder(folder)
        with suppress(FileNotFoundError):
            os.utime(folder)

    def fetch(self, block: str, load: Callable[[str], bytes]) -> pa.Buffer:
        """The block, mapped; filled from `load` when there is no copy."""
        path = self._path(block)
        try:
            return pa.memory_map(str(path), "r").read_buffer()
        except FileNotFoundError:
            data = pa.py_buffer(load(block))
        self._write(path, data)
        try:
            return pa.memory_map(str(path), "r").read_buffer()
        except FileNotFoundError:
            return data

    def put(self, block: str, data: pa.Buffer) -> None:
        """Keep a copy of a block that was just made."""
        self._write(self._path(block), data)

    def drop(self, block: str) -> None:
        """Forget a block; readers that have it mapped keep it until they are done."""
        self._path(block).unlink(missing_ok=True)

    def _path(self, block: str) -> Path:
        return self._folder / block.replace("/", "_").replace(":", "_")

    def _write(self, path: Path, data: pa.Buffer) -> None:
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        with suppress(FileNotFoundError):  # the folder is gone: the block is fetched when it is needed
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(data)
            temporary.rename(path)
