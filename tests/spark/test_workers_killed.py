"""kill -9 of every Python worker at once, while all of them wait for the next batch."""

from __future__ import annotations

import signal
from collections.abc import Callable

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess, command_of, parent_of, signal_to
from tests.spark.topics import feed, read, upserted

KILLED = ("workers", "all", "workers", "all", "all")
"""Who is killed after each batch: the workers, or also the process that they are forked from."""

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
    source, sink = make_topic("source"), make_topic("totals")
    running = service(PIPELINE.format(source=source, sink=sink), kafka.bootstrap, BATCH__TICK="1h")

    def totals() -> dict[str, int]:
        return {r["name"]: r["total"] for r in upserted(read(kafka.bootstrap, sink)).values()}

    running.start()
    for number, killed in enumerate((*KILLED, "nobody"), 1):
        feed(kafka.bootstrap, source, [(i % 2, {"name": f"n{i}", "n": number}) for i in range(8)])
        expected = {f"n{i}": sum(range(1, number + 1)) for i in range(8)}
        running.until("every row is counted", lambda: totals() == expected)  # noqa: B023  (looked at in this round)
        running.until("the batch has ended", lambda: batches(running) >= number)  # noqa: B023
        workers = running.processes()["worker"]
        forked = [pid for pid in workers if command_of(parent_of(pid)) == command_of(pid)]
        assert len(forked) >= 4
        for pid in {"workers": forked, "all": workers, "nobody": []}[killed]:
            signal_to(pid, signal.SIGKILL)
    assert [e["error"] for e in running.events() if e["event"] == "batch failed"] == []
    running.terminate()
    assert running.wait(60) == 0


def batches(running: ServiceProcess) -> int:
    """How many batches with rows are done."""
    return sum(e["event"] == "batch" for e in running.events())
