"""Schemas are registered before a job starts, and what is wrong with them ends the start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from service.deployment.schemas import agree_on_schemas
from service.kafka.errors import KafkaConfigError, KafkaUnreachable
from service.plan.lowering.lower import compile_job
from service.plan.program import Program
from service.schema_registry import client
from service.sql.pipeline import read
from tests.schema_registry.server import SmallRegistry, served

PIPELINE = """
CREATE TABLE numbers (a BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1');
CREATE TABLE changes (a BIGINT, n BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'changes',
  'key.format' = 'json-registry', 'key.json-registry.url' = '{url}',
  'value.format' = 'avro-confluent', 'value.avro-confluent.url' = '{url}'{more});
INSERT INTO changes SELECT a, COUNT(*) FROM numbers GROUP BY a;
"""


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallRegistry]:
    monkeypatch.setattr(client, "_PAUSE", 0.001)
    with served() as small:
        yield small


def program(url: str, **options: str) -> Program:
    more = "".join(f", 'value.avro-confluent.{name}' = '{value}'" for name, value in options.items())
    (job,) = read(PIPELINE.format(url=url, more=more)).jobs
    return compile_job(job)


def test_schemas_of_keys_and_values_are_registered(registry: SmallRegistry):
    agree_on_schemas(program(registry.url))
    assert {subject: registry.schemas[ids[0]][1] for subject, ids in registry.subjects.items()} == {
        "changes-key": "JSON",
        "changes-value": "AVRO",
    }


def test_what_is_wrong_is_reported_for_all_tables(registry: SmallRegistry):
    registry.incompatible.add("changes-value")
    with pytest.raises(KafkaConfigError, match=r'(?s)table changes: .*not compatible with subject "changes-value"'):
        agree_on_schemas(program(registry.url))
    schema = '{"type": "record", "name": "r", "fields": [{"name": "b", "type": "long"}]}'
    with pytest.raises(KafkaConfigError, match=r'the schema has the field "b", for which there is no column'):
        agree_on_schemas(program(registry.url, schema=schema))


def test_a_message_is_registered_and_checked(registry: SmallRegistry):
    text = PIPELINE.replace("avro-confluent", "protobuf-confluent")

    def made(more: str) -> Program:
        (job,) = read(text.format(url=registry.url, more=more)).jobs
        return compile_job(job)

    agree_on_schemas(made(""))
    (number,) = registry.subjects["changes-value"]
    assert registry.schemas[number][1] == "PROTOBUF"
    schema = 'syntax = "proto3"; message M { int64 a = 1; string n = 2; }'
    with pytest.raises(KafkaConfigError, match='table changes: the field "n", string, cannot take a column of int64'):
        agree_on_schemas(made(f", 'value.protobuf-confluent.schema' = '{schema}'"))


def test_a_registry_that_is_away_is_waited_for():
    with served() as small:
        gone = small.url
    with pytest.raises(KafkaUnreachable, match=r"table changes: the schema registry at .* cannot be reached"):
        agree_on_schemas(program(gone))


def test_another_registry_or_login_is_no_other_query():
    there = program("http://one:8081")
    here = program("https://two:8081", **{"basic-auth.user-info": "ann:hush"})
    assert here.fingerprint == there.fingerprint
    assert "hush" not in repr(here)
    assert replace(here) == here
