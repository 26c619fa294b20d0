"""A partition whose only broker is gone has no leader: the job waits for it, and loses and repeats nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from service.kafka.local_broker.broker import EmbeddedKafka
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, read, upserted

PIPELINE = """
    SET 'pipeline.name' = 'totals';
    CREATE TABLE orders (name STRING, amount BIGINT) WITH ('connector' = 'kafka', 'topic' = 'orders',
      'format' = 'json', 'scan.startup.mode' = 'earliest-offset',
      'properties.default.api.timeout.ms' = '5000', 'properties.request.timeout.ms' = '4000');
    CREATE TABLE totals (name STRING, total BIGINT, PRIMARY KEY (name) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = 'totals', 'key.format' = 'json', 'value.format' = 'json');
    INSERT INTO totals SELECT name, SUM(amount) FROM orders GROUP BY name;
"""
FIRST, SECOND = 1, 2
"""The nodes of the brokers."""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def test_a_job_waits_for_a_partition_without_a_leader(
    own_kafka: Callable[..., EmbeddedKafka],
    service: Callable[..., ServiceProcess],
    tmp_path: Path,
    stack: ExitStack,
) -> None:
    first = own_kafka()
    _use_own_topics(first.bootstrap)
    second = stack.enter_context(_Second(first, tmp_path / "second"))
    admin = AdminClient({"bootstrap.servers": first.bootstrap})
    compacted = {"cleanup.policy": "compact"}
    made = [
        NewTopic("orders", 2, replica_assignment=[[FIRST], [SECOND]]),
        NewTopic("totals", 1, replica_assignment=[[FIRST]], config=compacted),
        NewTopic("tailrace.markers", 16, replica_assignment=[[FIRST]] * 16, config=compacted),
        NewTopic("tailrace.dead-letter", 1, replica_assignment=[[FIRST]]),
    ]
    for each in admin.create_topics(made).values():
        each.result(30)
    running = service(PIPELINE, first.bootstrap, RETRY__ATTEMPTS="0")

    def order(partition: int, amount: int) -> None:
        feed(first.bootstrap, "orders", [(partition, {"name": "ann", "amount": amount})])

    def total() -> int | None:
        return next((row["total"] for row in upserted(read(first.bootstrap, "totals")).values()), None)

    order(0, 1)
    order(1, 2)
    running.start()
    running.until("both partitions are read", lambda: total() == 3)

    said = len(running.log)
    second.stop()
    order(0, 4)
    running.until("the job says that it waits", lambda: "waiting for Kafka" in running.log[said:])
    assert not running.ended()
    second.start()
    order(1, 8)
    running.until("all orders are counted, once", lambda: total() == 15)
    running.terminate()
    assert running.wait() == 0


class _Second(EmbeddedKafka):
    """A broker without a controller of its own, which joins `first`."""

    def __init__(self, first: EmbeddedKafka, folder: Path) -> None:
        super().__init__(folder=folder)
        listeners = f"CLIENT://{self.bootstrap},INTERNAL://{self.internal_bootstrap}"
        known = (first.folder / "server.properties").read_text().splitlines()
        voters = next(line.partition("=")[2] for line in known if line.startswith("controller.quorum.voters="))
        self._properties = {
            "node.id": str(SECOND),
            "process.roles": "broker",
            "listeners": listeners,
            "advertised.listeners": listeners,
            "controller.quorum.voters": voters,
        }


def _use_own_topics(bootstrap: str) -> None:
    """Have the broker make Kafka's own topics, while it is alone: all of their partitions are its own then."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "first"})
    producer.init_transactions(60)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "first"})
    deadline = time.monotonic() + 60
    while True:
        try:
            consumer.committed([TopicPartition("x", 0)], timeout=60)
            break
        except KafkaException:  # the topic is there, and nobody is in charge of it yet
            assert time.monotonic() < deadline
            time.sleep(0.1)
    consumer.close()
