"""Batches that are large where their number of rows does not show it: records of a megabyte."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, read

WIDE = """
    SET 'pipeline.name' = 'wide';
    CREATE TABLE notes (id BIGINT, note STRING) WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json',
      'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');
    CREATE TABLE kept (id BIGINT, note STRING) WITH ('connector' = 'kafka', 'topic' = '{sink}', 'format' = 'json',
      'properties.max.request.size' = '3000000');
    INSERT INTO kept SELECT id, note FROM notes;
"""
NOTE = Random(1).randbytes(500_000).hex()
NOTES, BATCH_BYTES = 120, 16 << 20


def test_records_of_a_megabyte_come_in_batches_of_so_many_bytes(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, sink = (make_topic(name, max_message_bytes="3000000") for name in ("notes", "kept"))
    rows = [(i % 2, {"id": i, "note": NOTE}) for i in range(NOTES)]
    feed(kafka.bootstrap, source, rows, largest=3_000_000)
    running = service(WIDE.format(source=source, sink=sink), kafka.bootstrap, BATCH__BYTES=str(BATCH_BYTES))
    running.start()
    assert running.wait() == 0, running.log[-3000:]
    assert failures(running) == []
    kept = [json.loads(value or b"") for _, value in read(kafka.bootstrap, sink)]
    assert sorted((r["id"], r["note"] == NOTE) for r in kept) == [(i, True) for i in range(NOTES)]
    taken = [int(str(e["rows"])) for e in running.events() if e["event"] == "batch"]
    assert sum(taken) == NOTES
    assert max(taken) * len(NOTE) <= BATCH_BYTES


def failures(running: ServiceProcess) -> list[object]:
    return [e["error"] for e in running.events() if e["event"] == "batch failed"]
