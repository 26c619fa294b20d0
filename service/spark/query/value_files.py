"""Files through which the JVM passes the values of Kafka records to this worker, which maps them.

A file holds the values of one block of records. As soon as nothing here refers to them, the file says so, and the JVM
fills it with another block. The JVM waits for a free file while the worker computes; while the worker waits for records
itself or yields rows, the JVM waits for none, or each would wait for the other. As in
`java/tailrace/kafka/ValueFile.java`.
"""

from __future__ import annotations

import mmap
import os
import struct
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

_HEADER = 4096
"""Bytes before the first value."""

_FREED = 0
"""The place in the header with the number of the block that is no longer needed."""

_COMPUTING = 8
"""The place in the header with the number of the block that the worker is computing."""

T = TypeVar("T")


class _Mapped(NamedTuple):
    """A mapped file: its header, which is written to, and the whole file."""

    header: mmap.mmap
    values: mmap.mmap

    def note(self, place: int, number: int) -> None:
        struct.pack_into("<q", self.header, place, number)


class ValueFiles:
    """The value files that this process has mapped. They are few: a running task has two or three."""

    def __init__(self) -> None:
        self._mapped: dict[str, _Mapped] = {}
        self._held: dict[str, int] = {}

    def begin(self) -> None:
        """Begin a task: unmap files that no longer exist."""
        for path in [path for path in self._mapped if not os.path.exists(path)]:
            del self._mapped[path]

    def values(self, path: str, number: int, size: int) -> pa.Buffer:
        """Return the values of block `number`, of `size` bytes, one after another.

        The file is returned to the JVM when nothing refers to them any more. Raises OSError if it no longer exists.
        """
        mapped = self._mapped.get(path)
        if mapped is None or _HEADER + size > len(mapped.values):
            mapped = self._mapped[path] = _map(Path(path))
        values = np.frombuffer(mapped.values, np.uint8, size, _HEADER)
        self._held[path] = number
        weakref.finalize(values, self._free, path, mapped, number).atexit = False
        return pa.py_buffer(values)

    def computing(self, blocks: Iterable[T]) -> Iterator[T]:
        """Pass on blocks of records: until the next one is requested, this worker computes."""
        for block in blocks:
            self._note(computing=True)
            yield block
            del block  # it would be held while waiting for the next one
            self._note(computing=False)

    def handing_on(self, rows: Iterable[T]) -> Iterator[T]:
        """Pass on rows that leave: until the next ones are requested, this worker does not compute."""
        for each in rows:
            self._note(computing=False)
            yield each
            self._note(computing=True)

    def _note(self, *, computing: bool) -> None:
        for path, number in self._held.items():
            self._mapped[path].note(_COMPUTING, number if computing else 0)

    def _free(self, path: str, mapped: _Mapped, number: int) -> None:
        if self._held.get(path) == number:
            del self._held[path]
        mapped.note(_FREED, number)


def _map(path: Path) -> _Mapped:
    with path.open("r+b") as file:
        return _Mapped(mmap.mmap(file.fileno(), _HEADER), mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
