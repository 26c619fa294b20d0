"""Many Kafka partitions, which a few tasks read: killed in the middle of transactions, started with other cores."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial

from confluent_kafka.admin import AdminClient

from service.host.machine import free_ports
from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.test_zombies import COMMITTED, ends, is_open, open_or_past
from tests.spark.topics import feed, read

PARTITIONS = 12
ROWS = 20_000
"""Enough for transactions that stay open for a moment."""

PIPELINE = """
    SET 'pipeline.name' = 'many';
    CREATE TABLE t (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json',
      'scan.startup.mode' = 'earliest-offset');
    CREATE TABLE even (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '{even}', 'format' = 'json');
    INSERT INTO even SELECT id FROM t WHERE id % 2 = 0;
"""


def test_rows_that_need_no_exchange_are_written_once_whatever_tasks_read_them(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, even = make_topic("source", partitions=PARTITIONS), make_topic("even")
    job = service(PIPELINE.format(source=source, even=even), kafka.bootstrap, HTTP__PORT=str(free_ports(1)[0]))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    job.start()
    fed = killed_within = 0
    for kill, master in ((job.kill, "local[3,16]"), (job.kill_driver, "local[1,16]"), (job.kill_driver, "local[2,16]")):
        # Asked before the rows are there: the service may have committed all of them when they are.
        missed = sum(ends(admin, even, COMMITTED).values()) + ROWS // 2
        feed(kafka.bootstrap, source, ((i % PARTITIONS, {"id": i}) for i in range(fed, fed + ROWS)))
        fed += ROWS
        job.until("a transaction is open", partial(open_or_past, admin, even, missed), look_every=0.01)
        killed_within += is_open(admin, even)
        kill()
        job.start(SPARK__MASTER=master)
    job.until("all is written", lambda: sum(ids(kafka, even).values()) >= fed // 2)
    job.until("the last driver runs, too", lambda: job.ask("/readyz")[0] == 200)
    job.terminate()
    assert job.wait() == 0
    assert ids(kafka, even) == Counter(range(0, fed, 2))
    assert killed_within, "no transaction was open when the service was killed"


def ids(kafka: Broker, topic: str) -> Counter[int]:
    """How often each number stands in the topic."""
    return Counter(json.loads(value or b"")["id"] for _, value in read(kafka.bootstrap, topic))
