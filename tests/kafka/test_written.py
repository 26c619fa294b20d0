"""What a query has written is read from the marker topic, whoever has left a transaction open there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import KafkaException, Producer

from service.kafka.writer.client import TransactionClient
from service.kafka.writer.marker import Marker, MarkerPlace
from service.kafka.writer.written import Written, written
from tests.kafka.conftest import Query


def write(query: Query, batch: int, plan: bytes, partition: int = 0) -> None:
    with TransactionClient(query.settings(), partition, batch, b"d") as client:
        client.begin()
        client.send(query.rows("a"))
        client.commit(plan=plan)


@pytest.fixture
def leave_open(query: Query) -> Iterator[Producer]:
    """A transaction of task 17 as a process leaves it that dies in its commit; Kafka would end it in ten minutes."""
    place = MarkerPlace.of(query.settings(), 17)
    transactional = {"transactional.id": query.settings().transactional_id(17), "transaction.timeout.ms": 600_000}
    with ExitStack() as cleaning:
        producer = Producer({**query.kafka, **transactional, "log_level": 0})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(place.topic, Marker(3, b"d").encode(), place.key, partition=place.partition)
        producer.flush(30)
        cleaning.callback(producer.purge)
        yield producer


def test_what_a_query_has_written_is_found_and_nothing_else(query: Query) -> None:
    write(query, 1, b"one")
    write(query, 2, b"two")
    write(query, 2, b"deux", partition=17)
    query.write(7, "of another checkpoint", checkpoint="c10")
    with TransactionClient(query.settings(), 0, 3, b"d") as client:
        client.begin()
        client.send(query.rows("never committed"))
    found = written(query.settings())
    assert (found.markers, found.plans) == (
        {0: Marker(2, b"d"), 17: Marker(2, b"d")},
        {0: (b"one", b"two"), 17: (b"deux",)},
    )


def test_what_was_written_since_is_found_from_where_the_last_look_has_ended(query: Query) -> None:
    write(query, 1, b"one")
    before = written(query.settings()).ends
    assert written(query.settings(), before) == Written({}, {}, before)
    write(query, 2, b"two", partition=17)
    assert written(query.settings(), before).markers == {17: Marker(2, b"d")}
    recreated = dict.fromkeys(before, 10**9)
    assert written(query.settings(), recreated).markers == {0: Marker(1, b"d"), 17: Marker(2, b"d")}


def test_a_transaction_that_the_query_has_left_open_is_ended_at_once(query: Query, leave_open: Producer) -> None:
    write(query, 2, b"two", partition=1)  # behind it, in the same partition of the topic
    assert written(query.settings(), seconds=60).markers == {1: Marker(2, b"d")}
    with pytest.raises(KafkaException):
        leave_open.commit_transaction(30)
