"""Ends of topics, asked beside the batches."""

from __future__ import annotations

import queue
from collections.abc import Mapping
from typing import Any, cast

from service.deployment.clusters import Address
from service.deployment.deployment import Deployment
from service.deployment.end_offsets import EndOffsets
from service.kafka.admin import Cluster
from service.kafka.errors import KafkaUnreachable
from service.plan.lowering.lower import compile_job
from service.settings import Settings
from service.sql.pipeline import read

PIPELINE = """
CREATE TABLE orders (k STRING) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json');
CREATE TABLE made (k STRING) WITH ('connector' = 'datagen');
CREATE TABLE o (k STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT k FROM orders UNION ALL SELECT k FROM made;
"""


class Answers:
    """A cluster that answers in turn; an error is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.made = 0

    def connect(self, kafka: Mapping[str, str]) -> Cluster:
        self.made += 1
        return cast(Cluster, self)

    def end_offsets(self, topics: tuple[str, ...]) -> Any:
        assert topics == ("t",)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def assignment() -> Deployment:
    program = compile_job(read(PIPELINE).jobs[0])
    orders = next(s for s in program.sources if s.table.name == "orders")
    return Deployment(
        program=program,
        settings=Settings(),
        source_addresses={orders.id: Address(librdkafka={}, java={})},
        output_addresses={},
        side=None,
        bounded=frozenset(),
        partitions=1,
    )


def test_the_ends_of_kafka_tables_are_reported_repeatedly_and_an_unreachable_broker_is_waited_for():
    reported: queue.Queue[tuple[str, Any]] = queue.Queue()
    cluster = Answers({"t": {0: 5}}, KafkaUnreachable("away"), {"t": {0: 9}})
    ends = EndOffsets(
        assignment(), lambda table, offsets: reported.put((table, offsets)), every=0.001, connect=cluster.connect
    )
    try:
        assert [reported.get(timeout=10) for _ in range(2)] == [("orders", {"t": {0: 5}}), ("orders", {"t": {0: 9}})]
    finally:
        ends.close()
    assert cluster.made == 1
