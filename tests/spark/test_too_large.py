"""A row that its topic does not take: the job fails after its tries, says what to raise, and has lost nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from service.host.machine import free_ports
from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, read

PIPELINE = """
    SET 'pipeline.name' = 'notes';
    CREATE TABLE notes (id BIGINT, note STRING) WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json',
      'scan.startup.mode' = 'earliest-offset');
    CREATE TABLE kept (id BIGINT, note STRING) WITH ('connector' = 'kafka', 'topic' = '{sink}', 'format' = 'json',
      'properties.max.request.size' = '3000000');
    INSERT INTO kept SELECT id, note FROM notes;
"""
NOTE = Random(1).randbytes(600_000).hex()
"""Longer than a producer takes that was told nothing, and than the topic takes."""


def test_the_topic_is_named_and_nothing_is_lost_when_it_takes_more(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source = make_topic("notes", partitions=1, max_message_bytes="3000000")
    sink = make_topic("kept", partitions=1, max_message_bytes="100000")
    rows = [(0, {"id": 0, "note": NOTE}), *((0, {"id": i, "note": "short"}) for i in range(1, 20))]
    feed(kafka.bootstrap, source, rows, largest=3_000_000)
    port = str(free_ports(1)[0])
    running = service(PIPELINE.format(source=source, sink=sink), kafka.bootstrap, HTTP__PORT=port)
    running.start(RETRY__ATTEMPTS="0")
    assert running.wait() == 1
    assert told(running, "gave up", sink) == 1
    assert read(kafka.bootstrap, sink) == []

    running.start(RETRY__ATTEMPTS="100")
    running.until("it is tried again and again", lambda: told(running, "batch failed", sink) >= 2)
    allow(kafka.bootstrap, sink, 3_000_000)
    running.until("every row is there", lambda: len(read(kafka.bootstrap, sink)) == len(rows))
    kept = [json.loads(value or b"") for _, value in read(kafka.bootstrap, sink)]
    assert [(r["id"], len(r["note"])) for r in kept] == [(0, len(NOTE)), *((i, 5) for i in range(1, 20))]
    running.until("what was rolled back is counted", lambda: aborted(running) >= 2)
    running.terminate()
    assert running.wait(60) == 0


def told(running: ServiceProcess, event: str, topic: str) -> int:
    """How many such events name the topic and say what to raise; none says anything else."""
    errors = [str(each["error"]) for each in running.events() if each["event"] == event]
    assert all(f"topic {topic} did not take what was written" in error for error in errors), errors
    assert all("raise max.message.bytes of the topic" in error for error in errors), errors
    return len(errors)


def aborted(running: ServiceProcess) -> float:
    """Transactions that were rolled back, as the metrics count them."""
    sample = re.search(
        r'tailrace_transactions_total\{outcome="aborted",query="notes"\} (\S+)', running.ask("/metrics")[1]
    )
    return float(sample[1]) if sample else 0.0


def allow(bootstrap: str, topic: str, size: int) -> None:
    """Have the topic take larger records."""
    larger = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[larger])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(30)
