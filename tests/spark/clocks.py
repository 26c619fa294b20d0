"""A clock that a test sets, for the processes of a service: `clock.c` made into a library that they load first."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

HOUR, YEAR = 3_600, 365 * 86_400
"""Seconds."""


class Clock:
    """The clock that a process of `within` sees: the machine's, ahead by some seconds."""

    def __init__(self, folder: Path) -> None:
        self._file, library = folder / "clock", folder / "clock.so"
        self.set(0)
        source = Path(__file__).with_name("clock.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
        self.within = ["env", f"LD_PRELOAD={library}", f"TEST_CLOCK={self._file}"]

    def set(self, ahead: int) -> None:
        with self._file.open("r+b" if self._file.exists() else "wb") as file:  # in place: it is mapped
            file.write(struct.pack("q", ahead))
