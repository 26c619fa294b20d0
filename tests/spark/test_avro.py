"""Avro through real Kafka and Spark: a schema that changes under a running job, and a registry that goes away."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from typing import Any

import fastavro

from tests.brokers import Broker, MakeTopic
from tests.schema_registry.server import SmallRegistry, served
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, messages

PIPELINE = """
    CREATE TABLE orders (id BIGINT, who STRING, amount BIGINT) WITH (
      'connector' = 'kafka', 'topic' = '{source}', 'scan.startup.mode' = 'earliest-offset',
      'format' = 'avro-confluent', 'avro-confluent.url' = '{url}',
      'avro-confluent.basic-auth.user-info' = 'ann:hush-hush');
    CREATE TABLE spent (who STRING, amount BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = '{target}',
      'key.format' = 'avro-confluent', 'key.avro-confluent.url' = '{url}',
      'key.avro-confluent.basic-auth.user-info' = 'ann:hush-hush',
      'value.format' = 'avro-confluent', 'value.avro-confluent.url' = '{url}',
      'value.avro-confluent.basic-auth.user-info' = 'ann:hush-hush');
    INSERT INTO spent SELECT who, SUM(amount) FROM orders GROUP BY who;
"""


def order(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "order", "fields": [{"name": n, "type": t} for n, t in fields]}


FIRST = order(("id", "int"), ("who", "string"), ("amount", "int"))
SECOND = order(("who", ["null", "string"]), ("more", "string"), ("amount", "long"), ("id", "long"))
WRONG = order(("id", "int"), ("who", "string"), ("amount", "string"))


def framed(registry: SmallRegistry, schema: dict[str, Any], **values: Any) -> bytes:
    number = registry.add(schema, "orders-value")
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), values)
    return struct.pack(">bI", 0, number) + out.getvalue()


def test_a_schema_may_change_under_a_running_job_and_a_registry_may_go_away(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, target, dead = (make_topic(name, partitions=1) for name in ("source", "target", "dead"))
    with served(SmallRegistry(login="ann:hush-hush")) as registry:
        text = PIPELINE.format(source=source, target=target, url=registry.url)
        running = service(text, kafka.bootstrap, TOPICS__DEAD_LETTER=dead)
        running.start()
        feed(kafka.bootstrap, source, [(0, framed(registry, FIRST, id=i, who="x", amount=i)) for i in range(1, 4)])
        running.until("the first orders count", lambda: spent(registry, kafka, target) == {"x": 6})

        late = [framed(registry, SECOND, id=4, who="y", more="?", amount=10)]
        wrong = framed(registry, WRONG, id=5, who="x", amount="many")
        registry.faults += [(503, {"message": "not now"})] * 40
        feed(kafka.bootstrap, source, [(0, each) for each in (wrong, *late)])
        running.until("the second schema counts", lambda: spent(registry, kafka, target) == {"x": 6, "y": 10})
        assert not registry.faults
        assert "cannot be reached: it answers 503" in running.log
        assert "hush-hush" not in running.log
        running.until("the dead letter is committed", lambda: len(messages(kafka.bootstrap, dead)) == 1)
        running.terminate()

    (letter,) = messages(kafka.bootstrap, dead)
    details = {name: value.decode() for name, value in letter.headers()}
    assert letter.value() == wrong
    assert details["tailrace-reason"] == "schema-mismatch"
    assert details["tailrace-detail"].startswith(f"schema {registry.add(WRONG)}: ")


def spent(registry: SmallRegistry, kafka: Broker, topic: str) -> dict[str, int]:
    """The last row of each key."""
    found: dict[str, int] = {}
    for message in messages(kafka.bootstrap, topic):
        value = message.value()
        number = struct.unpack(">bI", value[:5])[1]
        schema = fastavro.parse_schema(json.loads(registry.schemas[number][0]))
        row: Any = fastavro.schemaless_reader(io.BytesIO(value[5:]), schema)
        found[row["who"]] = row["amount"]
    return found
