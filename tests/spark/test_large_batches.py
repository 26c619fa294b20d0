"""Batches that are large where rows do not show it: a hot key of a join, and records of a megabyte."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, read, upserted

HOT = """
    SET 'pipeline.name' = 'hot';
    CREATE TABLE a (k BIGINT, v BIGINT) WITH ('connector' = 'kafka', 'topic' = '{a}', 'format' = 'json',
      'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');
    CREATE TABLE b (k BIGINT, w BIGINT) WITH ('connector' = 'kafka', 'topic' = '{b}', 'format' = 'json',
      'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');
    CREATE TABLE totals (k BIGINT, pairs BIGINT, most BIGINT, PRIMARY KEY (k) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{sink}', 'key.format' = 'json', 'value.format' = 'json');
    INSERT INTO totals SELECT a.k, COUNT(*), MAX(a.v) FROM a JOIN b ON a.k = b.k AND a.v + b.w < {below} GROUP BY a.k;
"""
SIDES = [(50_000, 3, {"k": 1, "pairs": 6, "most": 2}), (3_000, 6_000, {"k": 1, "pairs": 9_000_000, "most": 2_999})]
"""Rows of the one key on each side, the number below which v + w is to be, and the answer: of 2.5 billion pairs six, of
nine million all."""

WORKER_MIB = 900
"""The most that a Python worker may hold at a time; the pairs in one table would be 40 GB."""

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


@pytest.mark.parametrize(("side", "below", "totals"), SIDES)
def test_a_hot_key_with_more_pairs_than_fit_anywhere(
    side: int,
    below: int,
    totals: dict[str, int],
    kafka: Broker,
    make_topic: MakeTopic,
    service: Callable[..., ServiceProcess],
) -> None:
    a, b, sink = make_topic("a"), make_topic("b"), make_topic("totals")
    feed(kafka.bootstrap, a, ((i % 2, {"k": 1, "v": i}) for i in range(side)))
    feed(kafka.bootstrap, b, ((i % 2, {"k": 1, "w": i}) for i in range(side)))
    running = service(HOT.format(a=a, b=b, sink=sink, below=below), kafka.bootstrap, own_jvm=True)
    running.start()
    highest = 0
    while not running.ended():
        highest = max([highest, *map(peak, running.processes()["worker"])])
        time.sleep(0.5)  # the peak of a worker can be read as long as it lives
    assert running.wait() == 0, running.log[-3000:]
    assert failures(running) == []
    assert list(upserted(read(kafka.bootstrap, sink)).values()) == [totals]
    assert 0 < highest < WORKER_MIB


@pytest.mark.parametrize("settings", [{"BATCH__BYTES": str(BATCH_BYTES)}, {}])
def test_records_of_a_megabyte_come_in_batches_that_fit(
    settings: dict[str, str], kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, sink = (make_topic(name, max_message_bytes="3000000") for name in ("notes", "kept"))
    rows = [(i % 2, {"id": i, "note": NOTE}) for i in range(NOTES)]
    feed(kafka.bootstrap, source, rows, largest=3_000_000)
    running = service(WIDE.format(source=source, sink=sink), kafka.bootstrap, **settings)
    running.start()
    assert running.wait() == 0, running.log[-3000:]
    assert failures(running) == []
    kept = [json.loads(value or b"") for _, value in read(kafka.bootstrap, sink)]
    assert sorted((r["id"], r["note"] == NOTE) for r in kept) == [(i, True) for i in range(NOTES)]
    taken = [int(str(e["rows"])) for e in running.events() if e["event"] == "batch"]
    assert sum(taken) == NOTES
    assert not settings or max(taken) * len(NOTE) <= BATCH_BYTES


KEPT = """
    SET 'pipeline.name' = 'kept';
    CREATE TABLE notes (id BIGINT, note STRING) WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json',
      'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');
    CREATE TABLE last (id BIGINT, n BIGINT, note STRING, PRIMARY KEY (id) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{sink}', 'key.format' = 'json', 'value.format' = 'json');
    INSERT INTO last SELECT id, COUNT(*), LAST_VALUE(note) FROM notes GROUP BY id;
"""
IDS, TIMES = 8, 4


def test_values_of_a_megabyte_are_state_and_are_replaced_in_topics_that_take_no_more(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, sink = make_topic("notes"), make_topic("last", cleanup_policy="compact")
    rows = [(i % 2, {"id": i, "note": f"{time}{NOTE}"}) for time in range(TIMES) for i in range(IDS)]
    feed(kafka.bootstrap, source, rows, largest=1_040_000)
    running = service(KEPT.format(source=source, sink=sink), kafka.bootstrap, BATCH__BYTES=str(4 << 20))
    running.start()
    assert running.wait() == 0, running.log[-3000:]
    assert failures(running) == []
    found = upserted(read(kafka.bootstrap, sink)).values()
    expected = [(i, TIMES, f"{TIMES - 1}{NOTE}") for i in range(IDS)]
    assert sorted((row["id"], row["n"], row["note"]) for row in found) == expected
    assert len([e for e in running.events() if e["event"] == "batch"]) > 1, "several batches replace what is kept"


def failures(running: ServiceProcess) -> list[object]:
    return [e["error"] for e in running.events() if e["event"] == "batch failed"]


def peak(pid: int) -> int:
    """The most memory that a process has held at a time, in MiB; 0 of one that is gone."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) >> 10 if found else 0
