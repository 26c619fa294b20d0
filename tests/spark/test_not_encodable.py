"""Rows that their sink's format cannot hold, through Kafka and Spark: dead letters, and the job goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from service.host.machine import free_ports
from tests.brokers import Broker, MakeTopic
from tests.schema_registry.server import SmallRegistry, served
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, messages

SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "who", "type": "string"},
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["OPEN", "PAID"]}},
        {"name": "n", "type": "int"},
    ],
}
PIPELINE = """
    SET 'pipeline.name' = 'orders';
    CREATE TABLE orders (who STRING, status STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{source}',
      'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
    CREATE TABLE latest (who STRING, status STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = '{target}', 'key.format' = 'raw',
      'value.format' = 'avro-confluent', 'value.avro-confluent.url' = '{url}',
      'value.avro-confluent.schema' = '{schema}');
    INSERT INTO latest SELECT who, MAX(status), SUM(n) FROM orders GROUP BY who;
"""


def test_a_row_that_the_schema_cannot_hold_is_a_dead_letter_and_the_others_are_written(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, target, dead = (make_topic(name, partitions=1) for name in ("source", "target", "dead"))
    with served(SmallRegistry()) as registry:
        text = PIPELINE.format(source=source, target=target, url=registry.url, schema=json.dumps(SCHEMA))
        port = str(free_ports(1)[0])
        running = service(text, kafka.bootstrap, TOPICS__DEAD_LETTER=dead, HTTP__PORT=port)
        running.start()

        def order(*orders: tuple[str, str | None, int]) -> None:
            feed(kafka.bootstrap, source, [(0, {"who": w, "status": s, "n": n}) for w, s, n in orders])

        order(("ann", "OPEN", 1), ("bob", "GONE", 2), ("carl", "PAID", 3), ("dora", None, 4), ("eve", "OPEN", 2**31))
        running.until("those that can be written are", lambda: latest(kafka, target) == {"ann": 1, "carl": 3})
        order(("ann", "ZAP", 1))
        running.until("an update to one that cannot be is a delete", lambda: latest(kafka, target) == {"carl": 3})
        order(("bob", "PAID", 5))
        running.until("an update from one is an insert", lambda: latest(kafka, target) == {"bob": 7, "carl": 3})
        running.until("they are counted", lambda: counted(running) == 5)
        assert "batch failed" not in running.log
        running.terminate()
        assert running.wait() == 0

    letters = messages(kafka.bootstrap, dead)
    (number,) = registry.subjects[f"{target}-value"]
    status = "which is no symbol of the enum Status"
    reasons = {
        (row["who"], row["status"], row["_weight"]): dict(letter.headers())["tailrace-detail"].decode()
        for letter in letters
        for row in [json.loads(letter.value())]
    }
    assert reasons == {
        ("bob", "GONE", 1): f'schema {number}: column "status" is "GONE", {status}',
        ("dora", None, 1): f'schema {number}: column "status" is NULL, but Status in its schema has no null',
        ("eve", "OPEN", 1): f'schema {number}: column "n" is 2147483648, which does not fit in the 32 bits of an int',
        ("ann", "ZAP", 1): f'schema {number}: column "status" is "ZAP", {status}',
        ("bob", "GONE", -1): f'schema {number}: column "status" is "GONE", {status}',
    }
    assert len(letters) == len(reasons)
    assert {dict(letter.headers())["tailrace-reason"] for letter in letters} == {b"not-encodable"}
    assert {dict(letter.headers())["tailrace-operator"] for letter in letters} == {b"sink latest"}


def latest(kafka: Broker, topic: str) -> dict[str, int]:
    """The last number of each key: a small one, in the last byte, twice."""
    found: dict[str, int] = {}
    for message in messages(kafka.bootstrap, topic):
        key = message.key().decode()
        if message.value() is None:
            found.pop(key, None)
        else:
            found[key] = message.value()[-1] // 2
    return found


def counted(running: ServiceProcess) -> float:
    """Dead letters of this reason, as the metrics count them."""
    found = re.findall(
        r'tailrace_dead_letter_records_total\{[^}]*reason="not-encodable"[^}]*\} (\S+)', running.ask("/metrics")[1]
    )
    return sum(map(float, found))
