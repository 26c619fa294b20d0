"""The clock of the machine goes a year ahead and back, and an hour back: no row is forgotten, and batches go on. A
service whose clock is set back ends, and is started again. A clock that is ahead at the start is reported."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.brokers import Broker, MakeTopic
from tests.spark.clocks import HOUR, YEAR, Clock
from tests.spark.service_process import ServiceProcess, signal_to
from tests.spark.topics import feed, read, upserted

pytestmark = pytest.mark.chaos

QUERY = """
    SET 'pipeline.name' = 'totals';
    SET 'table.exec.state.ttl' = '1 h';
    CREATE TABLE orders (name STRING, amount BIGINT)
      WITH ('connector' = 'kafka', 'topic' = '{orders}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
    CREATE TABLE totals (name STRING, total BIGINT, PRIMARY KEY (name) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{totals}', 'key.format' = 'json', 'value.format' = 'json');
    INSERT INTO totals SELECT name, SUM(amount) FROM orders GROUP BY name;
"""


class ClockedJob(NamedTuple):
    """A service under a clock, and its broker and topics."""

    job: ServiceProcess
    clock: Clock
    bootstrap: str
    orders: str
    totals: str


@pytest.fixture
def clocked(kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], tmp_path: Path) -> ClockedJob:
    """A service that has not started, under a clock that is right."""
    orders, totals = make_topic("orders"), make_topic("totals", cleanup_policy="compact")
    clock = Clock(tmp_path)
    job = service(QUERY.format(orders=orders, totals=totals), kafka.bootstrap)
    job.within = clock.within
    return ClockedJob(job, clock, kafka.bootstrap, orders, totals)


@pytest.mark.skipif(shutil.which("cc") is None, reason="the clock is made by a C compiler")
def test_a_clock_that_jumps_a_year_ahead_and_back_costs_no_state(clocked: ClockedJob) -> None:
    job, clock, bootstrap, orders, totals = clocked

    def order(amount: int) -> None:
        feed(bootstrap, orders, [(0, {"name": "ann", "amount": amount})])

    def total() -> int | None:
        return next((row["total"] for row in upserted(read(bootstrap, totals)).values()), None)

    order(1)
    job.start()
    job.until("the first order is counted", lambda: total() == 1)
    clock.set(YEAR)
    job.until("the query says that the clock is wrong", lambda: "went ahead by 365 days" in job.log)
    order(2)
    assert total() == 1
    clock.set(0)
    assert job.wait() == 1
    assert "the clock was set back" in job.log
    job.start()
    job.until("the state is still there", lambda: total() == 3)
    signal_to(job.driver, signal.SIGSTOP)
    clock.set(-HOUR)
    job.until("the JVM has ended by itself", lambda: not job.processes()["jvm"])
    signal_to(job.driver, signal.SIGCONT)
    assert job.wait() == 1
    order(4)
    job.start()
    job.until("batches go on behind the clock", lambda: total() == 7)
    job.terminate()
    assert job.wait() == 0


@pytest.mark.skipif(shutil.which("cc") is None, reason="the clock is made by a C compiler")
def test_a_clock_that_is_a_year_ahead_at_the_start_is_reported(clocked: ClockedJob) -> None:
    job, clock, bootstrap, orders, totals = clocked
    feed(bootstrap, orders, [(0, {"name": "ann", "amount": 1})])
    job.start()
    job.until("the order is counted", lambda: read(bootstrap, totals) != [])
    job.terminate()
    assert job.wait() == 0
    job.start()
    job.until("a right clock is started with", lambda: job.log.count('"event": "started"') == 2)
    assert "the clock may be wrong" not in job.log
    job.kill()
    clock.set(YEAR)
    job.start()
    job.until("the query runs all the same", lambda: job.log.count('"event": "started"') == 3)
    assert "365 days ahead of everything that the checkpoint and the topics know" in job.log
    job.kill()
