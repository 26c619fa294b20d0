"""A block of state that is mapped from a file, and how its pages are given back.

Pages that were read count as memory of the process until the system needs them. What a large batch has read once is
read again by the next large batch at the earliest, and is then still in the system's cache of files: to map its pages
again costs far less than to read the rows did.
"""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass
from functools import cache

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class MappedBytes:
    """The bytes of a block. `data` must lie in a mapped file that nobody writes: elsewhere pages that are given back
    would be lost."""

    data: pa.Buffer

    def give_back(self) -> None:
        """Give the pages back; they are mapped again when they are read."""
        if self.data.size:
            start = self.data.address // mmap.PAGESIZE * mmap.PAGESIZE
            # Where the system does not take the advice the pages stay, which does no harm.
            _libc().madvise(
                *(ctypes.c_void_p(start), ctypes.c_size_t(self.data.address + self.data.size - start)),
                mmap.MADV_DONTNEED,
            )


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
