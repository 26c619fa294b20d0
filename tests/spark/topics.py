"""Rows into topics and out of them, for tests through a real broker."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)

Record = tuple[bytes | None, bytes | None]


def feed(bootstrap: str, topic: str, rows: Iterable[tuple[int, Any]], largest: int = 1_000_000) -> None:
    """Write rows (a dict becomes JSON, bytes go as they are), each to the partition that comes with it; a row may have
    `largest` bytes."""
    own = {"linger.ms": 20, "enable.idempotence": True, "message.max.bytes": largest}
    producer = Producer({"bootstrap.servers": bootstrap, **own})
    lost: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: object) -> None:
        if error is not None:
            lost.append(error)

    for partition, row in rows:
        value = row if isinstance(row, bytes) else json.dumps(row).encode()
        while True:
            try:
                producer.produce(topic, value, partition=partition, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(60) == 0
    assert lost == []


def add_partitions(bootstrap: str, topic: str, count: int) -> None:
    """Give a topic `count` partitions in all, and wait until they can be written to."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(topic, count)])[topic].result(120)
    until = time.monotonic() + 120
    while len(admin.list_topics(topic, 30).topics[topic].partitions) < count:
        assert time.monotonic() < until, f"the partitions of {topic} are not there"
        time.sleep(0.1)


def read(bootstrap: str, topic: str) -> list[Record]:
    """Every committed record of a topic as (key, value), partition by partition in offset order."""
    return [(m.key(), m.value()) for m in messages(bootstrap, topic)]


OPEN_FOR = 5.0
"""Seconds that a transaction at the end of a partition is waited for: a commit returns before its end is written to
every partition."""


ANSWERED_WITHIN = 30.0
"""Seconds that the next record, or the end of a partition, may take."""


EMPTY_ANSWER_AFTER = 10
"""Milliseconds until the broker answers that a partition has no more records: half a second by default, and each
partition is asked twice."""


def messages(bootstrap: str, topic: str, level: str = "read_committed") -> list[Any]:
    """Every committed message of a topic, partition by partition in offset order; `level` is the isolation level."""
    with _READERS.reader(bootstrap, level) as consumer:
        partitions = list(consumer.list_topics(topic, 30).topics[topic].partitions)
        found: dict[int, list[Any]] = {partition: [] for partition in partitions}
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        unread, ended = set(partitions), set[int]()
        patience = time.monotonic() + ANSWERED_WITHIN
        while unread and (left := patience - time.monotonic()) > 0:
            message = consumer.poll(left)
            if message is None:
                continue
            error, offset, partition = message.error(), message.offset(), message.partition()
            if message.topic() != topic:
                continue  # of a look before
            if error is None and partition is not None:
                found[partition].append(message)
                patience = time.monotonic() + ANSWERED_WITHIN
                continue
            if error is None or error.code() != KafkaError._PARTITION_EOF or partition is None or offset is None:
                continue  # librdkafka tries again by itself
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), cached=True)
            ended.add(partition)
            if offset >= end:
                unread.discard(partition)
            if ended >= unread:
                patience = min(patience, time.monotonic() + OPEN_FOR)
        assert ended >= unread, f"no end of {topic}/{min(unread - ended)} within {ANSWERED_WITHIN} s"
        return [message for partition in partitions for message in found[partition]]


class _Readers:
    """The consumer of the broker that was read last. To connect takes four fifths of the time of a short topic, and
    tests look into their topics again and again."""

    def __init__(self) -> None:
        self._of: tuple[str, str] | None = None
        self._consumer: Consumer | None = None
        self._using = threading.Lock()

    @contextmanager
    def reader(self, bootstrap: str, level: str) -> Iterator[Consumer]:
        """A consumer that is assigned nothing."""
        with self._using:
            if self._consumer is None or self._of != (bootstrap, level):
                self._close()
                self._consumer = Consumer(
                    {
                        "bootstrap.servers": bootstrap,
                        "group.id": "test-reader",
                        "enable.auto.commit": False,
                        "isolation.level": level,
                        "enable.partition.eof": True,
                        "auto.offset.reset": "earliest",
                        "fetch.wait.max.ms": EMPTY_ANSWER_AFTER,
                        "reconnect.backoff.max.ms": 500,
                        "log_level": 2,  # the broker may have ended since
                    }
                )
                self._of = bootstrap, level
            try:
                yield self._consumer
                self._consumer.unassign()
            except BaseException:
                self._close()
                raise

    def _close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


_READERS = _Readers()


def upserted(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """An upsert topic as its last row for each key. Fails where a key is deleted that has no row."""
    table: dict[str, dict[str, Any]] = {}
    for key, value in records:
        assert key is not None
        name = key.decode()
        if value is None:
            assert name in table, f"{name} was deleted but has no row"
            del table[name]
        else:
            table[name] = json.loads(value)
    return table


def debezium(records: Sequence[Record]) -> list[dict[str, Any]]:
    """A debezium-json topic as the rows that are left. Fails where the changelog is not well formed: every row that is
    retracted must be there, exactly as it was."""
    rows: dict[str, int] = {}
    for _, value in records:
        if value is None:
            continue
        change = json.loads(value)
        if change["before"] is not None:
            before = json.dumps(change["before"], sort_keys=True)
            assert rows.get(before, 0) > 0, f"{change['op']} retracts a row that does not exist: {before}"
            rows[before] -= 1
        if change["after"] is not None:
            after = json.dumps(change["after"], sort_keys=True)
            rows[after] = rows.get(after, 0) + 1
    return [json.loads(row) for row, count in sorted(rows.items()) for _ in range(count)]


def limit_records(bootstrap: str, topic: str, size: int) -> None:
    """Have a topic take records of this size at most, from now on."""
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(30)
