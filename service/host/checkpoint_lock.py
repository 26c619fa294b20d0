"""One driver per checkpoint: a lock that is held from before the start until this process ends."""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlparse

_MOUNTS = Path("/proc/self/mountinfo")

_ESCAPED = re.compile(r"\\([0-7]{3})")
"""How the system writes a space, a tab, a line feed and a backslash in the path of a mount; it escapes nothing else."""

_OWN = frozenset(("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"))
"""File systems of one machine. Others may be mounted on several, may not tell one of the locks of another, or take a
lock away from a process that was cut off and lives on."""


class CheckpointInUse(Exception):
    """Another driver uses this checkpoint."""


class CheckpointLock:
    """A lock held inside `with`. On a local file system the kernel releases it when the process dies. On a remote one
    Spark's own log, which never lets two drivers commit one batch, has to suffice."""

    def __init__(self, checkpoint: str) -> None:
        self._checkpoint = checkpoint
        self._file: int | None = None

    def __enter__(self) -> Self:
        place = urlparse(self._checkpoint)
        if place.scheme not in ("", "file"):
            return self
        folder = Path(place.path) / "tailrace"
        folder.mkdir(parents=True, exist_ok=True)
        self._file = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._let_go()
            raise CheckpointInUse(f"another driver works on the checkpoint {self._checkpoint}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._let_go()

    def _let_go(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def excludes_others(checkpoint: str, mounts: Path = _MOUNTS) -> bool:
    """Return whether whoever holds the lock of a checkpoint is the only process that can write to it: it is in a file
    system of this machine alone. False where that is not known."""
    place = urlparse(checkpoint)
    if place.scheme not in ("", "file") or not mounts.exists():
        return False
    path, found = Path(place.path).resolve(), (-1, "")
    for line in mounts.read_text(errors="surrogateescape").splitlines():
        mount, _, source = line.partition(" - ")
        mounted = Path(_ESCAPED.sub(lambda code: chr(int(code[1], 8)), mount.split(" ")[4]))
        if path.is_relative_to(mounted):  # of several mounts at one place, the last one is seen
            found = max((len(mounted.parts), source.split(" ")[0]), found, key=lambda each: each[0])
    return found[1] in _OWN
