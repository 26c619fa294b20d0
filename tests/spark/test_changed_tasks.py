"""A service that is started with another number of tasks, while a batch has begun with the number before."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess, signal_to
from tests.spark.topics import feed, read, upserted

QUERY = """
    SET 'pipeline.name' = 'totals';
    CREATE TABLE orders (name STRING, amount BIGINT)
      WITH ('connector' = 'kafka', 'topic' = '{orders}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
    CREATE TABLE totals (name STRING, total BIGINT, PRIMARY KEY (name) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{totals}', 'key.format' = 'json', 'value.format' = 'json');
    INSERT INTO totals SELECT name, SUM(amount) FROM orders GROUP BY name;
"""
NAMES = [f"n{number}" for number in range(8)]


def begun(checkpoint: Path, query: str) -> list[str]:
    """The batches that are planned and not done. Without ticks each has rows."""
    planned, done = checkpoint / query / "offsets", checkpoint / query / "commits"
    return [each.name for each in planned.glob("[0-9]*") if not (done / each.name).exists()]


def tasks(checkpoint: Path) -> int:
    """The number of tasks of each level."""
    return int(json.loads((checkpoint / "totals" / "tailrace" / "shards.json").read_text()))


def test_the_batch_is_done_alone_and_reported_and_the_next_has_the_new_number(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    orders, totals = make_topic("orders"), make_topic("totals", cleanup_policy="compact")
    running = service(QUERY.format(orders=orders, totals=totals), kafka.bootstrap, BATCH__ROWS="8", BATCH__TICK="30m")

    def order(rounds: int) -> None:
        feed(kafka.bootstrap, orders, [(0, {"name": name, "amount": 1}) for name in NAMES * rounds])

    def total(rounds: int) -> bool:
        rows = upserted(read(kafka.bootstrap, totals)).values()
        return {row["name"]: row["total"] for row in rows} == dict.fromkeys(NAMES, rounds)

    def rows_of_batches() -> list[int]:
        return [int(str(event["rows"])) for event in running.events() if event["event"] == "batch"]

    order(1)
    running.start(SPARK__PARTITIONS="2")
    running.until("the first orders are counted", lambda: total(1))
    running.until("the first batch is reported", lambda: rows_of_batches() == [8])
    stopped = running.processes()["writer"]
    assert stopped, "without a writer that is stopped, the batch may be done before the driver is killed"
    for pid in stopped:
        signal_to(pid, signal.SIGSTOP)
    order(5)
    checkpoint = tmp_path / "checkpoint"
    running.until("a batch has begun", lambda: begun(checkpoint, "totals") != [])
    for pid in (running.driver, *stopped):
        signal_to(pid, signal.SIGKILL)
    running.kill_driver()
    assert begun(checkpoint, "totals")
    assert tasks(checkpoint) == 2
    running.start(SPARK__PARTITIONS="1")
    running.until("all are counted", lambda: total(6))
    running.until("each batch is reported", lambda: sum(rows_of_batches()) == 6 * len(NAMES))
    assert "batch failed" not in running.log
    assert tasks(checkpoint) == 1
    running.terminate()
    assert running.wait() == 0
