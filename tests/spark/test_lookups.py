"""Lookups in a real PostgreSQL through Kafka and Spark: a database that goes, a table that changes under a batch."""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.brokers import Broker, MakeTopic
from tests.databases.postgres import PASSWORD, postgres
from tests.spark.service_process import ServiceProcess, signal_to
from tests.spark.test_changed_tasks import begun
from tests.spark.topics import feed, read, upserted

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the package that brings PostgreSQL is for Linux")

QUERY = """
    SET 'pipeline.name' = 'lookups';
    CREATE TABLE orders (id BIGINT, customer BIGINT, at AS PROCTIME())
      WITH ('connector' = 'kafka', 'topic' = '{orders}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
    CREATE TABLE customers (id BIGINT, city STRING, PRIMARY KEY (id) NOT ENFORCED)
      WITH ('connector' = 'jdbc', 'url' = '{url}', 'table-name' = 'customers', 'username' = 'shop',
      'password' = '{password}', 'lookup.max-retries' = '1');
    CREATE TABLE met (id BIGINT, city STRING)
      WITH ('connector' = 'kafka', 'topic' = '{met}', 'format' = 'json');
    CREATE TABLE cities (city STRING, orders BIGINT, PRIMARY KEY (city) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{cities}', 'key.format' = 'json', 'value.format' = 'json');
    CREATE VIEW joined AS SELECT o.id, c.city FROM orders AS o
      LEFT JOIN customers FOR SYSTEM_TIME AS OF o.at AS c ON o.customer = c.id;
    EXECUTE STATEMENT SET BEGIN
      INSERT INTO met SELECT id, city FROM joined;
      INSERT INTO cities SELECT city, COUNT(*) FROM joined WHERE city IS NOT NULL GROUP BY city;
    END;
"""


def orders(first: int, last: int, customers: int) -> list[tuple[int, dict[str, int]]]:
    return [(i % 2, {"id": i, "customer": i % customers}) for i in range(first, last)]


def test_no_row_is_lost_or_meets_another_one_when_the_database_goes_and_the_table_changes_under_a_batch(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    topics = {name: make_topic(name, partitions=2) for name in ("orders", "met", "cities")}

    def met() -> dict[int, str | None]:
        rows = [json.loads(value or b"") for _, value in read(kafka.bootstrap, topics["met"])]
        assert len({row["id"] for row in rows}) == len(rows), "a row was written twice"
        return {row["id"]: row["city"] for row in rows}

    def counted() -> dict[str, int]:
        return {row["city"]: row["orders"] for row in upserted(read(kafka.bootstrap, topics["cities"])).values()}

    with postgres() as database:
        database.run(
            "CREATE TABLE customers (id bigint PRIMARY KEY, city text)",
            "INSERT INTO customers SELECT i, 'old' || i FROM generate_series(0, 7) AS i",
        )
        running = service(QUERY.format(url=database.url, password=PASSWORD, **topics), kafka.bootstrap)
        running.start()
        feed(kafka.bootstrap, topics["orders"], orders(0, 100, 10))
        running.until("the first orders are written", lambda: len(met()) == 100)
        assert met() == {i: f"old{i % 10}" if i % 10 < 8 else None for i in range(100)}

        # The database goes: the service waits, says why, and nobody meets nothing for it.
        database.stop()
        feed(kafka.bootstrap, topics["orders"], orders(100, 200, 10))
        running.until("it waits", lambda: "the database of table customers cannot be reached" in running.log)
        assert PASSWORD not in running.log
        assert len(met()) == 100
        database.start()
        running.until("the orders are written", lambda: len(met()) == 200)

        # It is killed when it has been answered, and the table changes before it does the batch again. What is stopped
        # writes no row.
        writers = running.processes()["writer"]
        assert writers
        for pid in writers:
            signal_to(pid, signal.SIGSTOP)
        answered = batches_answered(tmp_path)
        feed(kafka.bootstrap, topics["orders"], orders(200, 3_000, 10))
        # Old ones may be swept meanwhile.
        running.until("one more is answered", lambda: bool(batches_answered(tmp_path) - answered), look_every=0.002)
        for pid in (running.driver, *writers):
            signal_to(pid, signal.SIGKILL)
        running.kill_driver()
        assert begun(tmp_path / "checkpoint", "lookups"), "the batch was done before the kill"
        database.run("UPDATE customers SET city = 'new' || id")
        running.start()
        running.until("all orders are written", lambda: len(met()) == 3_000)
        running.terminate()
        assert running.wait() == 0
    found = met()
    cities = {i: {city for id_, city in found.items() if id_ % 10 == i} for i in range(10)}
    assert all(cities[i] == {None} for i in (8, 9))
    assert {city for i in range(8) for city in cities[i]} <= {f"{age}{i}" for age in ("old", "new") for i in range(8)}
    assert counted() == Counter(city for city in found.values() if city is not None)


def batches_answered(folder: Path) -> set[int]:
    """The batches that have answers in the checkpoint."""
    files = (file.name for file in (folder / "checkpoint/lookups/tailrace/lookups").iterdir())
    return {int(name.partition("-")[0]) for name in files if not name.endswith(".new")}
