"""A batch that is given up: no writer of the plan before commits it any more, however late it wakes up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from confluent_kafka import Producer

from service.kafka.errors import Fenced, KafkaUnreachable
from service.kafka.writer.client import TransactionClient
from service.kafka.writer.marker import Marker, MarkerPlace, MarkerReader
from service.kafka.writer.partition_writer import PartitionWriter, fence_all
from service.kafka.writer.written import written
from tests.kafka.conftest import Query


def superseded(query: Query, batch: int, plan: int = 1, partition: int = 0) -> bool:
    settings = replace(query.settings(), plan=plan)
    writer = PartitionWriter(settings, partition, MarkerReader(settings.kafka))
    try:
        return writer.supersede(batch)
    finally:
        writer.close()


def test_what_was_committed_stays_and_a_batch_that_is_committed_cannot_be_given_up(query: Query):
    query.write(0, "a", digest=b"first")
    assert superseded(query, 1)
    assert written(query.settings()).markers == {0: Marker(0, b"first", 1)}
    assert not superseded(query, 0)
    assert query.committed() == ["a"]


@pytest.mark.parametrize("begun", [True, False])
def test_a_task_of_the_plan_before_writes_nothing(query: Query, begun: bool):
    query.write(0, "a")
    with query.attempt(1) as zombie:
        if begun:
            zombie.begin()
            zombie.send(query.rows("zombie"))
        assert superseded(query, 1)
        with pytest.raises(Fenced):
            _write(zombie, query, begun)
    with pytest.raises(Fenced, match="was given up"):
        query.write(1, "again", host="b")
    query.set(plan=1)
    assert query.write(1, "rewritten", digest=b"another cut").outcome == "committed"
    assert query.committed() == ["a", "rewritten"]


def test_a_batch_that_was_the_first_can_be_given_up(query: Query):
    assert superseded(query, 0)
    query.set(plan=1)
    query.write(0, "a")
    assert superseded(query, 1, plan=2)
    assert query.committed() == ["a"]


def test_of_two_transactions_that_were_left_open_none_hides_the_marker_of_the_other(query: Query):
    query.set(patience_ms=10_000)
    tasks = (17, 1)  # their markers are in one partition of the topic
    producers = [_left_open(query, task) for task in tasks]
    with pytest.raises(KafkaUnreachable, match="hides the last marker"):
        superseded(query, 3, partition=1)
    producers.append(_left_open(query, 1))
    fence_all([(query.settings(), task) for task in tasks])
    assert [superseded(query, 3, partition=task) for task in tasks] == [True, True]
    for producer in producers:
        producer.purge()


def _left_open(query: Query, task: int) -> Producer:
    """A transaction of a task with a marker of batch 3, as a process leaves it that dies in its commit; Kafka would end
    it in ten minutes."""
    place = MarkerPlace.of(query.settings(), task)
    transactional = {"transactional.id": query.settings().transactional_id(task), "transaction.timeout.ms": 600_000}
    producer = Producer({**query.kafka, **transactional, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(place.topic, Marker(3, b"d").encode(), place.key, partition=place.partition)
    producer.flush(30)
    return producer


def _write(zombie: TransactionClient, query: Query, begun: bool) -> None:
    """The rest of an attempt."""
    if not begun:
        zombie.begin()
        zombie.send(query.rows("zombie"))
    zombie.commit()
