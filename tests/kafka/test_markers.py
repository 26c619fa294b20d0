"""The marker is found quickly and rightly, whatever else is in its topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from service.kafka.admin import Cluster, TopicSpec, marker_topic
from service.kafka.errors import KafkaConfigError
from service.kafka.writer.marker import PARTITIONS, Marker, MarkerPlace, MarkerReader
from service.kafka.writer.writer_settings import WriterSettings
from tests.brokers import Broker

Transact = Callable[..., Producer]


@pytest.fixture
def place(kafka: Broker) -> MarkerPlace:
    """The place of a marker in a topic of its own."""
    topic = f"markers-{uuid4().hex[:8]}"
    Cluster({"bootstrap.servers": kafka.bootstrap}).create([marker_topic(topic)])
    return MarkerPlace(topic, 3, b"mine")


@pytest.fixture
def reader(kafka: Broker) -> MarkerReader:
    return MarkerReader({"bootstrap.servers": kafka.bootstrap})


@pytest.fixture
def transact(kafka: Broker, place: MarkerPlace) -> Iterator[Transact]:
    """Writes records of one key to the marker's partition in a transaction, which is left open."""
    with ExitStack() as cleaning:

        def begin(key: bytes, *values: bytes, times: int = 1) -> Producer:
            producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": uuid4().hex, "log_level": 0})
            producer.init_transactions(30)
            producer.begin_transaction()
            for value in values * times:
                producer.produce(place.topic, value, key, partition=place.partition)
            producer.flush(30)
            cleaning.callback(producer.purge)
            return producer

        yield begin


def _never() -> None:
    """Nothing ends the wait."""


def test_there_is_no_marker_at_first(reader: MarkerReader, place: MarkerPlace):
    assert reader.committed(place, 20) is None
    assert reader.last_decided(place, 60, _never) is None


def test_the_last_committed_marker_counts(reader: MarkerReader, place: MarkerPlace, transact: Transact):
    transact(b"mine", Marker(1, b"a").encode()).commit_transaction()
    transact(b"mine", Marker(2, b"b").encode(), Marker(3, b"c").encode()).commit_transaction()
    transact(b"mine", Marker(4, b"d").encode()).abort_transaction()
    assert reader.last_decided(place, 60, _never) == Marker(3, b"c")


def test_it_is_found_under_many_of_others_and_behind_aborted_ones(
    reader: MarkerReader, place: MarkerPlace, transact: Transact
):
    transact(b"mine", Marker(5, b"a").encode()).commit_transaction()
    transact(b"other", b"x", times=100_000).commit_transaction()
    transact(b"mine", Marker(6, b"b").encode(), times=5_000).abort_transaction()
    assert reader.last_decided(place, 60, _never) == Marker(5, b"a")


def test_an_open_transaction_of_another_query_is_not_waited_for(
    reader: MarkerReader, place: MarkerPlace, transact: Transact
):
    transact(b"mine", Marker(5, b"a").encode()).commit_transaction()
    transact(b"other", b"x")
    assert reader.last_decided(place, 60, _never) == Marker(5, b"a")


def test_a_marker_behind_an_open_transaction_is_waited_for(
    reader: MarkerReader, place: MarkerPlace, transact: Transact
):
    other = transact(b"other", b"x")
    transact(b"mine", Marker(5, b"a").encode()).commit_transaction()
    assert reader.committed(place, 20) is None
    waits: list[None] = []

    def ends_in_a_while() -> None:
        waits.append(None)
        if len(waits) == 5:
            other.commit_transaction()

    assert reader.last_decided(place, 60, ends_in_a_while) == Marker(5, b"a")
    assert len(waits) >= 5


def test_a_marker_of_another_version_is_refused(reader: MarkerReader, place: MarkerPlace, transact: Transact):
    transact(b"mine", b'{"format": 2, "batch": 1}').commit_transaction()
    with pytest.raises(KafkaConfigError, match="another version"):
        reader.last_decided(place, 60, _never)


@pytest.mark.parametrize(("partitions", "policy"), [(PARTITIONS, "compact,delete"), (2, "compact")])
def test_a_topic_that_could_lose_markers_is_refused(kafka: Broker, partitions: int, policy: str):
    cluster = Cluster({"bootstrap.servers": kafka.bootstrap})
    topic = TopicSpec(name=f"markers-{uuid4().hex[:8]}", partitions=partitions, config={"cleanup.policy": policy})
    cluster.create([topic])
    with pytest.raises(KafkaConfigError, match="cannot hold"):
        cluster.check_markers(topic.name)


def test_markers_of_one_query_are_spread_over_the_partitions():
    settings = WriterSettings(
        query="q", checkpoint_id="c", kafka={}, marker_topic="m", socket_folder="/tmp", parent_pid=1
    )
    places = [MarkerPlace.of(settings, partition) for partition in range(PARTITIONS)]
    assert {place.partition for place in places} == set(range(PARTITIONS))
    assert len({place.key for place in places}) == PARTITIONS
