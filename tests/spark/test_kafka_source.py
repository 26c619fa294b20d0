"""The source of Kafka tables: many partitions a task, with what Kafka leaves out of a partition and what it loses."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from service.archives import ensure, load
from service.spark.driver.class_path import spark_home
from service.spark.driver.java_classes import own_classes
from service.spark.internals.compiler import NotCompiled, compile_java
from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, messages, read

PARTITIONS = 6

PIPELINE = """
    SET 'pipeline.name' = 'copy';
    CREATE TABLE t (id BIGINT, k STRING, p INT METADATA FROM 'partition', o BIGINT METADATA FROM 'offset',
        h MAP<STRING, BYTES> METADATA FROM 'headers')
      WITH ('connector' = 'kafka', 'topic' = '{source}', 'key.format' = 'raw', 'key.fields' = 'k',
        'value.format' = 'json', 'value.fields-include' = 'EXCEPT_KEY', 'scan.startup.mode' = 'earliest-offset'{mode});
    CREATE TABLE copy (id BIGINT, k STRING, p INT, o BIGINT, h INT)
      WITH ('connector' = 'kafka', 'topic' = '{copy}', 'format' = 'json');
    INSERT INTO copy SELECT id, k, p, o, CARDINALITY(h) FROM t;
"""
BOUNDED = ", 'scan.bounded.mode' = 'latest-offset'"

Copied = list[tuple[int, int, int, str | None, int | None]]
"""Partition, offset, id, key and number of headers of each record, None for no headers."""


@pytest.mark.parametrize("rows", ["100", "1000000"])
def test_batches_of_any_size_read_each_committed_record_once(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], rows: str
) -> None:
    source, copy = make_topic("source", partitions=PARTITIONS), make_topic("copy")
    number = iter(range(10_000))
    for round_ in range(6):
        transaction(kafka, source, number, 40, commit=round_ % 2 == 0)
    # The last of some partitions are records that nobody may see, and the marks of transactions.
    transaction(kafka, source, number, 7, commit=False)
    job = service(PIPELINE.format(source=source, copy=copy, mode=BOUNDED), kafka.bootstrap, BATCH__ROWS=rows)
    job.start()
    assert job.wait() == 0, job.log[-6000:]
    assert copied(kafka, copy) == committed(kafka, source)
    assert len(committed(kafka, source)) == 3 * 40 * PARTITIONS


def test_holes_of_a_compacted_topic_are_stepped_over(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    quickly = {"segment_ms": "100", "min_cleanable_dirty_ratio": "0.01", "max_compaction_lag_ms": "1"}
    source = make_topic("source", partitions=2, cleanup_policy="compact", **quickly)
    copy = make_topic("copy")
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    written = 0
    deadline = time.monotonic() + 240
    while len(messages(kafka.bootstrap, source)) == written:
        assert time.monotonic() < deadline, "the broker has compacted nothing"
        for i in range(20):
            producer.produce(source, json.dumps({"id": written + i}), f"k{i % 3}".encode(), partition=i % 2)
        assert producer.flush(30) == 0
        written += 20
        time.sleep(0.5)
    job = service(PIPELINE.format(source=source, copy=copy, mode=BOUNDED), kafka.bootstrap, BATCH__ROWS="10")
    job.start()
    assert job.wait() == 0, job.log[-6000:]
    found = copied(kafka, copy)
    # The broker may have gone on meanwhile: what is there now was there then.
    assert set(found) >= set(committed(kafka, source))
    assert len(found) < written
    assert len(set(found)) == len(found)


def test_records_that_kafka_has_deleted_are_missed_aloud(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, copy = make_topic("source", partitions=PARTITIONS), make_topic("copy")
    job = service(PIPELINE.format(source=source, copy=copy, mode=""), kafka.bootstrap, RETRY__ATTEMPTS="1")
    feed(kafka.bootstrap, source, ((i % PARTITIONS, {"id": i}) for i in range(60)))
    job.start()
    job.until("the first rows are written", lambda: len(read(kafka.bootstrap, copy)) == 60)
    job.terminate()
    assert job.wait() == 0
    feed(kafka.bootstrap, source, ((i % PARTITIONS, {"id": i}) for i in range(60, 120)))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for each in admin.delete_records([TopicPartition(source, 3, 15)]).values():
        each.result(30)
    job.start()
    assert job.wait() == 1
    assert f"{source}-3" in job.log[-6000:]
    assert len([p for p, *_ in copied(kafka, copy) if p == 3]) == 10


def test_a_partition_without_records_does_not_hold_up_the_others(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, copy = make_topic("source", partitions=64), make_topic("copy")
    job = service(PIPELINE.format(source=source, copy=copy, mode=""), kafka.bootstrap)
    job.start()
    fed = 0
    for partitions in ((5,), range(64), (5, 63), range(0, 64, 3)):
        rows = [(p, {"id": fed + i}) for p in partitions for i in range(3)]
        feed(kafka.bootstrap, source, rows)
        fed += len(rows)
        job.until("all is written", partial(_has, kafka, copy, fed))
    job.terminate()
    assert job.wait() == 0
    assert copied(kafka, copy) == committed(kafka, source)


FAR = """
    SET 'pipeline.name' = 'far';
    CREATE TABLE t (id BIGINT, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp')
      WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset',
        'scan.bounded.mode' = 'latest-offset');
    CREATE TABLE u (id BIGINT)
      WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset',
        'scan.bounded.mode' = 'latest-offset');
    CREATE TABLE times (id BIGINT, at TIMESTAMP_LTZ(3)) WITH ('connector' = 'print', 'print-identifier' = 'times');
    CREATE TABLE copy (id BIGINT) WITH ('connector' = 'print', 'print-identifier' = 'copy');
    EXECUTE STATEMENT SET BEGIN
      INSERT INTO times SELECT id, at FROM t;
      INSERT INTO copy SELECT id FROM u;
    END;
"""


def test_a_record_whose_timestamp_no_timestamp_can_hold_is_a_dead_letter_where_it_is_asked_for(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, dead = make_topic("far", message_timestamp_after_max_ms=str(2**63 - 1)), make_topic("dead")
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for id_, timestamp in enumerate([1_000, 1_700_000_000_000_000_000, 2_000]):
        producer.produce(source, json.dumps({"id": id_}), timestamp=timestamp, partition=0)
    assert producer.flush(30) == 0
    job = service(FAR.format(source=source), kafka.bootstrap, TOPICS__DEAD_LETTER=dead)
    job.start()
    assert job.wait() == 0, job.log[-6000:]
    assert [line for line in job.log.splitlines() if line.startswith("times")] == [
        "times> +I[0, 1970-01-01T00:00:01Z]",
        "times> +I[2, 1970-01-01T00:00:02Z]",
    ]
    assert sorted(line for line in job.log.splitlines() if line.startswith("copy")) == [
        f"copy> +I[{id_}]" for id_ in range(3)
    ]
    (letter,) = messages(kafka.bootstrap, dead)
    headers = {name: value for name, value in letter.headers() or () if value is not None}
    assert json.loads(letter.value() or b"") == {"id": 1}
    assert any(b"timestamp is out of the range" in value for value in headers.values()), headers


@pytest.mark.e2e
def test_our_classes_are_compiled_once_and_a_mistake_in_them_is_reported(tmp_path: Path) -> None:
    archives, spark = ensure(load("spark")), spark_home() / "jars"
    made = own_classes(archives, spark)
    before = made.stat().st_mtime_ns
    assert own_classes(archives, spark) == made
    assert made.stat().st_mtime_ns == before
    source = tmp_path / "Wrong.java"
    source.write_text("class Wrong { int none() { return missing; } }")
    with pytest.raises(NotCompiled, match="missing"):
        compile_java("java", [source], sorted(spark.glob("*.jar")), tmp_path)


def transaction(kafka: Broker, topic: str, number: Iterator[int], rows: int, *, commit: bool) -> None:
    """Write that many records to each partition, in a transaction that is committed or aborted."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{topic}-{next(number)}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for i in range(rows * PARTITIONS):
        value = json.dumps({"id": next(number)})
        producer.produce(topic, value, f"k{i}".encode(), partition=i % PARTITIONS, headers=[("h", b"1")] * (i % 2))
    assert producer.flush(30) == 0
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def committed(kafka: Broker, topic: str) -> Copied:
    """What a consumer may see of the topic."""
    found = messages(kafka.bootstrap, topic)
    rows = [
        (m.partition(), m.offset(), json.loads(m.value())["id"], _text(m.key()), len(m.headers() or ()) or None)
        for m in found
    ]
    return sorted(rows)


def copied(kafka: Broker, topic: str) -> Copied:
    """What the job has written."""
    rows = [json.loads(value or b"") for _, value in read(kafka.bootstrap, topic)]
    return sorted((row["p"], row["o"], row["id"], row["k"], row["h"]) for row in rows)


def _has(kafka: Broker, topic: str, rows: int) -> bool:
    return len(read(kafka.bootstrap, topic)) >= rows


def _text(key: bytes | None) -> str | None:
    return None if key is None else key.decode()
