"""A service under load and with faults, watched by a real Prometheus, and what is left to ask when it has ended."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from service.host.machine import free_ports
from service.kafka.admin import Cluster
from tests.monitoring.orders import QUERY, Feed, Topics, pipeline
from tests.monitoring.prometheus import Prometheus
from tests.spark.service_process import ServiceProcess

STORED_WITHIN = 4.0
"""Seconds after which a scrape is stored, or has failed: it may take two."""

SETTLED = 15.0 + STORED_WITHIN
"""Seconds of undisturbed load before the end: more than a rate is taken over, or passes between two looks at ends. What
is looked at are the stored ones."""

RATE_INTERVAL = "12s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What is known when the service has ended. `busy` is a moment under load, `quiet` one when all was read; `scrape`
    is what it exposed then. `group` are the offsets of its consumer group, `fed` counts the records."""

    prometheus: Prometheus
    topics: Topics
    bootstrap: str
    busy: float
    quiet: float
    scrape: str
    group: dict[int, int]
    fed: int
    unreadable: int
    uncomputable: int


@contextmanager
def live(folder: Path, bootstrap: str) -> Iterator[Live]:
    """Run the service until everything that dashboards show has happened, then end it. Prometheus stays."""
    topics = Topics()
    port = free_ports(1)[0]
    running = ServiceProcess(
        pipeline(topics),
        folder,
        bootstrap,
        HTTP__PORT=str(port),
        TOPICS__DEAD_LETTER=topics.dead,
        TOPICS__LATE=topics.late,
        SPARK__MASTER="local[2,1]",  # no second try of a task: what fails it fails the batch
        RETRY__ATTEMPTS="50",
    )
    try:
        running.start()
        running.until("it answers", lambda: running.ask("/metrics")[0] == 200)
        with Prometheus(folder / "prometheus", port) as prometheus:
            with Feed(bootstrap, topics.orders) as orders:
                _trouble(running, prometheus, orders)
                busy = _scraped(running, prometheus)
            running.until("all is read", lambda: _all_read(prometheus, orders.fed))
            scrape = running.ask("/metrics")[1]
            quiet = _scraped(running, prometheus)
            group = Cluster({"bootstrap.servers": bootstrap}).group_offsets(f"tailrace-{QUERY}", [topics.orders])
            running.kill()
            yield Live(
                prometheus=prometheus,
                topics=topics,
                bootstrap=bootstrap,
                busy=busy,
                quiet=quiet,
                scrape=scrape,
                group=group.get(topics.orders, {}),
                fed=orders.fed,
                unreadable=orders.unreadable,
                uncomputable=orders.uncomputable,
            )
    finally:
        running.kill()


def _scraped(running: ServiceProcess, prometheus: Prometheus) -> float:
    """A moment just ago at which the last scrape had succeeded: one that fails ends all series."""
    moment = 0.0

    def succeeded() -> bool:
        nonlocal moment
        moment = time.time() - STORED_WITHIN
        return prometheus.value("up", moment) == 1

    running.until("a scrape has succeeded", succeeded)
    return moment


def _trouble(running: ServiceProcess, prometheus: Prometheus, orders: Feed) -> None:
    """Batches, then faults, then a failure and what follows it."""
    running.until("batches are done", lambda: prometheus.value("tailrace_batches_total") >= 3)
    orders.faults.set()
    for metric in ("late_records", "dead_letter_records", "decode_errors", "dead_records"):
        running.until(f"{metric} are counted", lambda m=metric: prometheus.value(f"sum(tailrace_{m}_total)") > 0)  # type: ignore[misc]
    running.until("a batch has failed", lambda: _failed(running))
    running.until("the failure is counted", lambda: prometheus.value("tailrace_batch_failures_total") > 0)
    done = prometheus.value("tailrace_batches_total")
    running.until("batches are done again", lambda: prometheus.value("tailrace_batches_total") >= done + 3)
    time.sleep(SETTLED)


def _failed(running: ServiceProcess) -> bool:
    """Whether a batch has failed. If not, one more worker is killed; it takes a moment until somebody needs it."""
    for pid in running.processes()["worker"][-1:]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while '"event": "batch failed"' not in running.log and time.monotonic() < deadline:
        time.sleep(0.1)
    return '"event": "batch failed"' in running.log


def _all_read(prometheus: Prometheus, fed: int) -> bool:
    """Whether every record was read, and the watermark has passed the last one: its window is written, too."""
    read = prometheus.value("sum(tailrace_input_records_total)")
    return read >= fed and prometheus.value(f"sum(increase(tailrace_input_records_total[{RATE_INTERVAL}]))") == 0
