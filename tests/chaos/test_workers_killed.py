"""kill -9 of every Python worker at once, while they wait for the next batch and while they work on one."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from service.spark.query.attempts import TRIES
from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess, command_of, parent_of, signal_to
from tests.spark.topics import feed, read, upserted

pytestmark = pytest.mark.chaos

KILLED = ("workers", "all", "all", "workers", "all")
"""Who is killed after each batch: the workers, or also the process that they are forked from."""

KILLED_AT_WORK = ("all", "workers", "all", "all")
"""The same, soon after rows for the next batch have come."""

CORES = 6

PIPELINE = """
    SET 'pipeline.name' = 'totals';
    CREATE TABLE t (name STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json',
      'scan.startup.mode' = 'earliest-offset');
    CREATE TABLE totals (name STRING, total BIGINT, PRIMARY KEY (name) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{sink}', 'key.format' = 'json', 'value.format' = 'json');
    INSERT INTO totals SELECT name, SUM(n) FROM (SELECT name, MAX(n) AS n FROM t GROUP BY name, n) GROUP BY name;
"""


def test_the_next_batch_does_not_fail(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, sink = make_topic("source", partitions=CORES), make_topic("totals")
    many = {"SPARK__MASTER": f"local[{CORES},16]", "BATCH__TICK": "1h"}
    running = service(PIPELINE.format(source=source, sink=sink), kafka.bootstrap, own_jvm=True, **many)
    fed = 0

    def feed_to(partitions: int) -> None:
        nonlocal fed
        fed += 1
        feed(kafka.bootstrap, source, [(i % partitions, {"name": f"n{i}", "n": fed}) for i in range(8)])

    def counted() -> bool:
        rows = upserted(read(kafka.bootstrap, sink)).values()
        return {r["name"]: r["total"] for r in rows} == {f"n{i}": sum(range(1, fed + 1)) for i in range(8)}

    def kill(killed: str) -> int:
        workers = running.processes()["worker"]
        forked = [pid for pid in workers if command_of(parent_of(pid)) == command_of(pid)]
        for pid in workers if killed == "all" else forked:
            signal_to(pid, signal.SIGKILL)
        return len(forked)

    running.start()
    for killed in KILLED:
        feed_to(CORES)
        running.until("every row is counted", counted)
        running.until("the batch has ended", lambda: batches(running) >= fed)
        assert kill(killed) > TRIES, "more wait than a task with an error of its own is tried"
        # One task comes upon all of them.
        feed_to(1)
        running.until("every row is counted after a kill", counted)
        running.until("the batch after a kill has ended", lambda: batches(running) >= fed)
    for number, killed in enumerate(KILLED_AT_WORK):
        feed_to(CORES)
        time.sleep(0.1 * number)
        kill(killed)
        running.until("every row is counted after a kill at work", counted)
    events = running.events()
    assert [e["error"] for e in events if e["event"] == "batch failed"] == []
    lines = [str(e["line"]) for e in events if e["event"] == "jvm"]
    assert [line for line in lines if " ERROR " in line or "Exception" in line] == [], "what was mended is no news"
    running.terminate()
    assert running.wait() == 0


def batches(running: ServiceProcess) -> int:
    """How many batches with rows are done."""
    return sum(e["event"] == "batch" for e in running.events())
