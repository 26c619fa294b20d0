"""The size of a topic's records, estimated from its first and last few records."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, TopicPartition

RECORDS = 64
"""The number of records read from each partition."""

PARTITIONS = 4
"""The number of partitions read from each topic."""

SECONDS = 2.0
"""Seconds that an answer may take: it determines how fast rows are passed on, never their values."""


def largest_average(kafka: Mapping[str, str], topics: Iterable[str]) -> float | None:
    """Return the mean bytes of the first or the last records, key and value, of the topic with the largest mean; None
    if there are no records.

    `kafka` are librdkafka's properties. A broker that does not answer in time is no error here.
    """
    settings = {**kafka, "group.id": "tailrace-sizes", "enable.auto.commit": False, "log_level": 0}
    settings["isolation.level"] = "read_uncommitted"
    deadline = time.monotonic() + SECONDS
    with closing(Consumer(settings)) as consumer:
        try:
            averages = [_average(consumer, topic, deadline) for topic in topics]
        except KafkaException:
            return None
    return max((each for each in averages if each is not None), default=None)


def _average(consumer: Consumer, topic: str, deadline: float) -> float | None:
    known = consumer.list_topics(topic, timeout=_left(deadline)).topics[topic].partitions
    first_ones: list[TopicPartition] = []
    last_ones: list[TopicPartition] = []
    wanted = more = 0
    for partition in list(known)[:PARTITIONS]:
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_left(deadline))
        if end != OFFSET_INVALID and end > first:
            start = max(first, end - RECORDS)
            last_ones.append(TopicPartition(topic, partition, start))
            wanted += end - start
            if start > first:
                first_ones.append(TopicPartition(topic, partition, first))
                more += min(RECORDS, start - first)
    found = [_mean(consumer, last_ones, wanted, deadline), _mean(consumer, first_ones, more, deadline)]
    return max((each for each in found if each is not None), default=None)


def _mean(consumer: Consumer, places: list[TopicPartition], wanted: int, deadline: float) -> float | None:
    """The mean bytes of up to `wanted` records from `places` on."""
    if not places:
        return None
    consumer.assign(places)
    sizes: list[int] = []
    while len(sizes) < wanted and time.monotonic() < deadline:
        # Offsets without a record, as markers of transactions are, never come: silence is the end, too.
        found = consumer.consume(wanted - len(sizes), timeout=0.25)
        if not found and sizes:
            break
        sizes += [len(each.key() or b"") + len(each.value() or b"") for each in found if each.error() is None]
    consumer.unassign()
    return sum(sizes) / len(sizes) if sizes else None


def _left(deadline: float) -> float:
    return max(0.05, deadline - time.monotonic())
