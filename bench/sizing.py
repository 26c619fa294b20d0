"""What state costs, in bytes and in seconds: the figures of docs/sizing.md.

Keys are loaded into a query without an end. Then it is left alone for a while, then given 2,000 rows a second, then
stopped and started again with some rows to catch up. What it keeps, writes and holds in memory is seen from outside.
"""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.feed import create_topics, feed_numbered
from bench.footprint import Footprint, size_of
from bench.processes import Held
from bench.progress import Progress
from bench.scrape import Scrape
from bench.service_run import Service, running_in, wait_for
from bench.steady import Steady
from bench.workloads import GROUP_BY, WORKLOADS, Workload
from service.host.machine import free_ports

KEYS = (10_000, 100_000, 1_000_000)
RATE = 2_000
LEFT_ALONE = 20.0
WARM_UP = 10.0
SECONDS = 60.0
"""Spark puts what has gathered of a state into larger files once a minute."""

PATIENCE = 900.0


@dataclass(frozen=True, slots=True)
class Setup:
    """What is run, and the settings of the service that are not its defaults."""

    name: str
    title: str
    workload: Workload
    engine: str = "tailrace"
    variables: Mapping[str, str] = field(default_factory=dict)


BY_KEYS = tuple(Setup(each.name, each.title, each) for each in WORKLOADS)
"""Run with each number of keys."""

BY_SETTINGS = (
    Setup("one-task", "1 task", GROUP_BY, variables={"TAILRACE_SPARK__PARTITIONS": "1"}),
    Setup("small-batches", "batches of 100,000 rows", GROUP_BY, variables={"TAILRACE_BATCH__ROWS": "100000"}),
    Setup("executors-1", "1 executor", GROUP_BY, "tailrace-1-executor"),
    Setup("executors-2", "2 executors", GROUP_BY, "tailrace-2-executors"),
)
"""Run with the largest number of keys, to be compared with the first of `BY_KEYS`."""

SETUPS = (*BY_KEYS, *BY_SETTINGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What one setup took; bytes, but for `rows` of state, `batches` a second and seconds.

    `loading` and `steady` are what each kind of process held at most, while the keys were read and while rows came.
    """

    setup: Setup
    keys: int
    rows: int
    state: int
    checkpoint: int
    copies: int
    spark: int
    written_a_row: float
    written_a_tick: float
    loading: Mapping[str, Held]
    steady: Mapping[str, Held]
    batch_seconds: float
    restart_seconds: float = 0.0


def planned(names: Sequence[str], keys: Sequence[int]) -> list[tuple[Setup, int]]:
    """The runs: those by keys with each number of keys, those by settings with the largest."""
    by_keys = [(setup, number) for setup in BY_KEYS if setup.name in names for number in keys]
    return by_keys + [(setup, max(keys)) for setup in BY_SETTINGS if setup.name in names]


def measure(bootstrap: str, setup: Setup, keys: int) -> Sizes:
    """Run one setup over that many keys."""
    workload = setup.workload
    name = f"size-{setup.name}-{keys}-{uuid.uuid4().hex[:8]}"
    topics = tuple(f"{name}-{stream.variable.lower()}" for stream in workload.streams)
    create_topics(bootstrap, [*topics, name])
    for stream, topic in zip(workload.streams, topics, strict=True):
        feed_numbered(bootstrap, topic, stream.held, range(keys))
    sql = workload.sql(bootstrap, name, name, topics)
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch, closing(Progress(bootstrap, name)) as progress:
        folder = Path(scratch)
        conf = json.dumps({"spark.local.dir": str(folder / "spark")})
        variables = {**setup.variables, "TAILRACE_HTTP__PORT": str(port), "TAILRACE_SPARK__CONF": conf}
        load = _Load(bootstrap, progress, workload, topics, keys)
        with running_in(folder, workload.case, setup.engine, sql, variables) as service:
            sizes = _watched(service, setup, keys, Scrape(port), load)
        load.catch_up_later()
        started = time.monotonic()
        with running_in(folder, workload.case, setup.engine, sql, variables) as service:
            load.wait(service)
            restart = time.monotonic() - started
    return replace(sizes, restart_seconds=restart)


class _Load:
    """What a workload is given to read."""

    def __init__(
        self, bootstrap: str, progress: Progress, workload: Workload, topics: tuple[str, ...], keys: int
    ) -> None:
        self._bootstrap, self._progress, self._topics = bootstrap, progress, topics
        self._later = [stream.later(keys) for stream in workload.streams]
        self.sent = keys * len(topics)

    def wait(self, service: Service) -> None:
        """Until all that was sent has been read, and its results are visible."""
        wait_for("the end of its topics", lambda: self.read >= self.sent, service.check, PATIENCE)

    @property
    def read(self) -> int:
        """The rows that have been read."""
        return self._progress.rows_read(self._topics)

    def steady(self, rows: ExitStack) -> list[Steady]:
        """Rows at `RATE` in all until `rows` is closed."""
        rate = RATE // len(self._topics)
        pairs = zip(self._topics, self._later, strict=True)
        return [rows.enter_context(Steady(self._bootstrap, topic, rate, value)) for topic, value in pairs]

    def catch_up_later(self) -> None:
        """Rows of a second, which nobody reads yet."""
        rate = RATE // len(self._topics)
        for topic, value in zip(self._topics, self._later, strict=True):
            feed_numbered(self._bootstrap, topic, value, range(10**6, 10**6 + rate))
            self.sent += rate


def _watched(service: Service, setup: Setup, keys: int, scrape: Scrape, load: _Load) -> Sizes:
    checkpoint = service.folder / "checkpoint"
    with Footprint(service, checkpoint) as footprint:
        load.wait(service)
        loading = footprint.highest()
        batches, written = scrape.batches(), footprint.written
        time.sleep(LEFT_ALONE)
        ticks, idle = scrape.batches().done - batches.done, footprint.written - written
        with ExitStack() as rows:
            producers = load.steady(rows)
            time.sleep(WARM_UP)
            footprint.highest()
            batches, written, read = scrape.batches(), footprint.written, load.read
            time.sleep(SECONDS)
            then = scrape.batches()
            written, read = footprint.written - written, load.read - read
            steady = footprint.highest()
        load.sent += sum(producer.sent for producer in producers)
        load.wait(service)
    if not ticks or then.done == batches.done:
        raise RuntimeError("no batch ran")
    return Sizes(
        setup=setup,
        keys=keys,
        rows=int(scrape.total("tailrace_state_rows")),
        state=int(scrape.total("tailrace_state_bytes")),
        checkpoint=size_of(checkpoint),
        # Those of each query: what the JVM unpacks for itself is beside them.
        copies=sum(map(size_of, (service.folder / "scratch").glob("*/r*"))),
        spark=size_of(service.folder / "spark"),
        written_a_row=written / read,
        written_a_tick=idle / ticks,
        loading=loading,
        steady=steady,
        batch_seconds=(then.seconds - batches.seconds) / (then.done - batches.done),
    )
