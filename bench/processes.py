"""The memory of an engine: of the process that was started, of all below it, and of what it has set apart.

Tailrace's writer leaves the process that starts it. It is known by its command line, which names the folder of the run.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from service.observability.metrics.memory import EXECUTOR, WRITER, parent_of, resident, words_of

PROC = Path("/proc")

_GROWN = 1.01
"""Of resident memory: less is not worth a walk."""


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes of memory, a page that several processes share counted once (PSS).

    `mapped` are pages of files, which the system takes back when it needs room; `own` is all else.
    """

    own: int = 0
    mapped: int = 0

    def __add__(self, other: Held) -> Held:
        return Held(self.own + other.own, self.mapped + other.mapped)

    @property
    def all(self) -> int:
        """Both."""
        return self.own + self.mapped


def family(pid: int, folder: Path | None = None, proc: Path = PROC) -> list[int]:
    """`pid`, the processes that name a file below `folder`, and all their descendants that are alive now."""
    children: dict[int, list[int]] = {}
    for entry in proc.iterdir():
        if entry.name.isdigit():
            children.setdefault(parent_of(int(entry.name), proc), []).append(int(entry.name))
    found = [pid] if (proc / str(pid)).exists() else []
    if folder is not None:
        alive = (member for members in children.values() for member in members)
        found += [member for member in alive if member not in (pid, os.getpid()) and _names(member, folder, proc)]
    for member in found:
        found += [child for child in children.get(member, []) if child not in found]
    return found


class Peak:
    """The most memory that the family of `pid` has held, as far as it was looked at.

    To count shared pages once, the system walks through all pages: a tenth of a second for a JVM, on a machine that is
    being measured. So what is resident, which is a number that it keeps, says whether the walk can find a new peak.
    """

    def __init__(self, pid: int, folder: Path, proc: Path = PROC) -> None:
        self._pid, self._folder, self._proc = pid, folder, proc
        self._resident = 0
        self.bytes = 0

    def look(self) -> None:
        """Look at it now."""
        members = family(self._pid, self._folder, self._proc)
        now = sum(resident(member, self._proc) for member in members)
        if now > _GROWN * self._resident:
            self._resident = now
            self.bytes = max(self.bytes, sum(held(member, self._proc).all for member in members))


class Cpu:
    """The CPU seconds of the family of `pid`, as they stood when each process was last looked at."""

    def __init__(self, pid: int, folder: Path, proc: Path = PROC) -> None:
        self._pid, self._folder, self._proc = pid, folder, proc
        self._seconds: dict[int, tuple[str, float]] = {}

    def look(self) -> None:
        """Look at it now."""
        for member in family(self._pid, self._folder, self._proc):
            words = words_of(member, self._proc)
            if not any(words) and member in self._seconds:
                continue  # it exits: its command line is gone already, and what it has used may be
            kind = "driver" if member == self._pid else _kind(words)
            self._seconds[member] = (kind, cpu_seconds(member, self._proc))

    def by_kind(self) -> dict[str, float]:
        """The seconds of each kind of process."""
        found: dict[str, float] = {}
        for kind, seconds in self._seconds.values():
            found[kind] = found.get(kind, 0.0) + seconds
        return found


def cpu_seconds(pid: int, proc: Path = PROC) -> float:
    """What a process has used of the processors, in its own time and the system's; 0 if it is gone."""
    try:
        fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return 0.0


def memory_by_kind(pid: int, folder: Path, proc: Path = PROC) -> dict[str, Held]:
    """What the family of a Tailrace driver `pid` holds: its JVM, Python workers, executors' JVMs, the writers."""
    found: dict[str, Held] = {}
    for member in family(pid, folder, proc):
        kind = "driver" if member == pid else _kind(words_of(member, proc))
        found[kind] = found.get(kind, Held()) + held(member, proc)
    return found


def held(pid: int, proc: Path = PROC) -> Held:
    """What one process holds; nothing if it is gone."""
    try:
        lines = (proc / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return Held()
    sizes = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines if line.startswith("Pss")}
    whole, mapped = sizes.get("Pss", 0), sizes.get("Pss_File", 0)
    return Held(whole - mapped, mapped)


def _names(pid: int, folder: Path, proc: Path) -> bool:
    return any(word.startswith(f"{folder}/") for word in words_of(pid, proc))


def _kind(words: list[str]) -> str:
    if os.path.basename(words[0] if words else "") == "java":
        return "executor JVM" if EXECUTOR in words else "JVM"
    if WRITER in words:
        return "writer"
    return "workers" if "pyspark.worker" in words else "helpers"
