"""The memory allocation of Spark's processes, which keep freed memory.

A block of rows is some megabytes, and so is each step over it. An allocator that returns such pieces to the system at
once gets them again as new pages, which the kernel fills with zeros first: half of a worker's time where many rows are
stored or written. Arrow's own allocator (mimalloc) returns memory after ten milliseconds; glibc's can be set not to.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_KEPT = str(512 << 20)

ENVIRONMENT: Mapping[str, str] = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",  # workers compute in one thread, and each further arena would keep memory of its own
    "MALLOC_MMAP_THRESHOLD_": _KEPT,
    "MALLOC_TRIM_THRESHOLD_": _KEPT,
    "MALLOC_TOP_PAD_": str(16 << 20),
}
"""The variables for executors and their Python workers; other C libraries ignore glibc's."""


WORKERS: Mapping[str, str] = {
    # Large pages, where the system gives them to those who ask: a sixteenth of the faults, a sixth of the time. A JVM
    # would hold more by them.
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
"""The variables for Python workers alone."""


def environment() -> dict[str, str]:
    """Return the variables of ENVIRONMENT that are not set already."""
    return _not_set(ENVIRONMENT)


def of_workers() -> dict[str, str]:
    """Return the variables of WORKERS that are not set already."""
    return _not_set(WORKERS)


def _not_set(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name not in os.environ}
