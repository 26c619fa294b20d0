"""A record whose timestamp Spark cannot hold is named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from service.deployment.deployment import Deployment
from service.deployment.unheld_times import LATEST, unheld_time
from service.kafka.errors import KafkaUnreachable


def job(*tables: str) -> Deployment:
    sources = [
        SimpleNamespace(id=i, table=SimpleNamespace(name=name, connector=SimpleNamespace(topics=(f"{name}-topic",))))
        for i, name in enumerate(tables)
    ]
    addresses = {i: SimpleNamespace(librdkafka={}) for i in range(len(tables))}
    return cast(Deployment, SimpleNamespace(program=SimpleNamespace(sources=sources), source_addresses=addresses))


class _Kafka:
    """A Kafka with such a record at offset 7 of partition 3 of one topic."""

    def __init__(self, topic: str = "b-topic") -> None:
        self._topic = topic

    def first_later(self, topics: tuple[str, ...], milliseconds: int) -> dict[str, dict[int, int]]:
        assert milliseconds == LATEST
        return {self._topic: {3: 7, 5: 1}} if self._topic in topics else {}


def told(kafka: Any) -> str | None:
    return unheld_time(job("a", "b"), lambda _: kafka)


def test_table_topic_partition_and_offset_are_named():
    said = told(_Kafka())
    assert said is not None
    assert said.startswith("table b: the record at offset 7 of partition 3 of topic b-topic has a timestamp that Spark")
    assert "hint:" in said


class _Away:
    def first_later(self, *_: Any) -> Any:
        raise KafkaUnreachable("no broker answers")


@pytest.mark.parametrize("cluster", [_Kafka("other"), _Away()], ids=["no such record", "nobody to ask"])
def test_where_there_is_no_such_record_nothing_is_said(cluster: Any):
    assert told(cluster) is None
