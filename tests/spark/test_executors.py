"""Tasks in executors: processes of their own that share nothing with the driver but the network and the checkpoint."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from service.host.machine import free_ports
from service.spark.driver.allocation import ENVIRONMENT, WORKERS
from tests.brokers import Broker, MakeTopic
from tests.spark.executor_folders import remove_unused_folders
from tests.spark.loopback import CAN_CAPTURE, capturing
from tests.spark.secured import files_below
from tests.spark.service_process import (
    QUICK,
    ServiceProcess,
    command_of,
    descendants,
    environment_of,
    maps_archive_of_classes,
    signal_to,
)
from tests.spark.topics import feed, read, upserted

NAMES = [hashlib.sha256(b"%d" % number).hexdigest()[:20] for number in range(8)]
"""Names that no compression makes shorter: they are looked for in what crosses the network."""

NEEDLES = [name.encode() for name in NAMES]
SECRET = "known to both"
BACKEND = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
PORTS_TRIED = 32
"""Spark takes the next port where one is taken: each executor of a machine has its own."""


class Totals:
    """A pipeline of one GROUP BY on two executors, and what it is fed."""

    def __init__(self, broker: Broker, make_topic: MakeTopic) -> None:
        self._bootstrap = broker.bootstrap
        self._orders, self._totals = make_topic("orders", partitions=4), make_topic("totals", cleanup_policy="compact")
        self.expected: dict[str, int] = {}

    @property
    def query(self) -> str:
        """The pipeline."""
        source = f"'topic' = '{self._orders}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'"
        sink = f"'topic' = '{self._totals}', 'key.format' = 'json', 'value.format' = 'json'"
        return f"""
            CREATE TABLE orders (name STRING, amount BIGINT) WITH ('connector' = 'kafka', {source});
            CREATE TABLE totals (name STRING, total BIGINT, PRIMARY KEY (name) NOT ENFORCED)
              WITH ('connector' = 'upsert-kafka', {sink});
            INSERT INTO totals SELECT name, SUM(amount) FROM orders GROUP BY name;
        """

    def feed(self, rounds: int) -> None:
        """A row of each name in each round."""
        rows = [(number % 4, {"name": name, "amount": 1}) for number, name in enumerate(NAMES * rounds)]
        feed(self._bootstrap, self._orders, rows)
        self.expected = {name: self.expected.get(name, 0) + rounds for name in NAMES}

    def right(self) -> bool:
        """Whether the topic says what was fed."""
        rows = upserted(read(self._bootstrap, self._totals)).values()
        return {row["name"]: row["total"] for row in rows} == self.expected


@pytest.fixture(autouse=True)
def _nothing_is_left_in_the_package() -> Iterator[None]:
    """Spark's local cluster puts the working folders of its executors beside its archives."""
    yield
    remove_unused_folders()


def settings(port: int, disk: Path | None = None, **more: str) -> dict[str, str]:
    ports = {"spark.driver.port": port, "spark.blockManager.port": port + 1, "spark.driver.blockManager.port": port + 1}
    conf = {**QUICK, **ports, **({} if disk is None else {"spark.local.dir": disk})}
    return {
        "SPARK__MASTER": "local-cluster[2,1,1024]",
        "SPARK__PARTITIONS": "4",
        "SPARK__EXECUTOR__MEMORY": "512m",
        "SPARK__CONF": json.dumps({name: str(value) for name, value in conf.items()}),
        **more,
    }


def executors(running: ServiceProcess) -> list[int]:
    """The processes of the executors."""
    (driver,) = running.processes()["driver"]
    return [pid for pid in descendants(driver) if BACKEND in command_of(pid).split("\0")]


def variables_of(pid: int) -> dict[str, str]:
    """The environment of a process."""
    return dict(line.split("=", 1) for line in environment_of(pid).decode().split("\0") if "=" in line)


def on_disk(folder: Path) -> set[bytes]:
    """Which needles are in the files in which blocks and shuffles are kept."""
    found: set[bytes] = set()
    for path in files_below(folder):
        if not any(part.startswith("blockmgr-") for part in path.parts):
            continue
        with suppress(OSError):
            content = path.read_bytes() if path.is_file() else b""
            found |= {needle for needle in NEEDLES if needle in content}
    return found


def joins(real: int, secret: str, seconds: float) -> bool:
    """Whether one more executor, started as a real one was but with this secret (or none), is taken in so soon."""
    # Our own settings of the log would leave out what is asked for here.
    quiet = "-Dlog4j2.configurationFile="
    arguments = [word for word in command_of(real).split("\0") if word and not word.startswith(quiet)]
    arguments[arguments.index("--executor-id") + 1] = "77"
    if "--worker-url" in arguments:
        url = arguments.index("--worker-url")
        del arguments[url : url + 2]
    at = arguments.index(BACKEND)
    arguments[at:at] = [] if secret else ["-Dspark.authenticate=false", "-Dspark.network.crypto.enabled=false"]
    with subprocess.Popen(
        arguments,
        env={**variables_of(real), "_SPARK_AUTH_SECRET": secret},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as started:
        watch = threading.Timer(seconds, started.kill)
        watch.start()
        try:
            return any("Successfully registered with driver" in line for line in started.stdout or ())
        finally:
            watch.cancel()
            started.kill()


def reporting(running: ServiceProcess) -> set[str]:
    """The names of the executors whose memory the metrics report."""
    return set(re.findall(r'\ntailrace_memory_bytes\{executor="(\d+)",process="jvm"\}', running.ask("/metrics")[1]))


@pytest.mark.skipif(not CAN_CAPTURE, reason="capturing what crosses the network takes Linux and root")
@pytest.mark.parametrize("secret", [True, False], ids=["with a secret", "without one"])
def test_what_driver_and_executors_say_is_for_nobody_else(
    secret: bool, kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], tmp_path: Path
):
    totals = Totals(kafka, make_topic)
    (port,) = free_ports(1)
    own = settings(port, disk=tmp_path / "disk")
    if secret:
        (tmp_path / "secret").write_text(SECRET)
        own["SPARK__SECRET_FILE"] = str(tmp_path / "secret")
    running = service(totals.query, kafka.bootstrap, own_jvm=True, **own)
    # Names may be read in what Kafka says, whose port may lie among those that are tried.
    spoken_on = {*range(port, port + PORTS_TRIED)} - {int(kafka.bootstrap.rpartition(":")[2])}
    with capturing(spoken_on, NEEDLES) as capture:
        running.start()
        totals.feed(50)
        running.until("every row is counted", totals.right)
    assert capture.size > 100_000
    assert bool(capture.found) is not secret, capture.found
    assert bool(on_disk(tmp_path / "disk")) is not secret
    assert SECRET not in running.log
    theirs = descendants(running.processes()["driver"][0])
    assert not any(SECRET in command_of(pid) for pid in theirs)
    if secret:
        (real, *_) = executors(running)
        began = time.monotonic()
        assert joins(real, SECRET, 120), "what is tried here is no executor"
        long = 2 * (time.monotonic() - began)
        assert not joins(real, "another", long)
        assert not joins(real, "", long)
    running.terminate()
    assert running.wait() == 0


def test_an_executor_that_is_killed_is_replaced_and_nothing_is_lost_or_doubled(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], tmp_path: Path
):
    totals = Totals(kafka, make_topic)
    port, web = free_ports(2)
    running = service(totals.query, kafka.bootstrap, own_jvm=True, HTTP__PORT=str(web), **settings(port))
    running.start()
    totals.feed(20)
    running.until("every row is counted", totals.right)
    running.until("both executors run", lambda: len(executors(running)) == 2)
    before = executors(running)
    assert all(maps_archive_of_classes(pid) for pid in before)
    for_workers = {**ENVIRONMENT, **WORKERS}
    for processes, expected in ((running.processes()["worker"], for_workers), (before, ENVIRONMENT)):
        assert processes
        for variables in map(variables_of, processes):
            assert {name: variables[name] for name in for_workers if name in variables} == expected
    running.until("both report their memory", lambda: len(reporting(running)) == 2)
    known = reporting(running)
    assert "tailrace_executors_expected 2.0" in running.ask("/metrics")[1]
    signal_to(before[0], signal.SIGKILL)
    totals.feed(20)
    running.until("every row is counted again", totals.right)
    running.until("there are two again", lambda: len(executors(running)) == 2)
    assert set(executors(running)) != set(before)
    running.until("the new one reports its memory", lambda: len(reporting(running) - known) == 1)
    running.until("the old one no longer reports", lambda: len(reporting(running)) == 2)
    running.until("two are connected", lambda: "tailrace_executors 2.0" in running.ask("/metrics")[1])
    assert "gave up" not in running.log
    running.terminate()
    assert running.wait() == 0
