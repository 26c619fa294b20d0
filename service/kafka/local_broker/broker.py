"""A local Kafka broker in a process of its own, for trials and tests.

A single node in KRaft mode is broker and controller at once. It has three listeners: the clients' (with the given
security protocol and address), one for itself, and the controller's.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from service.archives import ensure, load
from service.archives.class_archive import creates_archive, mapped_classes
from service.host.guard import Guard
from service.host.machine import MachineError, check_port, disk_full, find_java, free_ports, writing_to
from service.kafka.local_broker.formatted_folder import FORMATTED, copy_whole, formatted_folder
from service.kafka.local_broker.jvm_options import QUICK_START, broker_classes
from service.kafka.local_broker.server_properties import LOG_SETTINGS, server_properties

_CLUSTER = "dGFpbHJhY2UtbG9jYWwtMQ"  # Nothing else will ever join, so that every broker may have the same id.
_READY = "Kafka Server started"
_START_SECONDS = 90
_STOP_SECONDS = 20
_ARCHIVE_SECONDS = 120
"""Seconds that its start may take on a busy machine, its end, and an end that makes an archive of classes; one that
does not end is killed."""


class EmbeddedKafka:
    """A broker that lives as long as this object's `with` block, and never longer than this process.

    Without a `folder` the data is temporary and goes with the broker; with one it is kept, and a later broker on the
    same folder finds its topics again. `properties` are added to those of the server, or replace them. `security` is
    the protocol of the clients' listener (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL), `host` is the address of this
    machine that it is on, `format_arguments` go to Kafka's storage tool (`--add-scram ...`). `jvm_options=()` is for
    brokers that must be fast rather than soon there.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int | None = None,
        folder: Path | None = None,
        properties: Mapping[str, str] | None = None,
        security: str = "PLAINTEXT",
        format_arguments: Sequence[str] = (),
        heap: str = "256m",
        jvm_options: Sequence[str] = QUICK_START,
    ) -> None:
        self._host = host
        client, self._internal, self._controller = free_ports(3)
        self.port = port or client
        self._kept = folder
        self._properties = dict(properties or {})
        self._security = security
        self._format_arguments = tuple(format_arguments)
        self._heap = f"-Xmx{heap}"
        self._jvm_options = tuple(jvm_options)
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None

    @property
    def bootstrap(self) -> str:
        """The `bootstrap.servers` of clients."""
        return f"{self._host}:{self.port}"

    @property
    def internal_bootstrap(self) -> str:
        """The same broker without any security, whatever the clients' listener requires."""
        return f"127.0.0.1:{self._internal}"

    @property
    def folder(self) -> Path:
        """Where the broker keeps its data, its settings and its log `broker.log`."""
        if self._folder is None:
            raise RuntimeError("the broker has not been started")
        return self._folder

    @property
    def pid(self) -> int | None:
        """The process id of the broker while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start the broker and return when it accepts requests; existing data is used."""
        if self.pid is not None:
            return
        for port in (self.port, self._internal, self._controller):
            check_port(port)
        java = find_java()
        jars = ensure(load("kafka"))
        if self._folder is None:
            self._folder = (self._kept or Path(tempfile.mkdtemp(prefix="tailrace-kafka-"))).absolute()
        try:
            with writing_to(self._folder):
                self._configure(self._folder)
            jvm = [java, self._heap, "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError"]
            jvm += ["-cp", os.pathsep.join(map(str, jars))]
            jvm += [f"-Dlog4j2.configurationFile={self._folder / 'log4j2.properties'}"]
            if not self._kept:
                jvm += [f"-Djava.io.tmpdir={self._folder}"]  # a broker that is killed leaves what it has unpacked
            mapped = mapped_classes(broker_classes(jars))
            if not (self._folder / "data" / "meta.properties").exists():
                self._format([*jvm, *mapped], formatted_folder(jars))
            self._launch([*jvm, *(() if creates_archive(self._jvm_options) else mapped), *self._jvm_options])
        except BaseException:
            self.close()
            raise

    def stop(self) -> None:
        """End the broker as an operator would, and keep its data."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the broker with kill -9, and keep its data."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Start again on the same ports and data; a running broker is stopped before."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End the broker and remove its data if that is temporary."""
        if self._kept is not None:
            self.stop()
        else:
            self.kill()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None

    def check(self) -> None:
        """Raise an error with the reason if the broker has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            raise self._complaint("ended")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _configure(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        settings = server_properties(folder / "data", self.bootstrap, self._internal, self._controller, self._security)
        lines = [f"{key}={value}\n" for key, value in (settings | self._properties).items()]
        (folder / "server.properties").write_text("".join(lines))
        (folder / "log4j2.properties").write_text(LOG_SETTINGS)

    def _format(self, jvm: Sequence[str], kept: Path) -> None:
        """Format the data folder with Kafka's tool, or copy a folder that it has formatted the same way: `kept`."""
        data = self.folder / "data"
        usual = not self._format_arguments and not self._properties.keys() & FORMATTED
        if usual and kept.is_dir() and not data.exists():
            copy_whole(kept, data)
            return
        command = [*jvm, *QUICK_START, "kafka.tools.StorageTool", "format", "-t", _CLUSTER]
        command += ["-c", str(self.folder / "server.properties"), *self._format_arguments]
        run = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if run.returncode != 0:
            (self.folder / "broker.log").write_text(run.stdout + run.stderr)
            raise self._complaint("could not prepare its data folder")
        if usual:
            with suppress(OSError):  # the next broker is formatted by the tool, too
                copy_whole(data, kept)

    def _launch(self, jvm: Sequence[str]) -> None:
        log = self.folder / "broker.log"
        with log.open("ab") as out:
            begin = out.tell()
            self._process = subprocess.Popen(
                [*jvm, "kafka.Kafka", str(self.folder / "server.properties")],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._guard = Guard(self._process.pid, None if self._kept else self.folder)
        deadline = time.monotonic() + _START_SECONDS
        while _READY not in _read_from(log, begin):
            if self._process.poll() is not None:
                raise self._complaint("did not start")
            if time.monotonic() > deadline:
                raise self._complaint(f"was not ready after {_START_SECONDS} seconds")
            time.sleep(0.05)

    def _end(self, how: signal.Signals) -> None:
        process, guard = self._process, self._guard
        self._process = self._guard = None
        if process is None:
            return
        try:
            process.send_signal(how)
            process.wait(_ARCHIVE_SECONDS if creates_archive(self._jvm_options) else _STOP_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            process.kill()
            process.wait()
            if guard is not None:
                guard.release()

    def _complaint(self, what: str) -> MachineError:
        log = _read_from(self.folder / "broker.log", 0)
        if "No space left on device" in log or "Disk quota exceeded" in log:
            return disk_full(self.folder)
        if "Address already in use" in log:
            return MachineError(f"a port of the local Kafka broker ({self.bootstrap}) is taken", "choose another port")
        lines = [line for line in log.splitlines() if "Exception" in line or "ERROR" in line] or log.splitlines()
        return MachineError(f"the local Kafka broker {what} ({lines[-1].strip() if lines else 'it said nothing'})")


def _read_from(path: Path, begin: int) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(begin)
        return file.read().decode(errors="replace")


def main() -> int:
    """Run a broker until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m service.kafka.local_broker.broker", description=main.__doc__)
    parser.add_argument("--port", type=int, help="where clients connect (default: any free port)")
    parser.add_argument("--folder", type=Path, help="keep the data here (default: temporary)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with EmbeddedKafka(port=options.port, folder=options.folder) as kafka:
            print(kafka.bootstrap, flush=True)
            while kafka.pid is not None:
                time.sleep(0.2)
            kafka.check()
    except MachineError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
