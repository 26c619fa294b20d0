"""kill -9 in streams that are hard to do again: chance, large records, a hot key, a source that Kafka compacts.

TAILRACE_TEST_KILLS sets the number of kills, a tenth of it here (2; `make chaos` does 20), TAILRACE_TEST_SEED the
moments.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from service.kafka.admin import Cluster, TopicSpec
from service.kafka.local_broker.broker import EmbeddedKafka
from tests.chaos.test_kills import KILLS, ROWS_PER_KILL, SEED, Chaos
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import read, upserted

PIPELINE = """
    SET 'pipeline.name' = 'streams';
    CREATE TABLE orders (id BIGINT, k STRING, pad STRING) WITH ('connector' = 'kafka', 'topic' = 'orders',
      'format' = 'json', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'specific-offsets',
      'scan.bounded.specific-offsets' = 'partition:0,offset:{half};partition:1,offset:{half}');
    CREATE TABLE salted (salt INT, n BIGINT, bytes BIGINT, PRIMARY KEY (salt) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = 'salted', 'key.format' = 'json', 'value.format' = 'json');
    CREATE TABLE drawn (id BIGINT, u STRING, r DOUBLE, PRIMARY KEY (u) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = 'drawn', 'key.format' = 'json', 'value.format' = 'json');
    CREATE TABLE pairs (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = 'pairs', 'key.format' = 'json', 'value.format' = 'json');
    EXECUTE STATEMENT SET BEGIN
      INSERT INTO salted SELECT salt, COUNT(*), SUM(n)
        FROM (SELECT RAND_INTEGER(4) AS salt, CHAR_LENGTH(pad) AS n FROM orders) GROUP BY salt;
      INSERT INTO drawn SELECT id, UUID(), RAND() FROM orders;
      INSERT INTO pairs SELECT a.k, COUNT(*) FROM orders a JOIN orders b ON a.k = b.k AND a.id + b.id < 40 GROUP BY a.k;
    END;
"""
NAMES = """
    SET 'pipeline.name' = 'names';
    CREATE TABLE names (k STRING, name STRING, PRIMARY KEY (k) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = 'names', 'key.format' = 'raw', 'value.format' = 'json',
        'value.fields-include' = 'EXCEPT_KEY', 'scan.bounded.mode' = 'specific-offsets',
        'scan.bounded.specific-offsets' = 'partition:0,offset:{half};partition:1,offset:{half}');
    CREATE TABLE known (name STRING, keys BIGINT, PRIMARY KEY (name) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = 'known', 'key.format' = 'json', 'value.format' = 'json');
    INSERT INTO known SELECT name, COUNT(*) FROM names GROUP BY name;
"""
HUNDRED_KB, MEGABYTE = 60, 400
"""One row in this many is of that size."""

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "500",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "60000",
}
"""Segments close twice a second, and what is older than a minute may go at any moment: no outage here lasts as long."""


def rows(count: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows by partition; nine of ten have the hot key."""
    for i in range(count):
        size = 900_000 if i % MEGABYTE == 7 else 100_000 if i % HUNDRED_KB == 3 else 10
        yield i % 2, {"id": i, "k": f"k{i}" if i % 10 == 9 else "hot", "pad": "x" * size}


@pytest.mark.timeout(60 * KILLS + 300)
def test_no_kill_in_a_stream_of_chance_hot_keys_and_large_records_loses_or_doubles_a_row(
    own_kafka: Callable[..., EmbeddedKafka], tmp_path: Path
) -> None:
    broker, kills = own_kafka(), max(2, KILLS // 10)
    count = (kills + 1) * ROWS_PER_KILL
    topics = [TopicSpec(name=n, partitions=2, replication=1) for n in ("orders", "salted", "drawn", "pairs")]
    Cluster({"bootstrap.servers": broker.bootstrap}).create(topics)
    text = PIPELINE.format(half=count // 2)
    service = ServiceProcess(text, tmp_path, broker.bootstrap, BATCH__ROWS="60", SPARK__CONF="{}")
    chaos = Chaos(service, broker, rows(count), random.Random(SEED))
    service.start()
    for number in range(kills):
        chaos.kill(("worker", "driver", "jvm", "writer")[number % 4])
    chaos.end()

    def found(topic: str) -> list[dict[str, Any]]:
        return list(upserted(read(broker.bootstrap, topic)).values())

    generated = [row for _, row in rows(count)]
    salted = found("salted")
    assert all(row["n"] > 0 for row in salted)
    assert sum(row["n"] for row in salted) == count
    assert sum(row["bytes"] for row in salted) == sum(len(row["pad"]) for row in generated)
    # A row that had been drawn for a second time would be there twice, under another key.
    assert sorted(row["id"] for row in found("drawn")) == list(range(count))
    few = [row for row in generated if row["id"] < 40]
    pairs = Counter(a["k"] for a in few for b in few if a["k"] == b["k"] and a["id"] + b["id"] < 40)
    assert {row["k"]: row["n"] for row in found("pairs")} == dict(pairs)


class KeyedChaos(Chaos):
    """Feeds records with a key: no value takes the row of the key back."""

    def _feed(self, rows: int) -> None:
        producer = Producer({"bootstrap.servers": self._broker.bootstrap, "linger.ms": 20, "enable.idempotence": True})
        for partition, (key, name) in islice(self._rows, rows):
            value = None if name is None else json.dumps({"name": name}).encode()
            producer.produce("names", value, key.encode(), partition=partition)
            producer.poll(0)
        assert producer.flush(60) == 0


def renamed(count: int) -> Iterator[tuple[int, tuple[str, str | None]]]:
    """Twenty keys get other names, or none, again and again: by partition."""
    moments = random.Random(SEED)
    for i in range(count):
        key = f"k{i % 2 + 2 * moments.randrange(10)}"
        yield i % 2, (key, None if moments.random() < 0.1 else f"n{moments.randrange(5)}")


@pytest.mark.timeout(60 * KILLS + 300)
def test_no_kill_loses_or_doubles_a_row_of_a_source_that_is_compacted(
    own_kafka: Callable[..., EmbeddedKafka], tmp_path: Path
) -> None:
    broker, kills = own_kafka(), max(2, KILLS // 10)
    count = (kills + 1) * ROWS_PER_KILL
    topics = [
        TopicSpec(name="known", partitions=2, replication=1),
        TopicSpec(name="names", partitions=2, replication=1, config=COMPACTED),
    ]
    Cluster({"bootstrap.servers": broker.bootstrap}).create(topics)
    service = ServiceProcess(
        NAMES.format(half=count // 2), tmp_path, broker.bootstrap, BATCH__ROWS="60", SPARK__CONF="{}"
    )
    chaos = KeyedChaos(service, broker, renamed(count), random.Random(SEED))
    service.start()
    for number in range(kills):
        chaos.kill(("worker", "jvm", "driver", "writer")[number % 4])
    chaos.end()
    now = {key: name for _, (key, name) in renamed(count)}
    known = Counter(name for name in now.values() if name is not None)
    assert {r["name"]: r["keys"] for r in upserted(read(broker.bootstrap, "known")).values()} == dict(known)
