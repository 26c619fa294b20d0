"""The tasks of a shard run where its blocks have been fetched to: executors that have no copies in common."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from collections.abc import Callable, Set
from pathlib import Path

import pytest

from service.host.machine import free_ports
from tests.brokers import Broker, MakeTopic
from tests.spark.fake_s3 import fake_s3, s3_settings
from tests.spark.service_process import QUICK, ServiceProcess, signal_to
from tests.spark.store_requests import RequestLog
from tests.spark.test_executors import _nothing_is_left_in_the_package as _nothing_is_left_in_the_package
from tests.spark.test_executors import executors, reporting
from tests.spark.topics import feed, read, upserted

EACH_ITS_OWN = "/proc/self/cwd/scratch"
"""A folder that is another one for each executor: Spark starts each in a folder of its own."""

NAMES, ROUNDS = 40, 8
PATIENCE = 600.0
"""Seconds that a round may take: the first one waits for the start of two executors."""


class Running:
    """A pipeline of two levels on two executors, what it is fed, and what is asked of its store."""

    def __init__(
        self, kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], folder: Path, address: str
    ) -> None:
        self._kafka = kafka
        self._orders, self._counts = make_topic("orders", partitions=4), make_topic("counts", cleanup_policy="compact")
        self._sums = dict.fromkeys(range(NAMES), 0)
        port, web = free_ports(2)
        query = f"""
            SET 'pipeline.name' = 'counts';
            CREATE TABLE orders (name STRING, amount BIGINT) WITH ('connector' = 'kafka', 'topic' = '{self._orders}',
              'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
            CREATE TABLE counts (total BIGINT, names BIGINT, PRIMARY KEY (total) NOT ENFORCED) WITH (
              'connector' = 'upsert-kafka', 'topic' = '{self._counts}', 'key.format' = 'json', 'value.format' = 'json');
            INSERT INTO counts SELECT total, COUNT(*) FROM (SELECT name, SUM(amount) AS total FROM orders GROUP BY name)
              GROUP BY total;
        """
        conf = {**QUICK, **s3_settings(address), "spark.driver.port": str(port)}
        self.service = service(
            query,
            kafka.bootstrap,
            CHECKPOINT="s3a://bucket/folder",
            SPARK__MASTER="local-cluster[2,1,1024]",
            SPARK__EXECUTOR__MEMORY="512m",
            SPARK__CONF=json.dumps(conf),
            SCRATCH=EACH_ITS_OWN,
            BATCH__TICK="30s",
            HTTP__PORT=str(web),
        )
        self.service.within = ("env", "-C", str(folder))

    def round(self) -> None:
        """One more row of each name, until it is in the answer."""
        rows = [(name % 4, {"name": f"n{name}", "amount": 1 + name % 7}) for name in self._sums]
        feed(self._kafka.bootstrap, self._orders, rows)
        for name in self._sums:
            self._sums[name] += 1 + name % 7
        self.service.until("the round is in the answer", self._right, PATIENCE)

    def until_work(self, count: int, known: Set[str] = frozenset()) -> None:
        """Go round until so many executors have done tasks that are not `known`: a process may not be in use yet."""
        for _ in range(100):
            self.round()
            if len(reporting(self.service) - known) == count:
                return
        raise AssertionError(f"only {reporting(self.service) - known} have done tasks; {self.service.log[-3000:]}")

    def _right(self) -> bool:
        rows = upserted(read(self._kafka.bootstrap, self._counts)).values()
        return {row["total"]: row["names"] for row in rows} == Counter(self._sums.values())

    def read_bytes(self) -> float:
        """The bytes that the metrics say were read from the store."""
        name = 'tailrace_store_read_bytes_total{query="counts"} '
        return next(float(line.removeprefix(name)) for line in self._metrics() if line.startswith(name))

    def _metrics(self) -> list[str]:
        return self.service.ask("/metrics")[1].splitlines()


def moved(requests: RequestLog, begin: int) -> int:
    """How many shards, since `begin`, were taken up by an executor that has not had them in the batch before: it reads
    what that batch has written. (The sweep reads only what is older.)"""
    newest, found = -1, 0
    for number, each in enumerate(requests.all()):
        version = re.search(r"/tailrace/versions/(\d+)", each.name)
        state = re.search(r"/tailrace/state/(\d+)", each.name)
        if version is not None and each.kind == "PUT":
            newest = int(version[1])
        elif state is not None and each.kind == "GET" and number >= begin:
            found += int(state[1]) == newest
    return found


@pytest.mark.timeout(1800)
def test_executors_fetch_no_state_but_that_of_one_that_is_gone(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    with fake_s3(requests := RequestLog()) as (address, _):
        running = Running(kafka, make_topic, service, tmp_path, address)
        running.service.start()
        running.until_work(2)
        for _ in range(3):
            running.round()
        known = reporting(running.service)
        begin = len(requests.all())
        for _ in range(ROUNDS):
            running.round()
        tasks = 2 * 2 * ROUNDS
        # A task may begin in the moment in which only one of the cores is reported to be free.
        assert moved(requests, begin) <= tasks / 8, "if they ran anywhere, half of them would have moved"
        assert running.read_bytes() > 0
        (one, _) = executors(running.service)
        begin = len(requests.all())
        signal_to(one, signal.SIGKILL)
        running.round()
        running.round()
        running.service.until("there are two again", lambda: len(set(executors(running.service)) - {one}) == 2)
        running.until_work(1, known)
        for _ in range(3):
            running.round()
        assert moved(requests, begin), "what the lost one had is fetched"
        begin = len(requests.all())
        for _ in range(ROUNDS):
            running.round()
        assert moved(requests, begin) <= tasks / 8, "those that took over keep what they have"
        running.service.terminate()
        assert running.service.wait() == 0
