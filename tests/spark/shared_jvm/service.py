"""`python -m tests.spark.shared_jvm.service` is `tailrace`, with Spark in the shared JVM of the environment.

The service gets a JVM of its own if another one uses the shared JVM, if it needs executors, or if it would start a JVM
with other options, other archives or another environment.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import service.run
from service.cli import main
from service.spark.driver.cluster_mode import is_local
from service.spark.driver.jvm import Jvm
from service.spark.internals.workers import GATEWAY_PORT, GATEWAY_SECRET
from tests.spark.shared_jvm.terms import ADDRESS, FOLDER, LOCK, LOG, started_with

LOOK_EVERY = 0.1
"""Seconds between two looks at what the JVM has printed."""


class LentJvm(Jvm):
    """The shared JVM in place of one of the service's own."""

    def __init__(self, lent: Mapping[str, Any], folder: Path, lock: int, on_line: Callable[[str], None]) -> None:
        self._gateway = {GATEWAY_PORT: str(lent["port"]), GATEWAY_SECRET: str(lent["secret"])}
        self._python = str(lent["python"])
        self._lock = lock
        self._on_line = on_line
        self._log = folder / LOG
        self._log.touch()
        self._read = self._log.stat().st_size
        self._closed = threading.Event()
        self.process: Any = _Process(int(lent["pid"]))
        self._reader = threading.Thread(target=self._listen, name="jvm-output", daemon=True)
        self._reader.start()

    def connect(self) -> None:
        """Give the address of the JVM to PySpark."""
        os.environ["PYSPARK_PYTHON"] = self._python
        os.environ.update(self._gateway)

    def close(self) -> None:
        """Stop Spark; the JVM goes on."""
        for name in self._gateway:
            os.environ.pop(name, None)
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession()
        if session is not None:
            with suppress(Exception):  # the JVM may have ended
                session.stop()
        self._closed.set()
        self._reader.join()
        os.close(self._lock)

    def _listen(self) -> None:
        closed = False
        while not closed:
            closed = self._closed.wait(LOOK_EVERY)
            with self._log.open("rb") as log:
                log.seek(self._read)
                for line in log:
                    self._read += len(line)
                    self._on_line(line.decode(errors="replace").rstrip())


class _Process:
    """The process of a JVM that is no child of ours."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        """Return None while the process runs."""
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return 1
        return 1 if state == "Z" else None

    def wait(self, seconds: float) -> None:
        """Wait for its end."""
        until = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < until:
            time.sleep(LOOK_EVERY)


def lent_or_own(
    settings: Mapping[str, str],
    jars: Sequence[Path],
    scratch: Path,
    on_line: Callable[[str], None],
    clients: Sequence[Path],
) -> Jvm:
    """Return the shared JVM, or one of the service's own."""
    folder = Path(os.environ[FOLDER])
    lent = json.loads((folder / ADDRESS).read_text())
    own = json.loads(json.dumps(started_with(settings, jars, clients)))
    if is_local(settings["spark.master"]) and all(lent[name] == value for name, value in own.items()):
        lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR)
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(lock, 0)
            os.write(lock, str(os.getpid()).encode())
            return LentJvm(lent, folder, lock, on_line)
        os.close(lock)
    return Jvm(settings, jars, scratch, on_line, clients)


setattr(service.run, "Jvm", lent_or_own)  # noqa: B010  (not an attribute that a type checker may see)

if __name__ == "__main__":
    sys.exit(main())
