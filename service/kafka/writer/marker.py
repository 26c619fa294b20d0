"""The marker: the batch of a partition that was committed last, written in the same transaction as the batch's rows.

Markers are in a compacted topic, so they outlive any pause. The marker of a partition is always in the same partition
of that topic, and the partitions of one query are distributed over the topic's: a reader of stable data never waits for
a transaction that another task of the query has open.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from service.kafka.error_codes import Troubles, failure
from service.kafka.errors import KafkaConfigError, KafkaFailure, KafkaUnreachable
from service.kafka.writer.writer_settings import WriterSettings

FORMAT = 1
PLAN = 8
"""The bytes of a digest that identify the time at which the batch was planned; the others identify the records that it
was made from."""

PARTITIONS = 16
"""The number of partitions of the marker topic that are used. Kafka only ever adds partitions, so a marker's place
never moves."""

TOPIC_CONFIG = {
    "cleanup.policy": "compact",
    "segment.ms": "3600000",
    "segment.bytes": "33554432",
    "min.cleanable.dirty.ratio": "0.1",
}

Properties = dict[str, str | int | float | bool]
Record = tuple[bytes | None, bytes | None]
"""Key and value."""

_ASK = 10.0
"""Seconds to wait for the answer to one request for offsets. The request is then repeated by a new client, for as long
as the caller waits: a broker that ends during a request does not answer it."""

_WINDOW = 200
"""The number of records at the end of a partition of the marker topic among which a marker is searched first: a batch
of a query writes one for each of its partitions, so it is mostly there."""

_WIDER = 16
"""The factor by which the next search is larger, if it was not there: a whole topic then takes a few reads."""


@dataclass(frozen=True, slots=True)
class Marker:
    """The state of a partition: `batch` and all batches before it are committed. `digest` identifies the source rows of
    `batch`. `plan` counts how often a batch of the checkpoint was given up: a writer with a lower number would write an
    abandoned plan, and must not."""

    batch: int
    digest: bytes
    plan: int = 0

    def encode(self) -> bytes:
        """Return the marker as the value of a record."""
        fields = {"format": FORMAT, "batch": self.batch, "digest": self.digest.hex(), "plan": self.plan}
        return json.dumps(fields).encode()

    @staticmethod
    def decode(value: bytes) -> Marker:
        """Return the marker that `encode` wrote. Raises KafkaConfigError for another format."""
        fields = json.loads(value)
        if fields.get("format") != FORMAT:
            raise KafkaConfigError(
                "the marker of the last batch was written by another version",
                f"its format is {fields.get('format')}, this version reads format {FORMAT}",
                "run the version that wrote it, or start with a new checkpoint",
            )
        return Marker(fields["batch"], bytes.fromhex(fields["digest"]), fields.get("plan", 0))


@dataclass(frozen=True, slots=True)
class MarkerPlace:
    """The place of the marker of one partition of a query: topic, partition of that topic, key."""

    topic: str
    partition: int
    key: bytes

    @staticmethod
    def of(settings: WriterSettings, partition: int) -> MarkerPlace:
        """Return the place of the marker of a partition of the query."""
        owner = json.dumps([settings.query, settings.checkpoint_id]).encode()
        first = int.from_bytes(hashlib.sha256(owner).digest()[:4], "big")
        key = json.dumps([settings.query, settings.checkpoint_id, partition]).encode()
        return MarkerPlace(settings.marker_topic, (first + partition) % PARTITIONS, key)


class Undecided(NamedTuple):
    """The records of a partition that an open transaction hides: from the offset `stable` on, with these `keys`."""

    stable: int
    keys: frozenset[bytes]


class MarkerReader:
    """Reads markers, for any number of threads.

    Each search has a consumer of its own: something that an earlier search left in a consumer's queue (the end of a
    partition, say) could end the next one too early, and a marker that is overlooked is a batch that is written twice.
    """

    def __init__(self, kafka: Mapping[str, str]) -> None:
        connection: Properties = {name: value for name, value in kafka.items() if name.startswith(_CONNECTION)}
        self._consuming: Properties = connection | {
            "group.id": "tailrace-markers",
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": "5",
            "fetch.error.backoff.ms": "50",
            "reconnect.backoff.ms": "10",
            "log_level": "2",
        }
        self._troubles = Troubles()
        self._asking: Properties = connection | {"log_level": "2", "reconnect.backoff.ms": "10"}
        self._admin = self._client()

    def committed(self, place: MarkerPlace, seconds: float) -> Marker | None:
        """Return the last marker that is known to be committed right now."""

        def read(until: float) -> bytes | None:
            return self._last(place, _COMMITTED, 0, self._end(place, _COMMITTED, until), until)

        return self._patiently(read, seconds)

    def last_decided(self, place: MarkerPlace, seconds: float, check_cancelled: Callable[[], None]) -> Marker | None:
        """Return the last marker, once every marker of this place that was written until now is decided.

        To be called by the owner of the transactional id, after it took the epoch: then its own transactions are
        decided, but one of another id may hold back what stable readers see. That is waited for only where a marker of
        this place lies behind it.
        """

        def read(until: float) -> bytes | None:
            end = self._end(place, _UNCOMMITTED, until)
            stable = self._end(place, _COMMITTED, until)
            while stable < end and self._last(place, _UNCOMMITTED, stable, end, until) is not None:
                stable = self._next_stable(place, stable, until, check_cancelled)
            return self._last(place, _COMMITTED, 0, stable, until)

        return self._patiently(read, seconds)

    def _next_stable(self, place: MarkerPlace, known: int, until: float, check_cancelled: Callable[[], None]) -> int:
        """Return the end of stable data once it has moved past `known`, behind which a marker of this place lies: the
        hidden records are read once, however long that takes."""
        hidden = f"a transaction that is open in topic {place.topic} hides the last marker"
        while time.monotonic() < until:
            check_cancelled()
            time.sleep(0.05)
            try:
                stable = self._end(place, _COMMITTED, until)
            except KafkaFailure as failed:
                if not failed.retriable or time.monotonic() < until:
                    raise
                raise KafkaUnreachable(hidden) from failed
            if stable != known:
                return stable
        raise KafkaUnreachable(hidden)

    def undecided(self, topic: str, partition: int, until: float) -> Undecided:
        """Return the offset from which an open transaction hides records, and the keys of the records written so far.

        `until` is a time of the monotonic clock; raises KafkaFailure.
        """
        place = MarkerPlace(topic, partition, b"")
        end = self._end(place, _UNCOMMITTED, until)
        stable = self._end(place, _COMMITTED, until)
        keys: set[bytes] = set()
        if stable < end:
            self._scan(place, _UNCOMMITTED, stable, end, until, lambda record: keys.add(record[0] or b""))
        return Undecided(stable, frozenset(keys))

    def between(self, topic: str, partition: int, start: int, end: int, until: float) -> list[Record]:
        """Return the committed records of a partition from `start` to before `end`, whatever their keys, oldest first.

        `until` is a time of the monotonic clock; raises KafkaFailure.
        """
        found: list[Record] = []
        if start < end:
            self._scan(MarkerPlace(topic, partition, b""), _COMMITTED, start, end, until, found.append)
        return found

    def _patiently(self, read: Callable[[float], bytes | None], seconds: float) -> Marker | None:
        """Read, and repeat it while brokers are unavailable."""
        until = time.monotonic() + seconds
        while True:
            try:
                value = read(until)
                return None if value is None else Marker.decode(value)
            except KafkaFailure as failed:
                if not failed.retriable or time.monotonic() > until:
                    raise
            time.sleep(0.2)
            # A client that has seen a broker restart may insist on the leader epoch that it knows (list_offsets does).
            self._admin = self._client()

    def _client(self) -> AdminClient:
        return AdminClient(self._asking | {"error_cb": self._troubles})  # type: ignore[arg-type]

    def _end(self, place: MarkerPlace, level: IsolationLevel, until: float) -> int:
        """The offset after the last record: of all, or of those before the first open transaction."""
        partition = TopicPartition(place.topic, place.partition)
        self._troubles.forget()
        seconds = min(_ASK, max(0.1, until - time.monotonic()))
        asked = self._admin.list_offsets(
            {
                partition: OffsetSpec.latest()  # type: ignore[no-untyped-call]
            },
            isolation_level=level,
            request_timeout=seconds,
        )
        try:
            return int(asked[partition].result(timeout=seconds + 1).offset)
        except (KafkaException, TimeoutError) as failed:
            raise self._explained(failed, place.topic) from failed

    def _explained(self, failed: Exception, topic: str) -> KafkaFailure:
        """The reason why offsets could not be read: a missing or forbidden topic shows as a mere time-out, too."""
        primary = f"the markers in topic {topic} cannot be read"
        try:
            error = self._admin.list_topics(topic, timeout=2).topics[topic].error
        except KafkaException:
            error = None
        self._admin.poll(0)
        if error is None:
            return self._troubles.explain(failed, primary)
        return failure(error.code(), error.str(), primary)

    def _last(self, place: MarkerPlace, level: IsolationLevel, low: int, high: int, until: float) -> bytes | None:
        """The value of the last record with the place's key in [low, high), searched in widening steps from the end."""
        found: list[bytes | None] = []

        def take(record: Record) -> None:
            if record[0] == place.key:
                found.append(record[1])

        width = _WINDOW
        while high > low:
            start = max(low, high - width)
            self._scan(place, level, start, high, until, take)
            if found:
                return found[-1]
            high, width = start, width * _WIDER
        return None

    def _scan(
        self,
        place: MarkerPlace,
        level: IsolationLevel,
        start: int,
        high: int,
        until: float,
        take: Callable[[Record], object],
    ) -> None:
        """Read every record of the place's partition in [start, high)."""
        consumer = Consumer(self._consuming | {"isolation.level": level.name.lower()})
        consumer.assign([TopicPartition(place.topic, place.partition, start)])
        try:
            while time.monotonic() < until:
                first = consumer.poll(0.1)
                for message in [] if first is None else [first, *consumer.consume(10_000, 0)]:
                    offset = _offset(message, place)
                    if message.error() is None and offset < high:
                        take((_raw(message.key()), _raw(message.value())))
                    if offset >= high - (message.error() is None):
                        return
        finally:
            consumer.close()
        raise KafkaUnreachable(f"Kafka did not hand over the markers of topic {place.topic} in time")


def _offset(message: Message, place: MarkerPlace) -> int:
    """The offset of a record, or the one that the end of the partition has."""
    error = message.error()
    if error is not None and error.code() not in _HARMLESS:
        raise failure(error.code(), error.str(), f"the markers in topic {place.topic} cannot be read")
    offset = message.offset()
    return -1 if offset is None else offset


def _raw(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


_COMMITTED, _UNCOMMITTED = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
_HARMLESS = (KafkaError._PARTITION_EOF, KafkaError.GROUP_AUTHORIZATION_FAILED)  # the group is a name only
_CONNECTION = ("bootstrap.servers", "security.", "sasl.", "ssl.", "client.", "socket.", "broker.")
