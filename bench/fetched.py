"""What executors fetch: bytes from the object store and from each other, a batch, and when one of them is lost.

The checkpoint is in an object store of this machine, and each executor has a folder of its own for its copies, as on
machines of their own. Blocks of a shuffle are asked for over the network even though they are on this disk. What was
read from the store are the service's own metrics; what one executor has read of another is in Spark's log of events.
"""

from __future__ import annotations

import csv
import json
import signal
import tempfile
import time
import uuid
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from os import kill
from pathlib import Path

from bench.engines import Launch, tailrace_on_executors
from bench.feed import create_topics, feed_numbered
from bench.processes import family
from bench.progress import Progress
from bench.scrape import Scrape
from bench.service_run import Service, running, wait_for
from bench.steady import Steady
from bench.workloads import GROUP_BY
from service.host.machine import free_ports
from service.observability.metrics.memory import EXECUTOR, words_of
from tests.spark.fake_s3 import fake_s3, s3_settings

EXECUTORS = (2, 4)
KEYS = 1_000_000
RATE = 2_000
WARM_UP = 40.0
SECONDS = 60.0
PATIENCE = 900.0

ROUND = 2_000
"""Rows of each batch around the loss of an executor."""

ROUNDS = 10
"""Batches that are watched after it: by then another one has come, and has what it needs."""

EACH_ITS_OWN = "/proc/self/cwd/scratch"
"""A folder that is another one for each executor: Spark starts each in a folder of its own."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Bytes that executors have fetched: a batch of `rows`, from the store and from each other; and after one of them
    was lost, from the store, in the first batch and in all that were watched. `state` are the bytes of the state."""

    executors: int
    state: int
    batches: int
    rows: float
    store: float
    each_other: float
    lost_first: int
    lost_all: int


def report(bootstrap: str, out: Path, executors: Iterable[int] = EXECUTORS) -> None:
    """Print and save what is fetched, for each number of executors."""
    out.mkdir(parents=True, exist_ok=True)
    found = []
    for number in executors:
        with fake_s3() as (address, _):
            found.append(each := measure(bootstrap, number, address))
        print(
            f"{number} executors, {each.state / 1e6:.1f} MB of state, batches of {each.rows:,.0f} rows:"
            f" {each.store / 1024:,.1f} KiB from the store, {each.each_other / 1024:,.1f} KiB from each other"
            f" (means of {each.batches} batches); after the loss of one, from the store:"
            f" {each.lost_first / 1e6:,.1f} MB in the first batch, {each.lost_all / 1e6:,.1f} MB in {ROUNDS}",
            flush=True,
        )
    with (out / "fetched.csv").open("w", newline="") as file:
        lines = [tuple(getattr(each, name) for name in Fetched.__slots__) for each in found]
        csv.writer(file).writerows([Fetched.__slots__, *lines])


def measure(bootstrap: str, executors: int, store: str) -> Fetched:
    """Run the query on so many executors, its checkpoint in the store at that address."""
    name = f"fetched-{executors}-{uuid.uuid4().hex[:8]}"
    source, output = f"{name}-in", f"{name}-out"
    create_topics(bootstrap, [source, output])
    (stream,) = GROUP_BY.streams
    feed_numbered(bootstrap, source, stream.held, range(KEYS))
    later, sent = stream.later(KEYS), KEYS
    (port,) = free_ports(1)
    scrape = Scrape(port)
    with (
        tempfile.TemporaryDirectory(prefix="bench-events-") as events,
        closing(Progress(bootstrap, name)) as progress,
        running(
            GROUP_BY.case,
            f"tailrace on {executors} executors",
            GROUP_BY.sql(bootstrap, name, output, (source,)),
            settings(executors, store, Path(events), port),
            partial(launch, executors),
        ) as service,
    ):

        def read_all() -> None:
            wait_for("the end of the topic", lambda: progress.rows_read([source]) >= sent, service.check, PATIENCE)

        read_all()
        log = Path(events)
        with Steady(bootstrap, source, RATE, later) as rows:
            time.sleep(WARM_UP)
            before, began, read, from_store = scrape.batches().done, remote_bytes(log), rows.sent, _read_bytes(scrape)
            time.sleep(SECONDS)
            service.check()
            batches = scrape.batches().done - before
            each_other, from_store = remote_bytes(log) - began, _read_bytes(scrape) - from_store
            read = rows.sent - read
        sent += rows.sent
        read_all()
        state = int(scrape.total("tailrace_state_bytes"))

        def one_round(number: int) -> None:
            nonlocal sent
            feed_numbered(bootstrap, source, later, range(number * ROUND, (number + 1) * ROUND))
            sent += ROUND
            read_all()

        one_round(0)
        whole = _read_bytes(scrape)
        kill(_executors(service)[0], signal.SIGKILL)
        lost = []
        for number in range(1, ROUNDS + 1):
            one_round(number)
            lost.append(int(_read_bytes(scrape) - whole))
    return Fetched(
        executors, state, batches, read / batches, from_store / batches, each_other / batches, lost[0], lost[-1]
    )


def settings(executors: int, store: str, events: Path, port: int) -> dict[str, str]:
    conf = {
        **s3_settings(store),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        # All executors are on this host, where they would read each other's files.
        "spark.shuffle.readHostLocalDisk": "false",
    }
    return {
        "TAILRACE_CHECKPOINT": "s3a://bucket/folder",
        "TAILRACE_SPARK__CONF": json.dumps(conf),
        "TAILRACE_SPARK__EXECUTOR__MEMORY": "512m",
        "TAILRACE_SPARK__PARTITIONS": str(executors),
        "TAILRACE_SCRATCH": EACH_ITS_OWN,
        "TAILRACE_HTTP__PORT": str(port),
    }


def launch(executors: int, sql: Path, folder: Path) -> Launch:
    usual = tailrace_on_executors(executors, sql, folder)
    return Launch(["env", "-C", str(folder), *usual.command], usual.variables, usual.litter)


def _executors(service: Service) -> list[int]:
    return [pid for pid in family(service.process.pid) if EXECUTOR in words_of(pid)]


def _read_bytes(scrape: Scrape) -> float:
    return scrape.total("tailrace_store_read_bytes_total")


def remote_bytes(events: Path) -> int:
    """The bytes of shuffles that tasks have read from other executors, in all logs of events below a folder."""
    total = 0
    for path in (each for each in events.rglob("*") if each.is_file()):
        with path.open() as lines:
            total += sum(map(_remote, lines))
    return total


def _remote(line: str) -> int:
    if not line.startswith('{"Event":"SparkListenerTaskEnd"') or not line.endswith("}\n"):
        return 0  # another event, or one that is just being written
    read = (json.loads(line).get("Task Metrics") or {}).get("Shuffle Read Metrics", {})
    return int(read.get("Remote Bytes Read", 0))
