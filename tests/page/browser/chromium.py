"""A real Chromium for the tests of the page: the one of this machine, or the one that its package manager installs."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")

PACKAGES = ("chromium", "fonts-dejavu-core")
"""Debian's packages; without a font every letter would be a box."""

LOCK = Path(tempfile.gettempdir(), "tailrace-chromium.lock")
"""Held while packages are installed: the package manager has one user at a time."""

SWITCHES = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""What keeps it from asking hosts that no test is about."""


class NoChromium(Exception):
    """There is none, and it cannot be installed from here."""


def chromium() -> str:
    """The path of the browser, installed if that can be done. Raises NoChromium with what to do."""
    path = _found()
    if path is None and os.geteuid() == 0 and shutil.which("apt-get"):
        with LOCK.open("w") as lock:  # other test files may be about to do the same
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _found() is None:
                _install()
        path = _found()
    if path is None:
        raise NoChromium(
            "the tests of the status page need a Chromium, and there is none on the path;"
            f" install it (on Debian, as root: apt-get install {' '.join(PACKAGES)}),"
            " or leave them out: make test ARGS='--ignore tests/page/browser'"
        )
    return path


def _found() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


def _install() -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *PACKAGES]):
        done = subprocess.run(["apt-get", "--quiet", *command], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise NoChromium(f"apt-get {command[0]} has failed, so there is no Chromium:\n{done.stderr[-2000:]}")
