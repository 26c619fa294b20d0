"""Spark's own cluster on this machine, to which workers are added while it runs: each has room for one executor."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from service.machine import free_ports
from service.spark.jvm import spark_home

HOST = "127.0.0.1"


class Standalone:
    """A master, and no worker yet. Used as a context manager, which ends all of it."""

    def __init__(self, folder: Path) -> None:
        (port,) = free_ports(1)
        self.url = f"spark://{HOST}:{port}"
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._run("master", "master.Master", "--port", str(port))
        deadline = time.monotonic() + 120
        while True:
            with suppress(OSError), socket.create_connection((HOST, port), 1):
                return
            assert time.monotonic() < deadline, (folder / "master.log").read_text()
            time.sleep(0.1)

    def add_worker(self, cores: int = 1) -> None:
        """One more executor of so many cores and a gigabyte can be started, which takes some seconds."""
        name = f"worker-{len(self._processes)}"
        room = ["--cores", str(cores), "--memory", "1g", "--work-dir", str(self._folder / name)]
        self._run(name, "worker.Worker", *room, self.url)

    def _run(self, name: str, what: str, *arguments: str) -> None:
        home = spark_home()
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}", "--host", HOST]
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [*command, "--webui-port", "0", *arguments],
                    env={**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "SPARK_DAEMON_MEMORY": "128m"},
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                )
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._processes):
            process.terminate()  # a worker ends its executors
        for process in reversed(self._processes):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
