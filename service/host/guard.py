"""A process that must not outlive ours: whatever ends us, kill -9 included, ends it and removes what it wrote."""

from __future__ import annotations

import subprocess
from pathlib import Path

# `read` fails when the pipe's other end closes, which the system does for us when we end; a line means "not needed".
# Hidden files go last: by them others may know what a folder is (see `scratch`).
_WATCH = 'read _ || { kill -9 "$1"; [ -z "$2" ] || { rm -rf "$2"/* && rm -rf "$2"; }; }'


class Guard:
    """Watches over process `pid` until released; when this process ends first, `pid` is killed and `folder` removed."""

    def __init__(self, pid: int, folder: Path | None = None) -> None:
        # A session of its own, so that a Ctrl-C on the terminal does not take the guard away.
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "tailrace-guard", str(pid), str(folder or "")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def release(self) -> None:
        """Stop watching."""
        self._shell.communicate(b"released\n")
