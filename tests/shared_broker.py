"""One broker for all processes that run tests: the first of them that needs it has it started, by the process that
distributes the tests, with which it ends."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.brokers import Broker

STARTED_WITHIN = 180.0
"""Seconds that the start of the broker may take where the machine is busy."""


@dataclass(frozen=True, slots=True)
class SharedBroker:
    """A broker that another process has started."""

    bootstrap: str


class BrokerOnRequest:
    """Starts a broker when it is asked for at the socket `path`, and answers each time with its address."""

    def __init__(self, broker: Callable[[], AbstractContextManager[Broker]]) -> None:
        self._broker = broker
        self._folder = Path(tempfile.mkdtemp(prefix="tailrace-tests-"))
        self.path = str(self._folder / "broker")
        self._started = ExitStack()
        self._bootstrap = ""
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen(64)
        self._thread = threading.Thread(target=self._serve, name="broker for all tests", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the broker."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        self._started.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self) -> None:
        while True:
            try:
                asking, _ = self._listener.accept()
            except OSError:
                return
            with asking, suppress(OSError):  # a process that asks may have gone
                asking.sendall(self._answer().encode())

    def _answer(self) -> str:
        """The address; if there is no broker, an empty line and the reason. The next that asks tries again."""
        try:
            self._bootstrap = self._bootstrap or self._started.enter_context(self._broker()).bootstrap
        except Exception as error:
            return f"\n{error}"
        return self._bootstrap


def shared_broker(path: str) -> SharedBroker:
    """Ask at the socket `path` for the broker. Raises RuntimeError if it cannot be started."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(STARTED_WITHIN)
        asking.connect(path)
        bootstrap, _, reason = asking.makefile().read().partition("\n")
    if not bootstrap:
        raise RuntimeError(f"there is no broker for tests: {reason}")
    return SharedBroker(bootstrap)
