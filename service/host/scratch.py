"""The folder of one run, for what need not outlive it: copies of the state, shuffle files, unpacked native libraries.

A run removes it in the end. Where it is killed together with all that would clean up after it, as a container is, the
next run on the same disk does so: a folder whose lock nobody holds belonged to a run that is dead.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from service.host.machine import writing_to

PREFIX = "tailrace-"

LOCK = ".lock"
"""Only in folders that a driver made: executors have folders of the same names, and no lock. A name with a dot, so that
whoever removes all but hidden files removes it last."""


@contextmanager
def scratch(place: str = "") -> Iterator[Path]:
    """Make a folder in the folder `place`, or in the system's temporary one, and remove it when the block ends.

    Folders of dead runs beside it are removed in the background. Raises MachineError if no folder can be made.
    """
    beside = Path(place or tempfile.gettempdir())
    with writing_to(beside):
        beside.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=beside))
        lock = _locked(folder)
    try:
        threading.Thread(target=_remove_dead, args=(folder.parent,), name="dead-runs", daemon=True).start()
        yield folder
    finally:
        _remove(folder)
        os.close(lock)


def _locked(folder: Path) -> int:
    """Lock the folder. The lock is held before it has its name: a process that finds a free lock may remove the
    folder."""
    unnamed = folder / f"{LOCK}.new"
    lock = os.open(unnamed, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unnamed.rename(folder / LOCK)
    return lock


def _remove_dead(place: Path) -> None:
    for file in place.glob(f"{PREFIX}*/{LOCK}"):
        with suppress(OSError):  # it belongs to another user, or another process removes it
            lock = os.open(file, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(file.parent)
            finally:
                os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a folder of a run, its lock last: another run continues an interrupted removal."""
    with suppress(OSError):
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != LOCK:
                entry.unlink()
        if [entry.name for entry in folder.iterdir()] == [LOCK]:
            (folder / LOCK).unlink()
            folder.rmdir()
