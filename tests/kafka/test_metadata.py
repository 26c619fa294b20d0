"""What is made of a cluster's metadata while a partition has no leader or Kafka does not answer."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Node, TopicPartitionInfo, Uuid
from confluent_kafka.admin import TopicDescription

from service.kafka.admin import Cluster, TopicSpec
from service.kafka.errors import KafkaUnreachable

NOBODY: Any = None
"""The leader of a partition that has none."""

SOMEBODY = Node(1, "localhost", 1)


def topic(*leaders: Any) -> TopicDescription:
    partitions = [TopicPartitionInfo(number, leader, [], []) for number, leader in enumerate(leaders)]
    return TopicDescription("", Uuid(0, 0), False, partitions)


def cluster(**topics: Any) -> Cluster:
    """A cluster with these topics, of which a number is the code of an error. It is not asked for all of its topics."""

    def describe_topics(asked: Any, request_timeout: float) -> dict[str, Future[Any]]:
        return {name: answer(topics.get(name, KafkaError.UNKNOWN_TOPIC_OR_PART)) for name in asked.topic_names}

    made = Cluster({"bootstrap.servers": "localhost:1"}, seconds=0.3)
    made._admin = SimpleNamespace(describe_topics=describe_topics, poll=lambda seconds: 0)  # type: ignore[assignment]
    return made


def answer(value: Any) -> Future[Any]:
    future = Future[Any]()
    if isinstance(value, int):
        future.set_exception(KafkaException(KafkaError(value)))
    elif value is not None:
        future.set_result(value)
    return future


def test_a_partition_without_a_leader_is_one_of_its_topic() -> None:
    assert cluster(orders=topic(SOMEBODY, NOBODY, SOMEBODY)).describe(["orders", "none"]) == {"orders": 3}


def test_a_topic_that_cannot_be_used_for_now_is_not_taken_for_one_that_does_not_exist() -> None:
    for code in (KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN):
        with pytest.raises(KafkaUnreachable, match='the topic "orders" cannot be used now'):
            cluster(orders=code).describe(["orders"])
    for code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED):
        assert cluster(orders=code).describe(["orders"]) == {}


def test_at_the_start_a_topic_without_a_leader_is_waited_for_and_named_alone() -> None:
    found = cluster(orders=topic(SOMEBODY, NOBODY), users=topic(SOMEBODY))
    refused = answer(KafkaError.TOPIC_ALREADY_EXISTS)
    found._admin.create_topics = lambda topics, **_: {each.topic: refused for each in topics}  # type: ignore[method-assign]
    with pytest.raises(KafkaUnreachable, match=r"^this topic cannot be used yet: orders"):
        found.create([TopicSpec(name="orders"), TopicSpec(name="users")])


def test_at_the_start_a_topic_that_cannot_be_used_for_now_is_waited_for() -> None:
    found = cluster(orders=KafkaError.LEADER_NOT_AVAILABLE)
    made: Future[Any] = Future()
    made.set_result(None)

    def create_topics(topics: Any, **_: Any) -> dict[str, Future[Any]]:
        answers = iter([KafkaError.LEADER_NOT_AVAILABLE, topic(SOMEBODY)])
        found._admin.describe_topics = lambda asked, **_: {"orders": answer(next(answers))}  # type: ignore[method-assign]
        return {each.topic: made for each in topics}

    found._admin.create_topics = create_topics  # type: ignore[method-assign, assignment]
    assert found.create([TopicSpec(name="orders")]) == ("orders",)


@pytest.mark.parametrize("said", [None, KafkaError._TRANSPORT, KafkaError._TIMED_OUT])
def test_metadata_that_do_not_come_in_time_are_those_of_a_cluster_that_does_not_answer(said: int | None) -> None:
    silent = cluster()
    silent._admin.describe_topics = lambda asked, **_: {"orders": answer(said)}  # type: ignore[method-assign]
    with pytest.raises(KafkaUnreachable, match="Kafka at localhost:1 cannot be reached"):
        silent.describe(["orders"])
