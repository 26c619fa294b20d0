"""One checkpoint through growth: what may become more while a pipeline lives, and what may not."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from service.spark.driver.jvm import spark_home
from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, read, upserted

NAMES = [f"n{number}" for number in range(20)]

FIXED = [
    ({"SPARK__BUCKETS": "5"}, "was made with TAILRACE_SPARK__BUCKETS=4, not 5", "set it to 4"),
]

MORE_CORES = {"SPARK__MASTER": "local[3,4]"}
MORE_TASKS = {"SPARK__PARTITIONS": "3"}
EXECUTORS = {
    "SPARK__MASTER": "local-cluster[2,1,1024]",
    "SPARK__EXECUTOR__MEMORY": "512m",
    "SPARK__PARTITIONS": "2",
}


@pytest.fixture(autouse=True)
def _nothing_is_left_in_the_package() -> Iterator[None]:
    """Spark's local cluster puts the working folders of its executors beside its archives."""
    yield
    shutil.rmtree(spark_home() / "work", ignore_errors=True)


def test_partitions_cores_and_executors_may_grow_but_not_the_number_of_buckets(
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
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_partitions([NewPartitions(orders, 5)])[orders].result(30)
    all_is_counted_over(5)
    _end(job)

    # State is in as many buckets as it was made with: another number is refused, and nothing is read or written.
    written = read(kafka.bootstrap, totals)
    for settings, detail, hint in FIXED:
        job.start(**settings)
        assert job.wait() == 1
        gave_up = next(event for event in reversed(job.events()) if event["event"] == "gave up")
        assert "the state of a checkpoint cannot be spread anew; nothing was read or written" in str(gave_up)
        assert detail in str(gave_up)
        assert hint in str(gave_up)
    assert read(kafka.bootstrap, totals) == written

    # Any number of tasks, on other cores or in executors, takes the state as it is spread.
    for settings in (MORE_CORES, MORE_TASKS, EXECUTORS):
        job.start(**settings)
        all_is_counted_over(5)
        _end(job)


def _totals(kafka: Broker, topic: str) -> dict[str, int]:
    return {row["name"]: row["total"] for row in upserted(read(kafka.bootstrap, topic)).values()}


def _end(job: ServiceProcess) -> None:
    job.terminate()
    assert job.wait(90) == 0
