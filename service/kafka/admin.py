"""Requests to Kafka about topics and offsets, before, between and after batches."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Literal

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka import KafkaError as Code
from confluent_kafka.admin import (
    AdminClient,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from service.kafka.error_codes import Answer, Troubles, failure, failure_of, patiently
from service.kafka.errors import KafkaConfigError, KafkaUnreachable
from service.kafka.writer import marker

RECORD_BYTES = 1_000_000
"""The largest record that a producer of librdkafka sends and a broker accepts by default."""

_REFRESH = {"topic.metadata.refresh.interval.ms": "3000"}
"""How soon a client learns of another controller, which is asked for topics: a killed one is named for some seconds."""

_LOOK_EVERY = 0.25
"""Seconds between two looks at the connection errors while an answer is awaited."""

Offsets = dict[str, dict[int, int]]
"""Offsets by topic and partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """A topic to be created. -1 leaves the number to the brokers' defaults."""

    name: str
    partitions: int = -1
    replication: int = -1
    config: Mapping[str, str] = field(default_factory=dict)


def marker_topic(name: str, replication: int = -1) -> TopicSpec:
    """Return the topic of the exactly-once markers: compacted, so that a marker outlives any pause."""
    return TopicSpec(name=name, partitions=marker.PARTITIONS, replication=replication, config=marker.TOPIC_CONFIG)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPosition:
    """The position at which a source begins that has no checkpoint yet: Flink's scan.startup.mode and what belongs to
    it.

    group-offsets: what `group` has committed; where it has not, `reset` decides (none = an error, as in Flink).
    timestamp: the first record at or after `timestamp_ms`, the end where there is none.
    specific-offsets: `offsets` by partition; partitions that are not named begin at the group's offset, else at the
    earliest.
    """

    mode: Literal["earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets"]
    group: str | None = None
    reset: Literal["earliest", "latest", "none"] = "none"
    timestamp_ms: int = 0
    offsets: Mapping[int, int] = field(default_factory=dict)


class Cluster:
    """A Kafka cluster. Each request waits `seconds` for its answer; a call raises a KafkaFailure."""

    def __init__(self, kafka: Mapping[str, str], seconds: float = 15.0) -> None:
        self._address = kafka.get("bootstrap.servers", "")
        self._seconds = seconds
        self._troubles = Troubles()
        try:
            self._admin = AdminClient({**_REFRESH, **kafka, "error_cb": self._troubles, "log_level": 0})  # type: ignore[dict-item]
        except KafkaException as refused:
            raise failure_of(refused, "the settings of the Kafka connection are invalid") from refused

    def identifier(self) -> str:
        """Return the id of the cluster, the same at each of its addresses."""
        described = self._patiently(
            lambda: self._result(self._admin.describe_cluster(request_timeout=self._seconds)), self._cannot_be_reached()
        )
        return str(described.cluster_id)

    def describe(self, topics: Iterable[str]) -> dict[str, int]:
        """Return the number of partitions of each of these topics that exists and that we may see, whether or not each
        has a leader now."""
        found = {}
        for name, each in self._answers(topics).items():
            if isinstance(each, TopicDescription):
                found[name] = len(each.partitions)
            elif failure(each.code(), each.str(), "").retriable:
                raise KafkaUnreachable(f'the topic "{name}" cannot be used now', each.str())
        return found

    def create(self, topics: Iterable[TopicSpec]) -> tuple[str, ...]:
        """Create the missing topics and wait until they can be used. Return their names."""
        asked = {topic.name: topic for topic in topics}
        present = self._usable(asked)
        wanted = {name: topic for name, topic in asked.items() if name not in present}
        if not wanted:
            return ()
        news = [
            NewTopic(each.name, each.partitions, each.replication, config=dict(each.config)) for each in wanted.values()
        ]
        made = []
        for name, result in self._admin.create_topics(news, request_timeout=self._seconds).items():
            try:
                self._result(result)
                made.append(name)
            except KafkaException as refused:
                if refused.args[0].code() != Code.TOPIC_ALREADY_EXISTS:
                    raise failure_of(refused, f'the topic "{name}" cannot be created') from refused
            except TimeoutError as late:
                raise failure_of(late, f'the topic "{name}" cannot be created') from late
        until = time.monotonic() + self._seconds
        while awaited := sorted(wanted.keys() - self._usable(wanted)):
            if time.monotonic() > until:
                raise KafkaUnreachable(
                    f"{'these topics' if len(awaited) > 1 else 'this topic'} cannot be used yet: {', '.join(awaited)}",
                    "a partition has no leader, or Kafka does not list it yet",
                )
            time.sleep(0.05)
        return tuple(made)

    def check_markers(self, topic: str) -> None:
        """Raise unless `topic` keeps markers forever."""
        partitions = self.describe([topic]).get(topic)
        if partitions is None:
            raise KafkaConfigError(
                f'the marker topic "{topic}" does not exist', None, "create it, or set TAILRACE_TOPICS__CREATE=true"
            )
        config = self._config(topic, f'the marker topic "{topic}" cannot be described')
        policy = config["cleanup.policy"].value
        if policy != "compact" or partitions < marker.PARTITIONS:
            raise KafkaConfigError(
                f'the marker topic "{topic}" cannot hold the exactly-once markers',
                f"it has {partitions} partitions and cleanup.policy {policy}",
                f"it needs at least {marker.PARTITIONS} partitions and cleanup.policy compact",
            )

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the ids of topics, if brokers have such: a topic that is deleted and created again has another."""
        ids = {name: str(each.topic_id) for name, each in self._described(topics).items()}
        return {name: each for name, each in ids.items() if each.strip("A=")}  # zeros, in base64, stand for no id

    def matching(self, pattern: re.Pattern[str]) -> tuple[str, ...]:
        """Return the topics whose whole names match, in order; Kafka's internal ones match nothing."""
        names = [name for name in self._all_topics() if pattern.fullmatch(name)]
        described = self._described(names) if names else {}
        return tuple(sorted(name for name, each in described.items() if not each.is_internal))

    def _described(self, topics: Iterable[str]) -> Mapping[str, TopicDescription]:
        names = list(dict.fromkeys(topics))
        return self._patiently(
            lambda: {name: self._result(each) for name, each in self._asked_for(names).items()},
            f"the topics {', '.join(names)} cannot be described",
        )

    def _answers(self, topics: Iterable[str]) -> Mapping[str, TopicDescription | Code]:
        """Kafka's description of each of these topics, or its error."""
        names = list(dict.fromkeys(topics))

        def ask() -> dict[str, TopicDescription | Code]:
            found: dict[str, TopicDescription | Code] = {}
            for name, each in self._asked_for(names).items():
                try:
                    found[name] = self._result(each)
                except KafkaException as failed:
                    if failed.args[0].code() < Code.UNKNOWN:  # librdkafka's own: there is no answer
                        raise
                    found[name] = failed.args[0]
            return found

        return self._patiently(ask, self._cannot_be_reached()) if names else {}

    def _asked_for(self, names: list[str]) -> Mapping[str, Future[TopicDescription]]:
        # By name: what a cluster has in all may be megabytes, and a running job asks every few seconds.
        return self._admin.describe_topics(TopicCollection(names), request_timeout=self._seconds)

    def _usable(self, topics: Iterable[str]) -> set[str]:
        """Those of the topics of which each partition has a leader."""
        return {
            name
            for name, each in self._answers(topics).items()
            if isinstance(each, TopicDescription) and all(place.leader is not None for place in each.partitions)
        }

    def compacts_within(self, topic: str, milliseconds: int) -> bool:
        """Return whether Kafka may compact `topic` within `milliseconds` of a record; false if we may not read its
        settings."""
        try:
            config = self._config(topic, f'the topic "{topic}" cannot be described')
        except KafkaConfigError:
            return False
        compacts = "compact" in str(config["cleanup.policy"].value)
        return compacts and int(config["min.compaction.lag.ms"].value or 0) < milliseconds

    def largest_record(self, topic: str) -> int | None:
        """Return the bytes of the largest batch of records that `topic` accepts, compressed; None if we may not read
        its settings."""
        try:
            limit = self._config(topic, f'the topic "{topic}" cannot be described')["max.message.bytes"].value
        except KafkaConfigError:
            return None
        return None if limit is None else int(limit)

    def _config(self, topic: str, cannot: str) -> Mapping[str, ConfigEntry]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        return self._patiently(lambda: self._result(self._admin.describe_configs([resource])[resource]), cannot)

    def end_offsets(self, topics: Iterable[str]) -> Offsets:
        """Return the offset after the last record that a read_committed reader may see."""
        return self._at(self._partitions(topics), OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def start_offsets(self, topics: Iterable[str], startup: StartPosition) -> Offsets:
        """Return the offsets at which to begin reading."""
        partitions = self._partitions(topics)
        match startup.mode:
            case "earliest-offset":
                return self._at(partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
            case "latest-offset":
                return self._at(partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]
            case "timestamp":
                return self._at_time(partitions, startup.timestamp_ms)
            case "group-offsets":
                return self._of_group(partitions, startup.group, startup.reset)
            case "specific-offsets":
                return self._specific(partitions, startup)

    def commit_group_offsets(self, group: str, offsets: Offsets) -> None:
        """Commit how far `group` has read, for lag tools: nothing is ever read from there again."""
        places = [TopicPartition(topic, p, o) for topic, each in offsets.items() for p, o in each.items()]
        if not places:
            return

        def commit() -> None:
            answers = self._admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)])
            for place in self._result(answers[group]).topic_partitions or ():
                if place.error is not None:
                    raise KafkaException(place.error)

        self._patiently(commit, f'the offsets of group "{group}" cannot be committed')

    def group_offsets(self, group: str, topics: Iterable[str]) -> Offsets:
        """Return the committed offsets of `group`, for partitions that have one."""
        return self._committed(group, self._partitions(topics))

    def newest_time(self, topics: Iterable[str]) -> int | None:
        """Return the newest time of a record in `topics`, in milliseconds since the epoch, None where there is none.
        Of the end of a transaction it is the broker's."""
        partitions, spec = self._partitions(topics), OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]

        def ask() -> list[int]:
            asked = dict.fromkeys(partitions, spec)
            answers = self._admin.list_offsets(asked, request_timeout=self._seconds)
            return [self._result(each).timestamp for each in answers.values()]

        times = self._patiently(ask, f"the times of {', '.join(topics)} cannot be read") if partitions else []
        return max((each for each in times if each >= 0), default=None)

    def _all_topics(self) -> Iterable[str]:
        self.identifier()  # a refused login is told soon here; `list_topics` would wait for its whole time-out
        self._troubles.forget()
        try:
            return self._admin.list_topics(timeout=self._seconds).topics
        except KafkaException as failed:
            self._admin.poll(0)
            raise self._troubles.explain(failed, self._cannot_be_reached()) from failed

    def _cannot_be_reached(self) -> str:
        return f"Kafka at {self._address} cannot be reached"

    def _partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        topics = tuple(topics)
        present = self.describe(topics)
        missing = [topic for topic in topics if topic not in present]
        if missing:
            raise KafkaConfigError(
                f"the topic{'s' if len(missing) > 1 else ''} {', '.join(missing)} cannot be found",
                f"asked at {self._address}",
                "create missing topics, or check the names and the permission to DESCRIBE",
            )
        return [TopicPartition(topic, partition) for topic in topics for partition in range(present[topic])]

    def _at(self, partitions: list[TopicPartition], spec: OffsetSpec) -> Offsets:
        if not partitions:
            return {}

        def ask() -> Offsets:
            level, seconds = IsolationLevel.READ_COMMITTED, self._seconds
            asked = dict.fromkeys(partitions, spec)
            answers = self._admin.list_offsets(asked, isolation_level=level, request_timeout=seconds)
            offsets: Offsets = {}
            for place in partitions:
                offsets.setdefault(place.topic, {})[place.partition] = self._result(answers[place]).offset
            return offsets

        topics = ", ".join(sorted({place.topic for place in partitions}))
        return self._patiently(ask, f"the offsets of {topics} cannot be read")

    def _at_time(self, partitions: list[TopicPartition], milliseconds: int) -> Offsets:
        found = self._at(partitions, OffsetSpec.for_timestamp(milliseconds))
        ends = self._at(partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]
        return {t: {p: o if o >= 0 else ends[t][p] for p, o in each.items()} for t, each in found.items()}

    def _of_group(self, partitions: list[TopicPartition], group: str | None, reset: str) -> Offsets:
        if group is None:
            raise KafkaConfigError(
                "scan.startup.mode group-offsets needs a group", None, "set 'properties.group.id' or another mode"
            )
        committed = self._committed(group, partitions)
        without = [place for place in partitions if place.partition not in committed.get(place.topic, {})]
        if without and reset == "none":
            raise KafkaConfigError(
                f'group "{group}" has committed no offset for {len(without)} of {len(partitions)} partitions',
                f"the first is partition {without[0].partition} of topic {without[0].topic}",
                "set 'properties.auto.offset.reset' to 'earliest' or 'latest', or choose another 'scan.startup.mode'",
            )
        spec = OffsetSpec.earliest() if reset == "earliest" else OffsetSpec.latest()  # type: ignore[no-untyped-call]
        return _merged(self._at(without, spec), committed)

    def _specific(self, partitions: list[TopicPartition], startup: StartPosition) -> Offsets:
        named = [place for place in partitions if place.partition in startup.offsets]
        others = [place for place in partitions if place.partition not in startup.offsets]
        fallback = self._at(others, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        committed = {} if startup.group is None or not others else self._committed(startup.group, others)
        chosen: Offsets = {}
        for place in named:
            chosen.setdefault(place.topic, {})[place.partition] = startup.offsets[place.partition]
        return _merged(_merged(fallback, committed), chosen)

    def _committed(self, group: str, partitions: list[TopicPartition]) -> Offsets:
        def ask() -> Offsets:
            asked = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group, partitions)])
            offsets: Offsets = {}
            for place in self._result(asked[group]).topic_partitions or ():
                if place.offset >= 0:
                    offsets.setdefault(place.topic, {})[place.partition] = place.offset
            return offsets

        return self._patiently(ask, f'the offsets of group "{group}" cannot be read')

    def _patiently(self, ask: Callable[[], Answer], cannot: str) -> Answer:
        self._troubles.forget()
        try:
            return patiently(ask, cannot, self._seconds)
        except KafkaUnreachable as failed:
            self._admin.poll(0)
            raise self._troubles.behind(failed) from failed

    def _result(self, future: Future[Answer]) -> Answer:
        """The answer to a request. Raises KafkaException as soon as it is known that brokers refuse this client."""
        until = time.monotonic() + self._seconds
        while not wait([future], _LOOK_EVERY).done and time.monotonic() < until:
            self._admin.poll(0)  # reports connection errors
            if (refusal := self._troubles.refusal()) is not None:
                raise KafkaException(refusal)
        return future.result(timeout=0)


def _merged(base: Offsets, over: Offsets) -> Offsets:
    topics = base.keys() | over.keys()
    return {topic: dict(sorted((base.get(topic, {}) | over.get(topic, {})).items())) for topic in sorted(topics)}
