"""What is made of a cluster's metadata while a partition has no leader or Kafka does not answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from service.kafka.admin import Cluster, TopicSpec
from service.kafka.errors import KafkaFailure, KafkaUnreachable

NOBODY = -1
"""The leader of a partition that has none."""


def topic(*leaders: int, error: int | None = None) -> Any:
    partitions = {number: SimpleNamespace(leader=leader) for number, leader in enumerate(leaders)}
    return SimpleNamespace(partitions=partitions, error=None if error is None else KafkaError(error))


def cluster(**topics: Any) -> Cluster:
    """A cluster that tells these topics; an exception in place of its metadata is raised."""

    def list_topics(timeout: float) -> Any:
        return SimpleNamespace(topics=topics)

    made = Cluster({"bootstrap.servers": "localhost:1"})
    made._admin = SimpleNamespace(list_topics=list_topics, poll=lambda seconds: 0)  # type: ignore[assignment]
    return made


def test_a_partition_without_a_leader_is_one_of_its_topic() -> None:
    assert cluster(orders=topic(1, NOBODY, 2)).describe(["orders", "none"]) == {"orders": 3}


def test_a_topic_that_cannot_be_used_for_now_is_not_taken_for_one_that_does_not_exist() -> None:
    for_now = cluster(orders=topic(error=KafkaError.LEADER_NOT_AVAILABLE))
    with pytest.raises(KafkaUnreachable, match="cannot be used now"):
        for_now.describe(["orders"])
    gone = cluster(orders=topic(error=KafkaError.UNKNOWN_TOPIC_OR_PART))
    assert gone.describe(["orders"]) == {}


def test_at_the_start_a_topic_without_a_leader_is_waited_for_and_named_alone() -> None:
    found = cluster(orders=topic(1, NOBODY), users=topic(1))
    found._seconds = 0.0
    refused: Any = SimpleNamespace(result=_exists)
    found._admin.create_topics = lambda topics, **_: {each.topic: refused for each in topics}  # type: ignore[method-assign]
    with pytest.raises(KafkaUnreachable, match=r"^this topic cannot be used yet: orders"):
        found.create([TopicSpec(name="orders"), TopicSpec(name="users")])


def _exists(timeout: float) -> None:
    raise KafkaException(KafkaError(KafkaError.TOPIC_ALREADY_EXISTS))


def test_metadata_that_do_not_come_in_time_are_those_of_a_cluster_that_does_not_answer() -> None:
    silent = cluster()

    def list_topics(timeout: float) -> Any:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    silent._admin.list_topics = list_topics  # type: ignore[method-assign]
    with pytest.raises(KafkaFailure) as failed:
        silent.describe(["orders"])
    assert isinstance(failed.value, KafkaUnreachable)
