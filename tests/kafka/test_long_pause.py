"""A pause longer than Kafka keeps what it keeps by time: markers stay, since their topic is compacted."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer

from service.kafka.admin import Cluster, TopicSpec
from service.kafka.writer.marker import Marker, MarkerPlace
from tests.kafka.conftest import MARKERS, Query
from tests.spark.topics import messages

MONTH = 30 * 24 * 3600 * 1000


@pytest.fixture
def broker(own_kafka):
    """A broker that forgets quickly: records older than a week, and the offsets of groups that are a minute old."""
    hasty = {
        "log.retention.check.interval.ms": "300",
        "log.initial.task.delay.ms": "0",
        "log.cleaner.backoff.ms": "300",
    }
    return own_kafka(properties=hasty | {"offsets.retention.minutes": "1"})


def test_a_batch_is_known_after_a_month(broker, make_query):
    query: Query = make_query(broker.bootstrap, patience_ms=20_000)
    ago = int(time.time() * 1000) - MONTH
    Cluster(query.kafka).create([TopicSpec(name="by-time", partitions=1)])
    place = MarkerPlace.of(query.settings(), 0)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(MARKERS, Marker(7, b"d").encode(), place.key, partition=place.partition, timestamp=ago)
    producer.produce("by-time", b"x", b"k", timestamp=ago)
    producer.flush(30)
    until = time.monotonic() + 120
    while messages(broker.bootstrap, "by-time"):  # what is kept by time is gone by then
        assert time.monotonic() < until, "the broker did not forget"
        time.sleep(0.3)
    assert query.write(7, "again").outcome == "replayed"
    assert query.write(8, "next").outcome == "committed"
    assert query.committed() == ["next"]
