"""The warning at the start of topics that Kafka may compact before an interrupted batch is read again."""

from __future__ import annotations

import pytest

from service.deployment import planning
from service.deployment.clusters import Address
from service.deployment.deployment import Deployment
from service.kafka import admin
from service.plan.lowering.lower import compile_job
from service.settings import Settings
from service.sql.pipeline import read

PIPELINE = """
CREATE TABLE users (id BIGINT, city STRING, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'upsert-kafka', 'topic' = 'users', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE orders (id BIGINT, city STRING) WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');
CREATE TABLE o (city STRING) WITH ('connector' = 'print');
INSERT INTO o SELECT u.city FROM users u JOIN orders r ON u.id = r.id;
"""
HOUR, DAY = 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("lags", "warned"),
    [
        ({"users": 0}, ("users",)),
        ({"users": HOUR, "orders": HOUR}, ("orders", "users")),
        ({"users": DAY}, ()),
        ({}, ()),
    ],
)
def test_a_source_that_is_compacted_within_a_day_is_warned_of(
    lags: dict[str, int], warned: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin.Cluster, "compacts_within", lambda self, topic, ms: topic in lags and lags[topic] < ms)
    program = compile_job(read(PIPELINE).jobs[0])
    planned = Deployment(
        program=program,
        settings=Settings(),
        source_addresses={
            s.id: Address(librdkafka={"bootstrap.servers": "localhost:1"}, java={}) for s in program.sources
        },
        output_addresses={},
        side=None,
        bounded=frozenset(),
        partitions=1,
    )
    assert planning._compacted(planned) == warned
