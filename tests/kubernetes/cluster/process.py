"""A process of the cluster: started, watched, ended; what it says goes to a file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.kubernetes.waiting import until


class Process:
    """A program that runs until `stop`, or until the machine of the cluster ends. `log` is the file of all it says."""

    def __init__(self, name: str, command: Sequence[str], folder: Path, environment: dict[str, str] | None = None):
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | (environment or {}),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ready(self, what: str, ask: Callable[[], object], seconds: float = 180) -> None:
        """Wait until `ask()` is true; a process that ends before fails at once, with the last lines of its log."""

        def asked() -> bool:
            if self._process.poll() is not None:
                raise AssertionError(f"{self.name} has ended with code {self._process.returncode}:\n{self.tail()}")
            return bool(ask())

        until(what, asked, seconds, self.tail)

    def stop(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def tail(self, size: int = 4000) -> str:
        """The end of its log."""
        return f"{self.name} said:\n{self.log.read_text(errors='replace')[-size:]}"
