"""The JVM of the driver, started by ourselves rather than by Spark's scripts.

It then starts while Kafka is still being asked, without a second JVM that only makes up its command line, with the
options that suit a service of many small batches, and its error stream is ours to tell in the form of our own logs.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from service.host.guard import Guard
from service.host.machine import find_java
from service.spark.driver import allocation
from service.spark.driver.configuration import PYTHON_PATH
from service.spark.driver.fork_server import VARIABLE
from service.spark.driver.log_filter import is_noise
from service.spark.internals.workers import CONNECTION_FILE, GATEWAY, GATEWAY_PORT, GATEWAY_SECRET, gateway_address

_PATIENCE = 120.0
_PIECE = 0.01
"""Seconds that the start of the JVM may take on a busy machine, and between two looks."""

MODULES: Mapping[str, Sequence[str]] = {
    "java.base": (
        *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
        *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs"),
        *("sun.security.action", "sun.util.calendar"),
    ),
    "java.security.jgss": ("sun.security.krb5",),
}
"""The packages of the JDK that Spark looks into."""

TUNED: Sequence[str] = (
    # Each batch leaves much garbage and keeps little: what counts is the processor time, not the length of a pause.
    # Young objects go round in what a processor's cache and a container can spare: more of it is as much more memory in
    # use, all of it garbage, and saves nothing. With less, what Kafka's client has fetched would be taken for old.
    *("-XX:+UseParallelGC", "-XX:NewSize=192m", "-XX:MaxNewSize=192m"),
    # So much the classes of Spark take: below, each step on the way to it is a collection of everything.
    "-XX:MetaspaceSize=192m",
    # The archive of classes is used at the place it was made for, as older JVMs do: at any other all of its pages are
    # changed first, which makes 110 MiB of them this process's own.
    *("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0"),
    # What the JVM has allocated beside its heap and freed again goes back to the system; older JVMs know no such thing.
    *("-XX:+IgnoreUnrecognizedVMOptions", "-XX:TrimNativeHeapInterval=30000"),
    # Planning a batch runs half of Spark once. Only what runs for every row is worth the second compiler's time.
    *("-XX:Tier4InvocationThreshold=50000", "-XX:Tier4MinInvocationThreshold=6000"),
    *("-XX:Tier4CompileThreshold=150000", "-XX:Tier4BackEdgeThreshold=400000"),
)
"""Measured on two cores: a third less processor time until the first batch, and in the first minute."""

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

_NOT_NEEDED = ("spark-mllib_",)
"""Archives of Spark that are left out. A session looks for extensions in all of them, and that of machine learning
makes its functions by Scala's reflection: an eighth of the processor time of a start."""

CREATE = "-XX:ArchiveClassesAtExit="
"""The option that has the JVM write the classes it has loaded to a file, which it does for some seconds at its end."""


class JvmFailed(Exception):
    """The JVM ended before it could be spoken to; the text is what it said."""


class Jvm:
    """A JVM that runs Spark's gateway. It ends when this process does, however that happens."""

    def __init__(
        self, settings: Mapping[str, str], jars: Sequence[Path], scratch: Path, tell: Callable[[str], None]
    ) -> None:
        """Start it. `settings` are Spark's; `jars` go before its own; `tell` gets what it says, a line at a time.

        All that it writes for itself is in the folder `scratch`, which is removed when this process is killed.
        """
        self._folder = scratch / "jvm"
        self._folder.mkdir(mode=0o700)
        temporary = self._folder / "temporary"
        temporary.mkdir()
        self._tell = tell
        self._last: list[str] = []
        home = spark_home()
        arguments = self._folder / "arguments"
        # A file: the class path is long, and a command line is for everybody to read.
        words = [f"-Djava.io.tmpdir={temporary}", *options(settings, jars)]
        said = "\n".join(quoted([*words, "-cp", class_path(home, jars, settings), GATEWAY]))
        with open(os.open(arguments, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(said)
        self._archives = CREATE in said
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
            [_java(), f"@{arguments}"],
            stdin=subprocess.PIPE,  # it ends when this closes
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={
                **os.environ,
                **allocation.environment(),
                "PYTHONPATH": python_path,
                VARIABLE: fork_server,
                "SPARK_HOME": str(home),
                "SPARK_SCALA_VERSION": "2.13",  # Spark's workers of a local cluster ask for it
                "SPARK_CONNECT_MODE": "0",
                CONNECTION_FILE: str(self._folder / "connection"),
            },
            process_group=0,  # Ctrl-C on a terminal goes to every process of a group; this one is ended by ours
        )
        self._guard: Guard | None = Guard(self.process.pid, scratch)
        self._reader = threading.Thread(target=self._listen, name="jvm-output", daemon=True)
        self._reader.start()

    def connect(self) -> None:
        """Wait until it can be spoken to, and tell pyspark where it is."""
        deadline = time.monotonic() + _PATIENCE
        connection = self._folder / "connection"
        while not connection.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self._reader.join(5)
                find_java()  # a Java that is too old is the likely reason, and the better sentence
                raise JvmFailed("the JVM did not start: " + ("; ".join(self._last) or f"code {self.process.poll()}"))
            time.sleep(_PIECE)
        os.environ.update(gateway_address(connection.read_bytes()))
        connection.unlink()
        (self._folder / "arguments").unlink(missing_ok=True)  # they may hold secrets of the user's own options

    def close(self) -> None:
        """End it; safe to call twice."""
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
        self._reader.join(1)  # a worker that is still there holds the stream open
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
            self._tell(text)


def spark_home() -> Path:
    """Return where pyspark is installed, found without importing it."""
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'pyspark'")
    return Path(found.submodule_search_locations[0]).resolve()


def options(settings: Mapping[str, str], jars: Sequence[Path] = ()) -> list[str]:
    """Return the options of the JVM: ours first, so that those of `spark.driver.extraJavaOptions` win."""
    heap = settings.get("spark.driver.memory", "1g")
    given = shlex.split(settings.get("spark.driver.extraJavaOptions", ""))
    archive = class_archive(jars) if jars and not any(CREATE in option for option in given) else None
    # An archive that this JVM cannot use is no concern of anybody's: it says so as a warning on standard output.
    mapped = [f"-XX:SharedArchiveFile={archive}"] if archive is not None and archive.exists() else []
    return [f"-Xmx{heap}", *TUNED, *SPARK_NEEDS, "-Xlog:disable", "-Xlog:all=error:stderr", *mapped, *given]


def class_archive(jars: Sequence[Path]) -> Path:
    """Return where the archive of classes for this Java and this class path is, or would be; see `class_archive`."""
    path = class_path(spark_home(), jars, {}).split(os.pathsep)
    said = [str(Path(_java()).resolve()), *(f"{jar} {Path(jar).stat().st_size}" for jar in path)]
    digest = hashlib.sha256("\n".join(said).encode()).hexdigest()
    return jars[0].with_name(f"classes-{digest[:16]}.jsa")


def class_path(home: Path, jars: Sequence[Path], settings: Mapping[str, str]) -> str:
    """Our archives, those of the settings, Spark's own; always in the same order."""
    given = [jar.removeprefix("file://") for jar in settings.get("spark.jars", "").split(",")]
    extra = settings.get("spark.driver.extraClassPath", "").split(os.pathsep)
    ours = [*(str(jar.resolve()) for jar in jars), *extra, *given]
    own = sorted(str(jar) for jar in (home / "jars").glob("*.jar") if not jar.name.startswith(_NOT_NEEDED))
    return os.pathsep.join(dict.fromkeys([jar for jar in [*ours, *own] if jar and "://" not in jar]))


def quoted(arguments: Sequence[str]) -> list[str]:
    """Return the arguments as a file of arguments for `java` holds them."""
    return ['"' + argument.replace("\\", "\\\\").replace('"', '\\"') + '"' for argument in arguments]


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    return found or find_java()
