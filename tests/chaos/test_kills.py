"""kill -9 of every process at random moments: nothing is lost and nothing is doubled. Who is started again may have
another number of tasks.

`make chaos KILLS=10` sets the number of kills (200, in CI 10), TAILRACE_TEST_SEED the moments.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from service.kafka.admin import Cluster, TopicSpec
from service.kafka.local_broker.broker import EmbeddedKafka
from tests.spark.orders import answers, expected, orders, pipeline
from tests.spark.service_process import QUICK, ServiceProcess, signal_to
from tests.spark.topics import feed

pytestmark = pytest.mark.chaos

KILLS = int(os.environ.get("TAILRACE_TEST_KILLS", "10"))
SEED = int(os.environ.get("TAILRACE_TEST_SEED", "7"))
CONF = json.dumps(QUICK if KILLS < 50 else {})
"""Spark's settings: only a service that runs for long gains by the JVM's second compiler."""

ROWS_PER_KILL = 240
BATCH_ROWS = 60
TARGETS = ("worker", "driver", "worker", "writer", "broker", "worker", "jvm", "writer", "fork_server")
"""Who is killed, in turn: a worker most often, since it holds state in the middle of a change."""

_ENDED = ("the JVM has exited", "the JVM did not start: code -9", "the clock was set back")
"""What a service says last whose JVM was killed, while it ran or while it started, or whose clock was set back."""

TASKS = (1, 2, 3)
"""Tasks a level that a start asks for: the first has as many as there are cores."""

CORES = 3
"""Tasks at a time: a level never has more tasks."""

IN_RECOVERY = 0.25
"""How many of the kills come before the service has done a batch since the last one."""


@pytest.mark.timeout(60 * KILLS + 300)
def test_no_kill_of_any_process_at_any_moment_loses_or_doubles_a_row(
    own_kafka: Callable[..., EmbeddedKafka], tmp_path: Path
) -> None:
    broker = own_kafka()
    names = ("orders", "totals", "windows", "spread")
    topics = [TopicSpec(name=n, partitions=2, replication=1) for n in names]
    Cluster({"bootstrap.servers": broker.bootstrap}).create(topics)
    count = (KILLS + 1) * ROWS_PER_KILL
    text = pipeline(*names, ends={0: count // 2, 1: count // 2})
    service = ServiceProcess(
        text,
        tmp_path,
        broker.bootstrap,
        BATCH__ROWS=str(BATCH_ROWS),
        SPARK__MASTER=f"local[{CORES},16]",
        SPARK__CONF=CONF,
    )
    chaos = Chaos(service, broker, orders(count), random.Random(SEED))
    service.start()
    for number in range(KILLS):
        chaos.kill(TARGETS[number % len(TARGETS)])
    chaos.end()
    assert answers(broker.bootstrap, *names[1:]) == expected(count)


class Chaos:
    """Feeds a service that reads up to an offset not yet written, and kills its processes meanwhile."""

    def __init__(
        self, service: ServiceProcess, broker: EmbeddedKafka, rows: Iterator[Any], moments: random.Random
    ) -> None:
        self._service = service
        self._broker = broker
        self._rows = rows
        self._moments = moments
        self._batches = 0

    def kill(self, target: str) -> None:
        """Let the service work on new rows, and kill one of its processes in the midst of it."""
        self._feed(ROWS_PER_KILL // 2)
        if self._batches == 0 or self._moments.random() >= IN_RECOVERY:
            self._await_a_batch()
        self._feed(ROWS_PER_KILL // 2)
        time.sleep(self._moments.uniform(0.0, 1.5))
        match target:
            case "broker":
                self._broker.kill()
                time.sleep(self._moments.uniform(0.0, 1.0))
                self._broker.restart()
            case "driver":
                self._service.kill()
                self._start_again()
            case _:
                signal_to(self._moments.choice(self._await(target)), signal.SIGKILL)
        print(f"killed {target} after batch {self._batches}", flush=True)

    def end(self) -> None:
        """Feed what is left and wait for the end."""
        self._feed(10**9)
        while self._ended_with() != 0:
            time.sleep(0.1)

    def _feed(self, rows: int) -> None:
        feed(self._broker.bootstrap, "orders", islice(self._rows, rows))

    def _await_a_batch(self) -> None:
        """Wait until a batch is done that was not done at the last look."""
        while self._done() <= self._batches:
            assert self._ended_with() != 0, "the service ended before the last rows were written"
            time.sleep(0.05)
        self._batches = self._done()

    def _await(self, target: str) -> list[int]:
        """The processes of a kind, once there are any."""
        while not (found := self._service.processes()[target] if not self._service.ended() else []):
            assert self._ended_with() != 0, "the service ended before the last rows were written"
            time.sleep(0.02)
        return found

    def _done(self) -> int:
        return sum(e["event"] == "batch" for e in self._service.events())

    def _ended_with(self) -> int | None:
        """0 if the job has come to its end. A service that was ended is started again, as a supervisor would."""
        if not self._service.ended():
            return None
        code = self._service.wait()
        if code != 0:
            since_start = self._service.log.rpartition('"event": "starting"')[2]
            assert any(each in since_start for each in _ENDED), self._service.log[-6000:]
            self._start_again()
        return code

    def _start_again(self) -> None:
        """Start the service with another number of tasks, or the same."""
        tasks = self._moments.choice(TASKS)
        print(f"started again with {tasks} tasks a level", flush=True)
        self._service.start(SPARK__PARTITIONS=str(tasks))
