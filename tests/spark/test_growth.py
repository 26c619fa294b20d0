"""One checkpoint through growth: what may become more, or less, while a pipeline lives."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.brokers import Broker, MakeTopic
from tests.spark.executor_folders import remove_unused_folders
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import add_partitions, feed, read, upserted

NAMES = [f"n{number}" for number in range(20)]

MORE_CORES = {"SPARK__MASTER": "local[3,4]"}
ONE_TASK = {"SPARK__PARTITIONS": "1"}
MANY_TASKS = {"SPARK__MASTER": "local[8,16]", "SPARK__PARTITIONS": "7"}
EXECUTORS = {
    "SPARK__MASTER": "local-cluster[2,1,1024]",
    "SPARK__EXECUTOR__MEMORY": "512m",
    "SPARK__PARTITIONS": "2",
}
MORE_EXECUTORS = {
    "SPARK__MASTER": "local-cluster[3,1,1024]",
    "SPARK__EXECUTOR__MEMORY": "512m",
    "SPARK__PARTITIONS": "4",
}


@pytest.fixture(autouse=True)
def _nothing_is_left_in_the_package() -> Iterator[None]:
    """Spark's local cluster puts the working folders of its executors beside its archives."""
    yield
    remove_unused_folders()


@pytest.mark.timeout(900)
def test_partitions_cores_executors_and_tasks_may_become_more_and_fewer(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    orders, totals = make_topic("orders", partitions=2), make_topic("totals", cleanup_policy="compact")
    job = service(
        f"""
        CREATE TABLE orders (name STRING, amount BIGINT) WITH (
          'connector' = 'kafka', 'topic' = '{orders}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
        CREATE TABLE totals (name STRING, total BIGINT, PRIMARY KEY (name) NOT ENFORCED) WITH (
          'connector' = 'upsert-kafka', 'topic' = '{totals}', 'key.format' = 'json', 'value.format' = 'json');
        INSERT INTO totals SELECT name, SUM(amount) FROM orders GROUP BY name;
        """,
        kafka.bootstrap,
    )
    rounds = 0

    def all_is_counted_over(partitions: int) -> None:
        """A row of each name goes to those partitions in turn; then each total has grown by one."""
        nonlocal rounds
        rounds += 1
        rows = enumerate({"name": name, "amount": 1} for name in NAMES)
        feed(kafka.bootstrap, orders, ((number % partitions, row) for number, row in rows))
        right = dict.fromkeys(NAMES, rounds)
        job.until(f"the totals are {rounds}", lambda: _totals(kafka, totals) == right)

    job.start()
    all_is_counted_over(2)

    # Partitions that are added to a topic are read without a restart, from their first record on.
    add_partitions(kafka.bootstrap, orders, 5)
    all_is_counted_over(5)
    _end(job)

    # Any number of tasks, on other cores or in executors, takes its share of the state that others left.
    for settings in (MORE_CORES, ONE_TASK, MANY_TASKS, EXECUTORS, MORE_EXECUTORS):
        job.start(**settings)
        all_is_counted_over(5)
        _end(job)


def _totals(kafka: Broker, topic: str) -> dict[str, int]:
    return {row["name"]: row["total"] for row in upserted(read(kafka.bootstrap, topic)).values()}


def _end(job: ServiceProcess) -> None:
    job.terminate()
    assert job.wait() == 0
