"""The memory of the processes of a driver or an executor, as the operating system counts it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
WRITER = "service.kafka.writer"

EXECUTOR = "--executor-id"
"""The option that only an executor's command line has."""


def memory_of(root: int, kind: str, scratch: str, proc: Path = PROC) -> dict[str, int]:
    """Return the bytes of memory by kind of process (driver, jvm, worker, writer), for those kinds that run.

    These are the process `root`, which is of `kind`, its descendants, and the writer of `scratch`, which is not a
    descendant. Python workers are forked from one process, so their shared pages are counted once (the proportional set
    size); for the others it is the resident set. A process that ends meanwhile counts as 0.
    """
    held: dict[str, int] = {}
    for pid, what in _family(root, kind, scratch, proc):
        size = (_shared_fairly(pid, proc) if what == "worker" else 0) or resident(pid, proc)
        if size:
            held[what] = held.get(what, 0) + size
    return held


def parent_of(pid: int, proc: Path = PROC) -> int:
    """Return the parent of a process, 0 if it is gone."""
    try:
        return int((proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def words_of(pid: int, proc: Path = PROC) -> list[str]:
    """Return the command line of a process; empty if it is gone."""
    try:
        return (proc / str(pid) / "cmdline").read_text(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return []


def _family(root: int, kind: str, scratch: str, proc: Path) -> Iterator[tuple[int, str]]:
    """The counted processes, each with its kind."""
    pids = [int(entry.name) for entry in proc.iterdir() if entry.name.isdigit()]
    children: dict[int, list[int]] = {}
    for pid in pids:
        children.setdefault(parent_of(pid, proc), []).append(pid)
    yield root, kind
    waiting = children.get(root, [])[:]
    below = {root}
    while waiting:
        pid = waiting.pop()
        below.add(pid)
        words = words_of(pid, proc)
        if EXECUTOR in words:
            continue  # of a cluster on the driver's own host: it measures its memory itself
        waiting += children.get(pid, [])
        what = _kind(words)
        if what:
            yield pid, what
    for pid in set(pids) - below:
        words = words_of(pid, proc)
        if WRITER in words and any(word.startswith(scratch) for word in words):
            yield pid, "writer"


def _kind(words: list[str]) -> str | None:
    """The kind of a process below the driver or an executor; None for one that holds next to nothing, such as a
    shell."""
    if os.path.basename(words[0] if words else "") == "java":
        return "jvm"
    if WRITER in words:
        return "writer"
    return "worker" if any(word.startswith(("pyspark.", "service.spark.")) for word in words) else None


def resident(pid: int, proc: Path) -> int:
    """Return the resident bytes of a process, shared pages included; 0 if it has ended."""
    try:
        return int((proc / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _shared_fairly(pid: int, proc: Path) -> int:
    """The proportional set size; 0 if the system does not provide it."""
    try:
        for line in (proc / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, IndexError):
        return 0
    return 0
