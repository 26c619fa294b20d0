"""Spark's Python workers in the shared JVM, forked from a process that has imported their modules before.

Each service that uses the JVM has workers of its own, and these a process from which they are forked
(`service/spark/driver/worker_daemon.py`), which takes a second to import what they need. Here that process is a fork
itself, of `python -m tests.spark.shared_jvm.worker_forks SOCKET`. Spark starts the program that `WorkerForks`
makes; that passes its streams on, and waits for the end of the fork.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from service.spark.driver.fork_server import serve_forks
from service.spark.internals.workers import WORKER
from tests.spark.shared_jvm.terms import BEFORE_TESTS

ROOT = Path(__file__).resolve().parents[3]

DAEMON = "service.spark.driver.worker_daemon"
"""The module that serves workers. It changes the environment of a process that imports it."""

ENDED_WITHIN = 3.0
"""Seconds that workers may take to notice the end of Spark or of their JVM. Those that a service has started while it
ended are not noticed by Spark."""

_PROGRAM = """#!{python} -ES
import os, sys
words = sys.argv[1:]
if words == ["-m", "{daemon}", "{worker}"]:
    import socket
    request = ascii({{"arguments": words[1:], "environment": dict(os.environ)}}).encode()
    asking = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    asking.connect("{socket}")
    socket.send_fds(asking, [request], [0, 1, 2])
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(asking.fileno(), 0)
    os.dup2(nowhere, 1)
    os.execv("/bin/cat", ["cat"])
os.execv("{python}", ["{python}", *words])
"""


class WorkerForks:
    """The process from which the processes of workers are forked. It ends with this one."""

    def __init__(self, folder: Path) -> None:
        """`folder` is for its socket, and for the program that Spark starts."""
        address = folder / "workers"
        self.python = folder / "python"
        self.python.write_text(_PROGRAM.format(python=sys.executable, daemon=DAEMON, worker=WORKER, socket=address))
        self.python.chmod(0o755)
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(address)],
            cwd=ROOT,
            env=BEFORE_TESTS,
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def forks(self) -> list[int]:
        """Return its forks that run; none where it has ended."""
        if self._process.poll() is not None:
            return []
        task = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return [int(pid) for pid in task.read_text().split()]

    def wait(self) -> None:
        """Wait until all forks have ended, as they do when Spark or its JVM ends; kill those that do not."""
        until = time.monotonic() + ENDED_WITHIN
        while forks := self.forks():
            if time.monotonic() > until:
                for pid in forks:
                    with suppress(ProcessLookupError):
                        os.killpg(pid, signal.SIGKILL)
            time.sleep(0.02)

    def close(self) -> None:
        """End it after its forks, whose input has ended."""
        self.wait()
        self._process.communicate()


def main() -> NoReturn:
    """Serve the program that Spark starts."""
    daemon = importlib.import_module(DAEMON)
    serve_forks(sys.argv[1], (WORKER, *daemon.PRELOADED), lambda _: daemon.main())


if __name__ == "__main__":
    main()
