"""The service as its users run it: a process of its own, started, killed and started again by a test."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from socket import AF_INET, AF_INET6, inet_ntop
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.spark.shared_jvm.forks import Process
from tests.spark.shared_jvm.jvm import SharedJvm, SharedJvms
from tests.spark.shared_jvm.terms import FOLDER

ROOT = Path(__file__).resolve().parents[2]

QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}
"""Spark's settings, unless a test has its own, as the long ones of `tests/chaos` have. A service of other tests ends
after a few batches: the JVM's second compiler would take a quarter of its processor time, and save none."""

SELDOM = "3s"
"""How often a batch runs without rows, unless a test has its own `BATCH__TICK`. Most tests wait for what they have fed,
and such a batch takes a quarter of a second of a processor."""

ANSWERS_WITHIN = 60.0
"""Seconds that the service's HTTP server may take for an answer where the machine is busy."""

NOTICED_WITHIN = 60.0
"""Seconds that processes may take to notice the end of their parent, and to clean up after it."""


class ServiceProcess:
    """`tailrace run FILE` with a checkpoint of the test's own; what it says is in `log`."""

    def __init__(
        self,
        pipeline: str,
        folder: Path,
        bootstrap: str,
        *,
        jvms: SharedJvms | None = None,
        **settings: str,
    ) -> None:
        """`jvms` lends the service a JVM; without it each start has a new one."""
        self.folder = folder
        self._jvms = jvms
        self._file = folder / "pipeline.sql"
        self._file.write_text(pipeline)
        self._log = folder / "log"
        self._settings = {
            "TAILRACE_KAFKA__BOOTSTRAP_SERVERS": bootstrap,
            "TAILRACE_CHECKPOINT": str(folder / "checkpoint"),
            "TAILRACE_TOPICS__CREATE": "true",
            "TAILRACE_SPARK__MASTER": "local[2,16]",
            "TAILRACE_SPARK__DRIVER_MEMORY": "768m",
            "TAILRACE_SPARK__CONF": json.dumps(QUICK),
            "TAILRACE_HTTP__PORT": "0",
            "TAILRACE_RETRY__BACKOFF": "200ms",
            "TAILRACE_BATCH__TICK": SELDOM,
            "TAILRACE_LOG_FORMAT": "json",
            **{f"TAILRACE_{name}": value for name, value in settings.items()},
        }
        self._process: Process | None = None
        self.within: Sequence[str] = ()
        """The words of a command that runs the service: its own come after them."""

    @property
    def log(self) -> str:
        """Everything that the service and its JVM have said so far."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def events(self) -> list[dict[str, object]]:
        """The JSON lines of the log, without a last one that is still being written."""
        lines = self.log.split("\n")[:-1]
        return [json.loads(line) for line in lines if line.startswith('{"time"')]

    def ask(self, path: str) -> tuple[int, str]:
        """Status and body of the service's own HTTP server; status 0 while it does not listen."""
        port = self._settings["TAILRACE_HTTP__PORT"]
        assert port != "0", "the port is the service's own choice: a test that asks names it (HTTP__PORT)"
        try:
            with urlopen(f"http://127.0.0.1:{port}{path}", timeout=ANSWERS_WITHIN) as answer:
                return int(answer.status), answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def rewrite(self, pipeline: str) -> None:
        """Change the pipeline file; the next start reads it."""
        self._file.write_text(pipeline)

    def start(self, **more: str) -> None:
        """Start the service; `more` are settings of this start only."""
        self.call("run", str(self._file), **more)

    def call(self, *arguments: str, **more: str) -> None:
        """Start `tailrace` with other arguments and the settings of the service."""
        jvms = None if self.within else self._jvms
        shared = None if jvms is None else jvms.running()
        module = "service" if shared is None else "tests.spark.shared_jvm.service"
        environment: Mapping[str, str] = {
            **{k: v for k, v in os.environ.items() if not k.startswith("TAILRACE_")},
            **{k: v for k, v in os.environ.items() if k in ("TAILRACE_ARCHIVES", "TAILRACE_IVY_SETTINGS")},
            **self._settings,
            **{f"TAILRACE_{name}": value for name, value in more.items()},
            **({} if shared is None else {FOLDER: str(shared.folder)}),
        }
        if jvms is not None:
            self._process = jvms.forks.start(module, arguments, environment, self._log)
            return
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.within, sys.executable, "-m", module, *arguments],
                cwd=ROOT,
                env=dict(environment),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def wait(self, seconds: float = 180) -> int:
        """Wait for the end of the service; its exit code."""
        assert self._process is not None
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the service did not end within {seconds} s; it said:\n{self.log[-6000:]}") from None

    def ended(self) -> bool:
        """Whether the service is not running."""
        return self._process is None or self._process.poll() is not None

    def terminate(self) -> None:
        """Ask for an orderly end."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9 of the driver, and wait until its JVM has noticed, or is killed like it."""
        if (shared := self._kill_driver()) is not None:
            shared.kill()

    def kill_driver(self) -> None:
        """kill -9 of the driver alone. Spark is stopped in a JVM that it shares, and the JVM goes on.

        For a test that asks what is done after a kill, whatever it interrupts: a new JVM costs as much as such a test.
        """
        if (shared := self._kill_driver()) is not None:
            shared.clear()

    def close(self) -> None:
        """End the service, however a test has ended; a JVM that it shares goes on."""
        self.kill_driver()

    def _kill_driver(self) -> SharedJvm | None:
        """Kill the driver and what is below it. Return the shared JVM, if the service was the last to use it."""
        if self._process is None:
            return None
        kill_with_descendants(self._process)
        return None if self._jvms is None else self._jvms.used_by(self._process.pid)

    @property
    def driver(self) -> int:
        """The process of the driver."""
        assert self._process is not None
        return self._process.pid

    def processes(self) -> dict[str, list[int]]:
        """The processes of the running service by what they are; those in a JVM that it shares, too."""
        found: dict[str, list[int]] = {
            "driver": [self.driver],
            "jvm": [],
            "worker": [],
            "writer": [],
            "fork_server": [],
        }
        for pid in descendants(self.driver):
            command = command_of(pid)
            if "java" in command.split("\0")[0]:
                found["jvm"].append(pid)
            elif "service.spark.driver.worker_daemon" in command and "pyspark.worker" in command:
                found["worker"].append(pid)
            elif "service.spark.driver.fork_server" in command:
                found["fork_server"].append(pid)
        shared = None if self._jvms is None else self._jvms.used_by(self.driver)
        if shared is not None:
            found["jvm"].append(shared.pid)
            for daemon in shared.workers():
                found["worker"] += [daemon, *descendants(daemon)]
        marker = str(self.folder).encode()
        workers = {str(pid) for pid in found["worker"]}
        for pid in all_processes():
            # The environment of a writer in a shared JVM is not the service's, but its parent is one of the workers.
            words = command_of(pid).rstrip("\0").split("\0")
            if "service.kafka.writer" in words and (words[-1] in workers or marker in environment_of(pid)):
                found["writer"].append(pid)
        return found

    def until(
        self, what: str, holds: Callable[[], bool], seconds: float = 240, look_every: float | None = None
    ) -> None:
        """Wait until `what` holds, while the service runs. `look_every` so many seconds, for what is soon over."""
        deadline = time.monotonic() + seconds
        while True:
            asked = time.monotonic()
            if holds():
                return
            printed = f"the service said:\n{self.log[-6000:]}"
            assert not self.ended(), f"the service has ended, but {what} was to hold; {printed}"
            assert time.monotonic() < deadline, f"not within {seconds} s: {what}; {printed}"
            # A look into a topic takes time of the service and its broker: a third of the processor's at most.
            time.sleep(min(max(0.1, 2 * (time.monotonic() - asked)), 0.5) if look_every is None else look_every)


def all_processes() -> list[int]:
    """Every process of this machine that we may look at."""
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]


def command_of(pid: int) -> str:
    """The command line of a process, NUL between the words; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def environment_of(pid: int) -> bytes:
    """The environment of a process; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def maps_archive_of_classes(pid: int) -> bool:
    """Whether a JVM has mapped our archive of classes, which `make setup` makes; Java's own is `classes.jsa`."""
    return re.search(r"/classes-[0-9a-f]{16}\.jsa", Path(f"/proc/{pid}/maps").read_text()) is not None


def parent_of(pid: int) -> int:
    """The parent of a process, 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def descendants(pid: int) -> list[int]:
    """All processes below `pid`."""
    children: dict[int, list[int]] = {}
    for each in all_processes():
        children.setdefault(parent_of(each), []).append(each)
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def signal_to(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def kill_with_descendants(process: Process) -> None:
    """kill -9 of a process; those below it get some time to notice, then they are killed as well."""
    family = descendants(process.pid)
    process.kill()
    process.wait()
    deadline = time.monotonic() + NOTICED_WITHIN
    while any(alive(pid) for pid in family) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in family:
        signal_to(pid, signal.SIGKILL)


def listens(pid: int) -> set[str]:
    """The addresses at which a process listens to TCP."""
    own = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            own.add(str(descriptor.readlink()))
    found = set()
    for family, table in ((AF_INET, "tcp"), (AF_INET6, "tcp6")):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in own:
                halves = [words[1][at : at + 8] for at in range(0, len(words[1].split(":")[0]), 8)]
                found.add(inet_ntop(family, b"".join(bytes.fromhex(half)[::-1] for half in halves)))
    return {address.removeprefix("::ffff:") for address in found}
