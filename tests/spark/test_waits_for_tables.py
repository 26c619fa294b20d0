"""A temporal join in processing time over a compacted topic: the table is read first, over a kill."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, read

QUERY = """
    SET 'pipeline.name' = 'waits';
    SET 'tailrace.temporal.wait-for-table' = '{waits}';
    CREATE TABLE orders (id BIGINT, who STRING, at AS PROCTIME())
      WITH ('connector' = 'kafka', 'topic' = '{orders}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
    CREATE TABLE users (who STRING, city STRING, PRIMARY KEY (who) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{users}', 'key.format' = 'json', 'value.format' = 'json');
    CREATE TABLE met (id BIGINT, city STRING) WITH ('connector' = 'kafka', 'topic' = '{met}', 'format' = 'json');
    INSERT INTO met SELECT o.id, u.city FROM orders AS o
      LEFT JOIN users FOR SYSTEM_TIME AS OF o.at AS u ON o.who = u.who;
"""
USERS, ORDERS = 20_000, 500
BATCHES = 20
"""Of the users: it is killed after one or two of them, also where the machine is busy."""


@pytest.mark.parametrize("waits", [True, False])
def test_no_row_is_answered_before_the_table_was_read_to_its_end(
    waits: bool, kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    topics = {name: make_topic(name, partitions=2) for name in ("orders", "users", "met")}
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 20})
    for i in range(USERS):
        key, value = {"who": f"u{i}"}, {"who": f"u{i}", "city": f"c{i}"}
        producer.produce(topics["users"], json.dumps(value).encode(), json.dumps(key).encode(), partition=i % 2)
        producer.poll(0)
    assert producer.flush(60) == 0
    # The users that come last.
    feed(kafka.bootstrap, topics["orders"], ((i % 2, {"id": i, "who": f"u{USERS - 1 - i}"}) for i in range(ORDERS)))

    def met() -> dict[int, str | None]:
        rows = [json.loads(value or b"") for _, value in read(kafka.bootstrap, topics["met"])]
        assert len({row["id"] for row in rows}) == len(rows), "a row was written twice"
        return {row["id"]: row["city"] for row in rows}

    query = QUERY.format(waits=str(waits).lower(), **topics)
    running = service(query, kafka.bootstrap, BATCH__ROWS=str(USERS // BATCHES), LOG_FORMAT="json")
    running.start()
    if waits:
        running.until("the table is read", lambda: "a table waits until others are read" in running.log)
        running.until("a batch is done", lambda: '"event": "batch"' in running.log)
        running.kill_driver()
        assert not met()
        running.start()
    running.until("all orders are answered", lambda: len(met()) == ORDERS)
    found = met()
    if waits:
        assert found == {i: f"c{USERS - 1 - i}" for i in range(ORDERS)}
        # The batch that ends the wait may have been planned before the kill.
        if running.log.count("a table waits until others are read") == 2:
            running.until("the end of the wait is logged", lambda: "a table has waited and is read" in running.log)
    else:
        assert None in found.values(), "without waiting, the first rows meet a table that is not there yet"
    # What comes now is answered at once.
    feed(kafka.bootstrap, topics["orders"], [(0, {"id": ORDERS, "who": "u7"})])
    running.until("it is answered", lambda: met().get(ORDERS) == "c7")
    running.terminate()
    assert running.wait() == 0
