"""The wait for records where a query has read all: what ends it, what does not, and what leaves it to a search."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from service.kafka.local_broker.broker import EmbeddedKafka
from tests.brokers import Broker, MakeTopic
from tests.spark.shared_jvm.jvm import SharedJvm, SharedJvms
from tests.spark.topics import add_partitions, feed

SILENCE = "tailrace.kafka.Silence"

LONG = 120_000
"""Milliseconds that no test reaches, and of which a test that waits for them fails."""


SHORT = 300
"""Milliseconds of a pause in which nothing comes."""


class Waiting:
    """A query's wait behind the offsets of one topic, by partition."""

    def __init__(
        self, jvm: SharedJvm, bootstrap: str, topic: str, pause: int = SHORT, search: int = LONG, blind: int = LONG
    ) -> None:
        self._jvm, self._topic = jvm, topic
        properties = jvm.java("java.util.HashMap")()
        properties.put("bootstrap.servers", bootstrap)
        properties.put("isolation.level", "read_committed")
        self._silence = jvm.java(SILENCE)(properties, pause, search, blind)

    def _offsets(self, offsets: Mapping[int, int]) -> Any:
        found = self._jvm.java("java.util.HashMap")()
        for partition, offset in offsets.items():
            found.put(self._jvm.java("org.apache.kafka.common.TopicPartition")(self._topic, partition), offset)
        return found

    def lasts(self, offsets: Mapping[int, int]) -> bool:
        """Whether nothing has come behind the offsets."""
        return bool(self._silence.lasts(self._offsets(offsets)))

    def searched(self, offsets: Mapping[int, int], found: Mapping[int, int] | None = None) -> None:
        """Note what a search has found, nothing new by default."""
        self._silence.searched(self._offsets(offsets), self._offsets(offsets if found is None else found))

    def batch(self) -> None:
        """Note a batch."""
        self._silence.batch()

    def close(self) -> None:
        """Close the consumer."""
        self._silence.close()


@pytest.fixture
def waiting(jvms: SharedJvms, kafka: Broker) -> Callable[..., Waiting]:
    return partial(Waiting, jvms.running(), kafka.bootstrap)


def test_a_record_ends_the_wait_for_it(waiting: Callable[..., Waiting], kafka: Broker, make_topic: MakeTopic):
    topic = make_topic(partitions=3)
    silence, read = waiting(topic, LONG), {0: 0, 1: 0, 2: 0}
    for partition in (1, 1, 0, 1):
        silence.batch()
        assert not silence.lasts(read), "after a batch there is a search first"
        silence.searched(read)
        feeding = threading.Timer(0.5, feed, (kafka.bootstrap, topic, [(partition, {"n": 1})]))
        feeding.start()
        assert not silence.lasts(read)
        feeding.join()
        found = {**read, partition: read[partition] + 1}
        silence.searched(read, found)
        read = found
        assert not silence.lasts(read), "nothing is known of other offsets before a search"
    silence.close()


def test_nothing_comes_until_the_pause_is_over(waiting: Callable[..., Waiting], make_topic: MakeTopic):
    silence, start = waiting(make_topic(partitions=2)), {0: 0, 1: 0}
    assert not silence.lasts(start)
    silence.searched(start)
    asked = time.monotonic()
    assert [silence.lasts(start) for _ in range(4)] == [True] * 4
    assert time.monotonic() - asked >= 4 * SHORT / 1000
    silence.close()


def test_a_search_is_made_from_time_to_time_whatever_the_consumer_says(
    waiting: Callable[..., Waiting], make_topic: MakeTopic
):
    silence, start = waiting(make_topic(partitions=1), 10, 2000), {0: 0}
    silence.lasts(start)
    silence.searched(start)
    asked = time.monotonic()
    while silence.lasts(start):
        assert time.monotonic() - asked < 60
    assert time.monotonic() - asked > 1
    silence.searched(start)
    assert silence.lasts(start)
    silence.close()


def test_records_that_no_batch_may_read_are_searched_for_and_not_waited_at(
    waiting: Callable[..., Waiting], kafka: Broker, make_topic: MakeTopic
):
    topic = make_topic(partitions=1)
    feed(kafka.bootstrap, topic, [(0, {"n": n}) for n in range(10)])
    silence, start = waiting(topic, blind=4 * SHORT), {0: 4}
    silence.lasts(start)
    silence.searched(start)
    while silence.lasts(start):
        pass
    silence.searched(start)
    # While there is no consumer, each question waits all the same, and leaves it to a search.
    asked = time.monotonic()
    assert [silence.lasts(start) for _ in range(3)] == [False, False, False]
    assert time.monotonic() - asked >= 3 * SHORT / 1000
    # Afterwards there is one again.
    time.sleep(4 * SHORT / 1000)
    silence.searched({0: 10})
    assert silence.lasts({0: 10})
    silence.close()


def test_partitions_that_are_added_are_waited_at_after_the_search_that_finds_them(
    waiting: Callable[..., Waiting], kafka: Broker, make_topic: MakeTopic
):
    topic = make_topic(partitions=1)
    silence = waiting(topic, LONG)
    silence.lasts({0: 0})
    silence.searched({0: 0})
    add_partitions(kafka.bootstrap, topic, 2)
    silence.searched({0: 0}, {0: 0, 1: 0})
    silence.searched({0: 0, 1: 0})
    feeding = threading.Timer(1, feed, (kafka.bootstrap, topic, [(1, {"n": 1})]))
    feeding.start()
    assert not silence.lasts({0: 0, 1: 0})
    feeding.join()
    silence.close()


def test_a_consumer_that_fails_leaves_it_to_the_search_and_another_one_waits_later(
    waiting: Callable[..., Waiting], make_topic: MakeTopic
):
    silence, gone = waiting(make_topic(partitions=1), blind=10 * SHORT), {0: 1000}
    silence.lasts(gone)
    silence.searched(gone)
    failing = time.monotonic()
    while silence.lasts(gone):
        assert time.monotonic() - failing < 60, "the offset is not there"
    silence.searched({0: 0})
    assert not silence.lasts({0: 0}), "no consumer is made at once after one that has failed"
    time.sleep(10 * SHORT / 1000)
    silence.searched({0: 0})
    assert silence.lasts({0: 0})
    silence.close()


def test_a_topic_that_is_deleted_is_not_made_anew(jvms: SharedJvms, own_kafka: Callable[..., EmbeddedKafka]):
    bootstrap = own_kafka(properties={"auto.create.topics.enable": "true"}).bootstrap
    feed(bootstrap, "made", [(0, {"n": 1})])
    silence, read = Waiting(jvms.running(), bootstrap, "made"), {0: 1}
    silence.lasts(read)
    silence.searched(read)
    assert silence.lasts(read)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics(["made"])["made"].result(60)
    for _ in range(10):
        silence.lasts(read)
        silence.searched(read)
    assert "made" not in admin.list_topics(timeout=60).topics
    silence.close()


@pytest.mark.parametrize("bootstrap", ["127.0.0.1:1", "no address"])
def test_without_a_broker_there_is_a_search_from_time_to_time(bootstrap: str, jvms: SharedJvms, make_topic: MakeTopic):
    silence, start = Waiting(jvms.running(), bootstrap, make_topic(partitions=1), 100, 1000), {0: 0}
    silence.lasts(start)
    for _ in range(2):
        silence.searched(start)
        asked = time.monotonic()
        while silence.lasts(start):
            assert time.monotonic() - asked < 60
    silence.close()
