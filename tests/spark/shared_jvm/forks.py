"""Processes of services that are forked from one that has imported all their modules."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from tests.spark.shared_jvm.terms import BEFORE_TESTS

ROOT = Path(__file__).resolve().parents[3]


class Process(Protocol):
    """What of `subprocess.Popen` a test uses."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int) -> None: ...

    def kill(self) -> None: ...


class ForkServer:
    """The process from which services are forked. It ends with this one."""

    def __init__(self) -> None:
        self._ended: dict[int, int] = {}
        self._forked: list[int] = []
        self._changed = threading.Condition()
        self._starting = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.shared_jvm.fork_server"],
            cwd=ROOT,
            env=BEFORE_TESTS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._listen, name="forks", daemon=True)
        self._reader.start()

    def start(self, module: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Forked:
        """Fork a process that runs `module` in the folder of the repository, with all of its output in `log`."""
        request = {
            "module": module,
            "arguments": list(arguments),
            "folder": str(ROOT),
            "environment": dict(environment),
            "log": str(log),
        }
        assert self._process.stdin is not None
        with self._starting:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            with self._changed:
                assert self._changed.wait_for(lambda: self._forked, 60), "the fork server does not answer"
                return Forked(self._forked.pop(0), self)

    def wait(self, pid: int, seconds: float | None) -> int | None:
        """Return the exit code of a process, or None if it still runs after that many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: pid in self._ended, seconds)
            return self._ended.get(pid)

    def close(self) -> None:
        """End the fork server, and no child of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            pid, *code = map(int, line.split())
            with self._changed:
                if code:
                    self._ended[pid] = code[0]
                else:
                    self._ended.pop(pid, None)  # the system gives a number again
                    self._forked.append(pid)
                self._changed.notify_all()


class Forked:
    """A process that a fork server has forked."""

    def __init__(self, pid: int, server: ForkServer) -> None:
        self._pid = pid
        self._server = server
        self._code: int | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._pid

    def poll(self) -> int | None:
        """Return its exit code, None while it runs."""
        return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code when it has ended. Raises subprocess.TimeoutExpired."""
        code = self._wait(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("tailrace", timeout or 0.0)
        return code

    def _wait(self, seconds: float | None) -> int | None:
        if self._code is None:
            self._code = self._server.wait(self._pid, seconds)
        return self._code

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # its end may not have been reported yet
                os.kill(self._pid, sig)

    def kill(self) -> None:
        """kill -9."""
        self.send_signal(signal.SIGKILL)
