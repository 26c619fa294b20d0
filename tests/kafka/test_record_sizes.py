"""The size of a topic's records is estimated from its first and its last ones."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from service.kafka.record_sizes import RECORDS, largest_average
from tests.brokers import Broker, MakeTopic


def _fill(kafka: Broker, topic: str, partition: int, sizes: list[int]) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for size in sizes:
        producer.produce(topic, b"x" * size, partition=partition)
    producer.flush()


def test_it_is_the_mean_of_the_last_records_of_all_partitions(kafka: Broker, make_topic: MakeTopic):
    topic = make_topic(partitions=2)
    _fill(kafka, topic, 0, [10] * 10 + [100] * RECORDS)
    _fill(kafka, topic, 1, [300] * RECORDS)
    assert largest_average({"bootstrap.servers": kafka.bootstrap}, [topic]) == pytest.approx(200)


def test_it_is_the_mean_of_the_first_records_where_those_are_larger(kafka: Broker, make_topic: MakeTopic):
    topic = make_topic(partitions=1)
    _fill(kafka, topic, 0, [10_000] * 10 + [100] * RECORDS)
    assert largest_average({"bootstrap.servers": kafka.bootstrap}, [topic]) == pytest.approx(10_000)


def test_of_several_topics_the_one_with_the_largest_counts(kafka: Broker, make_topic: MakeTopic):
    small, large, empty = make_topic("small"), make_topic("large"), make_topic("empty")
    _fill(kafka, small, 0, [10] * 5)
    _fill(kafka, large, 1, [5_000] * 3)
    assert largest_average({"bootstrap.servers": kafka.bootstrap}, [small, large, empty]) == pytest.approx(5_000)


def test_an_empty_topic_shows_nothing(kafka: Broker, make_topic: MakeTopic):
    assert largest_average({"bootstrap.servers": kafka.bootstrap}, [make_topic()]) is None


def test_a_broker_that_does_not_answer_is_no_error():
    assert largest_average({"bootstrap.servers": "127.0.0.1:1"}, ["any"]) is None
