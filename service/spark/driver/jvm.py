"""The JVM of the driver, started by ourselves and not by Spark's scripts.

So it starts while Kafka is still being queried, without a second JVM that only builds its command line, with options
that suit a service of many small batches, and with an error stream that goes to our own log.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from service.archives.class_archive import CREATE, creates_archive
from service.host.guard import Guard
from service.host.machine import find_java
from service.spark.driver import allocation
from service.spark.driver.class_path import archive_options, class_path, java, spark_home
from service.spark.driver.configuration import PYTHON_PATH
from service.spark.driver.fork_server import VARIABLE
from service.spark.driver.jvm_options import tuned, words_of
from service.spark.driver.log_filter import is_noise
from service.spark.internals.workers import CONNECTION_FILE, GATEWAY, GATEWAY_PORT, GATEWAY_SECRET, gateway_address

_PATIENCE = 120.0
_PIECE = 0.01
"""The seconds that the start of the JVM may take on a busy machine, and those between two checks."""

MODULES: Mapping[str, Sequence[str]] = {
    "java.base": (
        *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
        *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs"),
        *("sun.security.action", "sun.util.calendar"),
    ),
    "java.security.jgss": ("sun.security.krb5",),
}
"""The packages of the JDK that Spark accesses by reflection."""

SPARK_NEEDS: Sequence[str] = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-modules=jdk.incubator.vector",
    *(f"--add-opens={module}/{package}=ALL-UNNAMED" for module, packages in MODULES.items() for package in packages),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)


class JvmFailed(Exception):
    """A JVM that ended before it could be reached; the text is its output."""


class Jvm:
    """A JVM that runs Spark's gateway. It ends when this process ends, for whatever reason."""

    def __init__(
        self,
        settings: Mapping[str, str],
        jars: Sequence[Path],
        scratch: Path,
        on_line: Callable[[str], None],
        clients: Sequence[Path] = (),
    ) -> None:
        """Start the JVM.

        `settings` are Spark's; `jars` come before its own archives, and the `clients` of an object store after its own;
        `on_line` receives its output, line by line. Its temporary files are in the folder `scratch`, which is removed
        when this process is killed.
        """
        self._folder = scratch / "jvm"
        self._folder.mkdir(mode=0o700)
        temporary = temporary_folder(scratch)
        temporary.mkdir()
        self._on_line = on_line
        self._last: list[str] = []
        home = spark_home()
        arguments = self._folder / "arguments"
        # A file: the class path is long, and everybody can read a command line.
        words = [f"-Djava.io.tmpdir={temporary}", *options(settings, jars)]
        text = "\n".join(quoted([*words, "-cp", class_path(home, jars, settings, clients), GATEWAY]))
        with open(os.open(arguments, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(text)
        self._archives = CREATE in text
        os.environ["PYSPARK_PYTHON"] = sys.executable
        python_path = os.pathsep.join([*PYTHON_PATH, *filter(None, [os.environ.get("PYTHONPATH")])])
        fork_server = str(self._folder / "forks")
        self._fork_server = subprocess.Popen(
            [sys.executable, "-m", "service.spark.driver.fork_server", fork_server],
            stdin=subprocess.PIPE,  # it ends when this closes
            env={**os.environ, "PYTHONPATH": python_path},
            process_group=0,
        )
        self.process = subprocess.Popen(
            [java(), f"@{arguments}"],
            stdin=subprocess.PIPE,  # it ends when this closes
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={
                **os.environ,
                **allocation.environment(),
                "PYTHONPATH": python_path,
                VARIABLE: fork_server,
                "SPARK_HOME": str(home),
                "SPARK_SCALA_VERSION": "2.13",  # Spark's workers of a local cluster need it
                "SPARK_CONNECT_MODE": "0",
                CONNECTION_FILE: str(self._folder / "connection"),
            },
            process_group=0,  # Ctrl-C on a terminal reaches every process of a group; this one is ended by ours
        )
        self._guard: Guard | None = Guard(self.process.pid, scratch)
        self._reader = threading.Thread(target=self._listen, name="jvm-output", daemon=True)
        self._reader.start()

    def connect(self) -> None:
        """Wait until it can be reached, and give its address to PySpark."""
        deadline = time.monotonic() + _PATIENCE
        connection = self._folder / "connection"
        while not connection.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self._reader.join(5)
                find_java()  # a Java that is too old is the likely reason, and the clearer message
                raise JvmFailed("the JVM did not start: " + ("; ".join(self._last) or f"code {self.process.poll()}"))
            time.sleep(_PIECE)
        os.environ.update(gateway_address(connection.read_bytes()))
        connection.unlink()
        (self._folder / "arguments").unlink(missing_ok=True)  # they may hold secrets of the user's own options

    def close(self) -> None:
        """End the JVM; safe to call twice."""
        for name in (GATEWAY_PORT, GATEWAY_SECRET):
            os.environ.pop(name, None)
        assert self.process.stdin is not None
        assert self._fork_server.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(120 if self._archives else 10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._fork_server.stdin.close()
        self._fork_server.wait()
        self._reader.join(1)  # a worker that still runs holds the stream open
        if not self._reader.is_alive() and self.process.stdout is not None:
            self.process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._guard is not None:
            self._guard.release()
            self._guard = None

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            text = line.decode(errors="replace").rstrip()
            if not text or is_noise(text):
                continue
            self._last = [*self._last[-4:], text]
            self._on_line(text)


def temporary_folder(scratch: Path) -> Path:
    """Return the folder for temporary files of a JVM that is started with this `scratch`. Its name is short,
    since there are sockets in it."""
    return scratch / "jvm" / "t"


def options(settings: Mapping[str, str], jars: Sequence[Path] = ()) -> list[str]:
    """Return the options of the JVM: ours first, so that those of `spark.driver.extraJavaOptions` win."""
    heap = settings.get("spark.driver.memory", "1g")
    given = words_of(settings.get("spark.driver.extraJavaOptions", ""))
    mapped = archive_options([] if creates_archive(given) else jars)
    return [f"-Xmx{heap}", *tuned(given), *SPARK_NEEDS, *mapped, *given]


def quoted(arguments: Sequence[str]) -> list[str]:
    """Return the arguments in the form of an argument file of `java`."""
    return ['"' + argument.replace("\\", "\\\\").replace('"', '\\"') + '"' for argument in arguments]
