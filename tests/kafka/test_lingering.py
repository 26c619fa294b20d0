"""Rows that wait in the producer for a full batch hold nobody up."""

from __future__ import annotations

from uuid import uuid4

import pyarrow as pa
import pytest

from service.kafka.writer.producer import Producer
from service.kafka.writer.records import by_topic, one_row
from tests.brokers import Broker, MakeTopic

_LONG = {"linger.ms": "600000", "delivery.timeout.ms": "700000"}


@pytest.mark.e2e
def test_the_marker_of_a_small_batch_does_not_wait_until_its_rows_have_lingered(kafka: Broker, make_topic: MakeTopic):
    topic, markers = make_topic(), make_topic(partitions=1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, **_LONG}, uuid4().hex, 700_000)
    producer.init(30)
    pauses = 0

    def pause() -> None:
        nonlocal pauses
        pauses += 1
        assert pauses < 1_000, "the producer waits for rows that linger"

    for _ in range(3):
        producer.begin()
        for _ in range(2):
            values = pa.array([b"row"] * 100)
            for rows in by_topic(pa.record_batch({"topic": pa.array([topic] * 100), "value": values})):
                producer.produce(rows, pause)
        producer.produce(one_row(markers, 0, b"key", b"marker"), pause)
        producer.commit(30)
    producer.close()
