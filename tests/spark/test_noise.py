"""Everything that the JVM and its helpers print is logged, except for what nobody needs."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from service.spark import driver
from service.spark.driver.log_filter import is_noise


@pytest.mark.parametrize(
    "line", ["WARNING: Using incubator modules: jdk.incubator.vector", "Setting default log level to x"]
)
def test_how_the_jvm_was_started_is_not_logged(line: str) -> None:
    assert is_noise(line)


@pytest.mark.parametrize(
    "line",
    [
        'Exception in thread "main" java.nio.channels.ClosedByInterruptException',
        "\tat java.base/sun.nio.ch.ServerSocketChannelImpl.accept(ServerSocketChannelImpl.java:399)",
        "2026-01-02T03:04:05.678 ERROR Utils: Uncaught exception in thread x",
    ],
)
def test_anything_else_is_logged(line: str) -> None:
    assert not is_noise(line)


def _source(port: int) -> subprocess.Popen[str]:
    """Start the process that serves a query's Python source to the JVM that listens at `port`."""
    environment = os.environ | {
        "PYTHONPATH": str(Path(driver.__file__).with_name("startup")),
        "PYTHON_WORKER_FACTORY_PORT": str(port),
        "PYTHON_WORKER_FACTORY_SECRET": "secret",
    }
    command = [sys.executable, "-m", "pyspark.sql.streaming.python_streaming_source_runner"]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def test_the_source_of_a_query_that_was_stopped_ends_without_a_word() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = _source(server.getsockname()[1])
        connection, _ = server.accept()
        with connection:
            connection.recv(100)
            connection.sendall(struct.pack(">i", 2) + b"ok")
            time.sleep(0.5)  # so that the process waits for the next word when the connection is closed
    assert process.communicate()[1] == ""


def test_a_source_that_finds_no_jvm_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert "CANNOT_OPEN_SOCKET" in _source(port).communicate()[1]
