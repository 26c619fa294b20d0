"""Find the writer process of a query on this host, or start it."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import service.kafka.writer
from service.host.machine import private_folder
from service.kafka.errors import KafkaConfigError, WriterUnavailable
from service.kafka.writer import wire
from service.kafka.writer.wire import PeerGone
from service.kafka.writer.writer_settings import WriterSettings

_START_SECONDS = 30.0
"""Seconds that a writer may take to start, all attempts together. It takes about a second; on a busy machine some
more."""

_ATTEMPT_SECONDS = 10.0
"""Seconds that a new writer may take to listen: if it has died by then, there is time for two others."""

_ANSWER_SECONDS = 20.0
"""Seconds that a writer may take to greet, which it does before anything else. One that takes longer hangs or is
stopped, and is killed: a pause for want of CPU or memory is far shorter."""

_LONGEST_PATH = 100
"""The most characters of a socket's path: Linux allows 107 bytes."""

_ROOT = Path(service.kafka.writer.__file__).parents[3]


def connect(settings: WriterSettings) -> socket.socket:
    """Return a connection to the query's writer process, which is started if there is none and replaced if it hangs."""
    path = Path(settings.socket_folder) / f"{settings.socket_name()}.socket"
    if len(str(path)) > _LONGEST_PATH:
        raise KafkaConfigError(
            "the folder of the writer's socket has too long a name",
            f"{path} has more than {_LONGEST_PATH} characters",
            "choose a folder with a shorter path",
        )
    private_folder(path.parent)
    return _greeted(path) or _started(path, settings.parent_pid)


def _greeted(path: Path) -> socket.socket | None:
    """A connection whose other side has answered, or None. A process that no longer answers is killed."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_ANSWER_SECONDS)
    try:
        connection.connect(str(path))
        wire.receive(connection)
        connection.settimeout(None)
        return connection
    except TimeoutError:
        pid, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    except (PeerGone, OSError):
        pass
    connection.close()
    return None


def _started(path: Path, parent_pid: int) -> socket.socket:
    """Start the process, unless another task does so at the same moment, and greet it."""
    until = time.monotonic() + _START_SECONDS
    log = path.with_suffix(".log")
    with _alone(path.with_suffix(".lock")):
        while time.monotonic() < until:
            connection = _greeted(path)
            if connection is not None:
                return connection
            _spawn(path, parent_pid, log)
            appears = min(time.monotonic() + _ATTEMPT_SECONDS, until)
            while not _accepts(path) and time.monotonic() < appears:
                time.sleep(0.02)
    raise WriterUnavailable(
        "the writer process could not be started",
        " ".join(log.read_text(errors="replace").split()[-60:]) if log.exists() else None,
        f"see {log}",
    )


def _spawn(path: Path, parent_pid: int, log: Path) -> None:
    search = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "service.kafka.writer", str(path), str(parent_pid)]
    output = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    try:
        subprocess.run(
            command,
            env=os.environ | {"PYTHONPATH": search},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    finally:
        os.close(output)


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
        probe.connect(str(path))
        return True
    return False


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock among the processes of this host."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
