"""kill -9 in streams that are hard to do again: chance, large records, a hot key, a source that Kafka compacts, a clock
that jumps.

`make chaos KILLS=10` sets the number of kills, of which a tenth is done here, two at least; TAILRACE_TEST_SEED sets the
moments.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from service.kafka.admin import Cluster, TopicSpec
from service.kafka.local_broker.broker import EmbeddedKafka
from tests.chaos.test_kills import CONF, KILLS, ROWS_PER_KILL, SEED, Chaos
from tests.spark.clocks import YEAR, Clock
from tests.spark.orders import expected, orders
from tests.spark.service_process import ServiceProcess, signal_to
from tests.spark.topics import read, upserted

pytestmark = pytest.mark.chaos

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
TIMELESS = """
    SET 'pipeline.name' = 'timeless';
    SET 'table.exec.state.ttl' = '800 d';
    CREATE TABLE orders (id BIGINT, `user` STRING, amount BIGINT, ts BIGINT, et AS TO_TIMESTAMP_LTZ(ts, 3),
      WATERMARK FOR et AS et - INTERVAL '1' SECOND) WITH ('connector' = 'kafka', 'topic' = 'orders',
      'format' = 'json', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'specific-offsets',
      'scan.bounded.specific-offsets' = 'partition:0,offset:{half};partition:1,offset:{half}');
    CREATE TABLE windows (w TIMESTAMP(3), `user` STRING, n BIGINT, total BIGINT)
      WITH ('connector' = 'kafka', 'topic' = 'windows', 'format' = 'json');
    CREATE TABLE followed (`user` STRING, n BIGINT, total BIGINT, PRIMARY KEY (`user`) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = 'followed', 'key.format' = 'json', 'value.format' = 'json');
    CREATE VIEW firsts AS SELECT id, `user`, amount
      FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY et) AS place FROM orders) WHERE place = 1;
    EXECUTE STATEMENT SET BEGIN
      INSERT INTO windows SELECT window_start, `user`, COUNT(*), SUM(amount)
        FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(et), INTERVAL '10' SECOND))
        GROUP BY window_start, window_end, `user`;
      INSERT INTO followed SELECT a.`user`, COUNT(*), SUM(b.amount)
        FROM firsts a JOIN firsts b ON b.id = a.id + 1 GROUP BY a.`user`;
    END;
"""
"""Windows by event time, and a join of deduplicated orders. Its state lives for longer than the clock ever goes ahead,
so no answer depends on the clock."""

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
    service = ServiceProcess(text, tmp_path, broker.bootstrap, BATCH__ROWS="60", SPARK__CONF=CONF)
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
        NAMES.format(half=count // 2), tmp_path, broker.bootstrap, BATCH__ROWS="60", SPARK__CONF=CONF
    )
    chaos = KeyedChaos(service, broker, renamed(count), random.Random(SEED))
    service.start()
    for number in range(kills):
        chaos.kill(("worker", "jvm", "driver", "writer")[number % 4])
    chaos.end()
    now = {key: name for _, (key, name) in renamed(count)}
    known = Counter(name for name in now.values() if name is not None)
    assert {r["name"]: r["keys"] for r in upserted(read(broker.bootstrap, "known")).values()} == dict(known)


NOTICED = 0.75
"""How many of the jumps last until the service says that its clock is ahead, in a running query or at a start."""

NOTICED_WITHIN = 60.0
"""Seconds after which the clock goes back, noticed or not: a jump in the middle of a start may never be seen."""

LASTS = 15.0
"""Seconds that a jump lasts at most after that: a service that was started begins its first batch meanwhile."""


class JumpingChaos(Chaos):
    """Has the service's clock go ahead by a year around each kill, before or after it, and back a while later."""

    def __init__(
        self,
        service: ServiceProcess,
        broker: EmbeddedKafka,
        rows: Iterator[Any],
        moments: random.Random,
        clock: Clock,
    ) -> None:
        super().__init__(service, broker, rows, moments)
        self._clock = clock
        service.within = clock.within

    def kill(self, target: str) -> None:
        """Let the service work on new rows; the clock jumps and a process is killed meanwhile, in either order."""
        self._feed(ROWS_PER_KILL // 2)
        self._await_a_batch()
        self._feed(ROWS_PER_KILL // 2)
        said = self._said()
        steps = [lambda: self._clock.set(YEAR), lambda: self._end(target)]
        self._moments.shuffle(steps)
        for step in steps:
            self._pass(self._moments.uniform(0.0, 1.5))
            step()
        until = time.monotonic() + (NOTICED_WITHIN if self._moments.random() < NOTICED else 0.0)
        while self._said() == said and time.monotonic() < until:
            self._pass(0.1)
        self._pass(self._moments.uniform(0.0, LASTS))
        self._clock.set(0)
        noticed = "noticed" if self._said() > said else "unnoticed"
        print(f"killed {target} around a jump after batch {self._batches}, {noticed}", flush=True)
        self._batches = self._done()  # the next kill waits for a batch of this year

    def _end(self, target: str) -> None:
        """Kill a process of a kind, the driver where there is none: a query that waits for its clock has no workers."""
        found = [] if target == "driver" else self._service.processes()[target]
        if found:
            signal_to(self._moments.choice(found), signal.SIGKILL)
            return
        self._service.kill()
        self._start_again()

    def _said(self) -> int:
        """How often the service has said that its clock is ahead."""
        return sum(self._service.log.count(words) for words in ("went ahead by", "days ahead of everything"))

    def _pass(self, seconds: float) -> None:
        """Let time pass; a service that was ended is started again, whatever its clock says."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            assert self._ended_with() != 0, "the service ended before the last rows were written"
            time.sleep(0.05)


def paired(count: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Orders by partition; two share an id, one in each partition, and either may be the first by event time."""
    for partition, order in orders(count):
        yield partition, {**order, "id": order["id"] // 2}


@pytest.mark.skipif(shutil.which("cc") is None, reason="the clock is made by a C compiler")
@pytest.mark.timeout(60 * KILLS + 300)
def test_no_kill_while_the_clock_jumps_a_year_ahead_and_back_loses_or_doubles_a_row(
    own_kafka: Callable[..., EmbeddedKafka], tmp_path: Path
) -> None:
    """By design a query that sees such a jump makes no batch, and the broker refuses the records of a service that is
    started in the wrong year, which therefore fails, maybe often. A service whose clock is set back ends, and is
    started again.
    """
    broker, kills = own_kafka(), max(2, KILLS // 10)
    count = (kills + 1) * ROWS_PER_KILL
    topics = [TopicSpec(name=n, partitions=2, replication=1) for n in ("orders", "windows", "followed")]
    Cluster({"bootstrap.servers": broker.bootstrap}).create(topics)
    text = TIMELESS.format(half=count // 2)
    service = ServiceProcess(
        text, tmp_path, broker.bootstrap, BATCH__ROWS="60", SPARK__CONF=CONF, RETRY__ATTEMPTS="1000"
    )
    chaos = JumpingChaos(service, broker, paired(count), random.Random(SEED), Clock(tmp_path))
    service.start()
    for number in range(kills):
        chaos.kill(("driver", "jvm", "worker", "writer")[number % 4])
    chaos.end()
    firsts: dict[int, dict[str, Any]] = {}
    for row in sorted((row for _, row in paired(count)), key=lambda row: row["ts"]):
        firsts.setdefault(row["id"], row)
    amounts: dict[str, list[int]] = {}
    for number, first in firsts.items():
        if number + 1 in firsts:
            amounts.setdefault(first["user"], []).append(firsts[number + 1]["amount"])
    followed = upserted(read(broker.bootstrap, "followed")).values()
    assert {r["user"]: (r["n"], r["total"]) for r in followed} == {u: (len(a), sum(a)) for u, a in amounts.items()}
    windows = [json.loads(value) for _, value in read(broker.bootstrap, "windows") if value is not None]
    found = sorted((r["w"].removesuffix(".000"), r["user"], r["n"], r["total"]) for r in windows)
    assert found == expected(count)["windows"]
