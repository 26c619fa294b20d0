"""The adoption of orphaned processes by the driver, which waits for them when they end.

Every writer process is an orphan from its start, and so are Python workers when the process that forked them is killed.
Orphans would go to the first process of the machine or container, which may never wait for them: dead processes would
pile up, and Spark, which keeps workers for the next task, would take them for alive.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

_SET_CHILD_SUBREAPER = 36
_PAUSE = 0.1
"""PR_SET_CHILD_SUBREAPER of Linux, and the seconds between two checks of the children."""

_STARTED = threading.Event()


def adopt() -> None:
    """Make this process the parent of every orphan below it; safe to call twice."""
    if _STARTED.is_set():
        return
    _STARTED.set()
    if ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0:
        threading.Thread(target=_see_to_them, name="orphans", daemon=True).start()


def _see_to_them() -> None:
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            ended = None
        if ended is None or not _adopted(ended.si_pid):
            time.sleep(_PAUSE)  # a child of some caller here, who will wait for it
        for pid in _children():
            if _adopted(pid):
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)


def _adopted(pid: int) -> bool:
    """Whether another process has started a child: ours lead a group of their own, or are in this process' group."""
    try:
        return os.getpgid(pid) not in (pid, os.getpgrp())
    except ProcessLookupError:
        return False


def _children() -> list[int]:
    """The children of this process."""
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found
