"""Files through which the JVM hands the values of Kafka records over to this worker, which maps them.

A file holds the values of one block of records. As soon as nothing here refers to them any more, the file says so, and
the JVM fills it with another block. It waits for that while the worker computes, and for nothing while the worker waits
for records itself or hands rows on: each would wait for the other. As in `java/tailrace/kafka/ValueFile.java`.
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
"""Where the header has the number of the block that is needed no more."""

_COMPUTING = 8
"""Where it has the number of the block of a worker that computes."""

T = TypeVar("T")


class _Mapped(NamedTuple):
    """A file as it was mapped: its header, which is written, and all of it."""

    header: mmap.mmap
    values: mmap.mmap

    def note(self, place: int, number: int) -> None:
        struct.pack_into("<q", self.header, place, number)


class ValueFiles:
    """The files of values that this process has mapped. They are few: a task that runs has two or three."""

    def __init__(self) -> None:
        self._mapped: dict[str, _Mapped] = {}
        self._held: dict[str, int] = {}

    def begin(self) -> None:
        """Begin with a task: let go of files that are there no more."""
        for path in [path for path in self._mapped if not os.path.exists(path)]:
            del self._mapped[path]

    def values(self, path: str, number: int, size: int) -> pa.Buffer:
        """Return the values of block `number`, of `size` bytes, which lie one behind the other. The file is given back
        when nothing refers to them any more. Raises OSError where it is gone."""
        mapped = self._mapped.get(path)
        if mapped is None or _HEADER + size > len(mapped.values):
            mapped = self._mapped[path] = _map(Path(path))
        values = np.frombuffer(mapped.values, np.uint8, size, _HEADER)
        self._held[path] = number
        weakref.finalize(values, self._free, path, mapped, number).atexit = False
        return pa.py_buffer(values)

    def computing(self, blocks: Iterable[T]) -> Iterator[T]:
        """Pass on blocks of records: until the next one is asked for, this worker computes."""
        for block in blocks:
            self._note(computing=True)
            yield block
            del block  # it would be held while the next one is waited for
            self._note(computing=False)

    def handing_on(self, rows: Iterable[T]) -> Iterator[T]:
        """Pass on rows that leave: until more of them are asked for, this worker does not compute."""
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
