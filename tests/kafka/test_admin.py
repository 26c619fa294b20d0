"""Topics and offsets of a real broker."""

from __future__ import annotations

import re
import time
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from service.kafka.admin import Cluster, StartPosition, TopicSpec
from service.kafka.errors import KafkaConfigError, KafkaUnreachable
from tests.brokers import Broker


@pytest.fixture
def cluster(kafka: Broker) -> Cluster:
    return Cluster({"bootstrap.servers": kafka.bootstrap})


@pytest.fixture
def topic(kafka: Broker, cluster: Cluster) -> str:
    """Three partitions: five records with the times 1000, 1002, ... and 1001, 1003, ..., and none."""
    name = f"in-{uuid4().hex[:8]}"
    cluster.create([TopicSpec(name=name, partitions=3)])
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for row in range(10):
        producer.produce(name, b"x", partition=row % 2, timestamp=1000 + row)
    producer.flush(30)
    return name


def test_only_missing_topics_are_made(cluster: Cluster):
    names = [f"t-{uuid4().hex[:8]}" for _ in range(2)]
    assert cluster.create([TopicSpec(name=names[0], partitions=1)]) == (names[0],)
    assert cluster.create([TopicSpec(name=name, partitions=4) for name in names]) == (names[1],)
    assert cluster.describe([*names, "absent"]) == {names[0]: 1, names[1]: 4}


def test_a_pattern_matches_whole_names_of_topics_that_are_not_internal(cluster: Cluster):
    name = f"m-{uuid4().hex[:8]}"
    cluster.create([TopicSpec(name=f"{name}{end}", partitions=1) for end in ("-b", "-a", "-1", "-a-more")])
    assert cluster.matching(re.compile(f"{name}-[a-z]")) == (f"{name}-a", f"{name}-b")
    assert cluster.matching(re.compile("__.*")) == ()


def test_ends_are_after_the_last_record(cluster: Cluster, topic: str):
    assert cluster.end_offsets([topic]) == {topic: {0: 5, 1: 5, 2: 0}}


def test_the_newest_time_is_that_of_all_partitions(cluster: Cluster, topic: str):
    other = f"out-{uuid4().hex[:8]}"
    cluster.create([TopicSpec(name=other, partitions=2)])
    assert cluster.newest_time([topic]) == 1009
    assert cluster.newest_time([topic, other]) == 1009
    assert cluster.newest_time([other]) is None


def test_the_end_of_a_transaction_has_the_time_of_the_broker(kafka: Broker, cluster: Cluster, topic: str):
    before = time.time() * 1000
    writer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic})
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce(topic, b"x", partition=2, timestamp=1)
    writer.commit_transaction(30)
    until = time.monotonic() + 60
    while cluster.newest_time([topic]) == 1009 and time.monotonic() < until:
        time.sleep(0.05)  # its end is written a moment after it was promised
    newest = cluster.newest_time([topic])
    assert newest is not None
    assert abs(newest - before) < 600_000, "the broker is on this machine"


STARTS = {
    "earliest": (StartPosition(mode="earliest-offset"), {0: 0, 1: 0, 2: 0}),
    "latest": (StartPosition(mode="latest-offset"), {0: 5, 1: 5, 2: 0}),
    "by time": (StartPosition(mode="timestamp", timestamp_ms=1005), {0: 3, 1: 2, 2: 0}),
    "after all times": (StartPosition(mode="timestamp", timestamp_ms=9999), {0: 5, 1: 5, 2: 0}),
    "group, else latest": (StartPosition(mode="group-offsets", group="g", reset="latest"), {0: 3, 1: 5, 2: 0}),
    "group, else earliest": (StartPosition(mode="group-offsets", group="g", reset="earliest"), {0: 3, 1: 0, 2: 0}),
    "as given, else group, else earliest": (
        StartPosition(mode="specific-offsets", group="g", offsets={1: 4}),
        {0: 3, 1: 4, 2: 0},
    ),
    "as given, else earliest": (StartPosition(mode="specific-offsets", offsets={1: 4}), {0: 0, 1: 4, 2: 0}),
}


@pytest.mark.parametrize("name", STARTS)
def test_a_source_begins_where_its_startup_mode_says(cluster: Cluster, topic: str, name: str):
    startup, expected = STARTS[name]
    cluster.commit_group_offsets("g", {topic: {0: 3}})
    assert cluster.start_offsets([topic], startup) == {topic: expected}


@pytest.mark.parametrize(
    ("startup", "message"),
    [
        (StartPosition(mode="group-offsets"), "needs a group"),
        (StartPosition(mode="group-offsets", group="unheard-of"), "has committed no offset for 3 of 3"),
    ],
)
def test_group_offsets_without_a_group_or_a_reset_are_refused(
    cluster: Cluster, topic: str, startup: StartPosition, message: str
):
    with pytest.raises(KafkaConfigError, match=message) as refused:
        cluster.start_offsets([topic], startup)
    assert refused.value.hint


def test_committed_offsets_can_be_read_back(cluster: Cluster, topic: str):
    cluster.commit_group_offsets(topic, {topic: {0: 3, 1: 1}})
    cluster.commit_group_offsets(topic, {topic: {0: 4}})
    assert cluster.group_offsets(topic, [topic]) == {topic: {0: 4, 1: 1}}


def test_missing_topics_are_named(cluster: Cluster, topic: str):
    with pytest.raises(KafkaConfigError, match="absent-1, absent-2"):
        cluster.end_offsets(["absent-1", topic, "absent-2"])


def test_a_topic_that_cannot_be_made_says_why(cluster: Cluster):
    with pytest.raises(KafkaConfigError, match="cannot be created"):
        cluster.create([TopicSpec(name="no spaces", partitions=1)])
    with pytest.raises(KafkaConfigError, match="cannot be created"):
        cluster.create([TopicSpec(name=f"t-{uuid4().hex}", partitions=1, replication=5)])


def test_a_broker_that_is_not_there_is_unreachable():
    with pytest.raises(KafkaUnreachable, match=r"127\.0\.0\.1:1 cannot be reached") as away:
        Cluster({"bootstrap.servers": "127.0.0.1:1"}, seconds=2).identifier()
    assert "Connection refused" in (away.value.detail or "")


def test_a_property_that_does_not_exist_is_refused():
    with pytest.raises(KafkaConfigError, match="settings of the Kafka connection"):
        Cluster({"bootstrap.servers": "127.0.0.1:1", "no.such.thing": "1"})


def test_each_topic_has_an_id_of_its_own_that_stays(cluster: Cluster):
    names = [f"t-{uuid4().hex[:8]}" for _ in range(2)]
    cluster.create([TopicSpec(name=name, partitions=1) for name in names])
    ids = cluster.topic_ids(names)
    assert len(set(ids.values())) == len(names) == len(ids)
    assert cluster.topic_ids(names) == ids


def test_a_topic_that_may_be_compacted_soon_is_known(cluster: Cluster):
    names = [f"t-{uuid4().hex[:8]}" for _ in range(3)]
    compact = {"cleanup.policy": "compact"}
    configs = [{}, compact, compact | {"min.compaction.lag.ms": "1000"}]
    cluster.create([TopicSpec(name=n, partitions=1, config=c) for n, c in zip(names, configs, strict=True)])
    assert [cluster.compacts_within(name, 1000) for name in names] == [False, True, False]
