"""A changed query through Kafka and Spark: it goes on with the checkpoint of the one before, exactly once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from service.cli import main
from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, read

PIPELINE = """
    SET 'pipeline.name' = 'totals';
    CREATE TABLE orders (name STRING, amount BIGINT) WITH ('connector' = 'kafka', 'topic' = '{orders}',
      'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
    CREATE TABLE totals (name STRING, total BIGINT, PRIMARY KEY (name) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{totals}', 'key.format' = 'json', 'value.format' = 'json');
    INSERT INTO totals SELECT name, SUM(amount) FROM orders GROUP BY name;
"""


def test_a_query_with_one_more_column_goes_on_from_the_totals_of_the_one_before(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    orders, totals = make_topic("orders", partitions=1), make_topic("totals", partitions=1)
    text = PIPELINE.format(orders=orders, totals=totals)
    running = service(text, kafka.bootstrap)

    def written() -> list[dict[str, object]]:
        return [json.loads(value or b"null") for _, value in read(kafka.bootstrap, totals)]

    feed(kafka.bootstrap, orders, [(0, {"name": "ann", "amount": 3})])
    running.start()
    running.until("the first total is there", lambda: written() == [{"name": "ann", "total": 3}])
    running.terminate()
    assert running.wait() == 0

    wider = text.replace("total BIGINT, PRIMARY", "total BIGINT, twice BIGINT, PRIMARY")
    wider = wider.replace("SUM(amount) FROM", "SUM(amount), SUM(amount) * 2 FROM")
    changed = tmp_path / "wider.sql"
    changed.write_text(wider)
    assert main(["upgrade", "--check", str(changed), str(tmp_path / "checkpoint")]) == 0
    running.rewrite(wider)
    feed(kafka.bootstrap, orders, [(0, {"name": "ann", "amount": 4})])
    running.start()
    after = [{"name": "ann", "total": 3}, {"name": "ann", "total": 7, "twice": 14}]
    running.until("the total goes on", lambda: written() == after)
    events = [
        each for each in running.events() if each["event"] == "the query has changed and continues with its state"
    ]
    assert [each["operators_kept"] for each in events] == [1]
    running.terminate()
    assert running.wait() == 0
    assert written() == after


SOURCES = """
    SET 'pipeline.name' = 'totals';
    CREATE TABLE orders (name STRING, amount BIGINT) WITH ('connector' = 'kafka', 'topic' = '{orders}',
      'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
    CREATE TABLE clicks WITH ('topic' = '{clicks}') LIKE orders;
    CREATE TABLE visits WITH ('topic' = '{visits}') LIKE orders;
    CREATE TABLE totals (name STRING, total BIGINT, PRIMARY KEY (name) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{totals}', 'key.format' = 'json', 'value.format' = 'json');
    CREATE TABLE seen (name STRING) WITH ('connector' = 'kafka', 'topic' = '{seen}', 'format' = 'json');
    EXECUTE STATEMENT SET BEGIN
    INSERT INTO seen SELECT name FROM clicks;
    INSERT INTO totals SELECT name, SUM(amount) FROM orders GROUP BY name;
    END;
"""


def test_a_query_goes_on_that_reads_one_table_more_and_another_no_more(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    names = ("orders", "clicks", "visits", "totals", "seen")
    topics = {name: make_topic(name, partitions=1) for name in names}
    text = SOURCES.format(**topics)
    running = service(text, kafka.bootstrap)

    def written(table: str) -> list[dict[str, object]]:
        return [json.loads(value or b"null") for _, value in read(kafka.bootstrap, topics[table])]

    def seen() -> list[object]:
        return [each["name"] for each in written("seen")]

    def give(number: int) -> None:
        for table in ("clicks", "visits"):
            feed(kafka.bootstrap, topics[table], [(0, {"name": f"{table} {number}"})])
        feed(kafka.bootstrap, topics["orders"], [(0, {"name": "ann", "amount": number})])

    give(1)
    running.start()
    running.until("all is there", lambda: len(written("totals")) == 1 and seen() == ["clicks 1"])
    running.terminate()
    assert running.wait() == 0
    give(2)

    changed = text.replace("FROM clicks", "FROM visits")
    file = tmp_path / "changed.sql"
    file.write_text(changed)
    assert main(["upgrade", "--check", str(file), str(tmp_path / "checkpoint")]) == 0
    running.rewrite(changed)
    running.start()
    running.until("the total goes on", lambda: [each["total"] for each in written("totals")] == [1, 3])
    running.until("the new table is read", lambda: seen() == ["clicks 1", "visits 1", "visits 2"])
    running.kill_driver()
    give(3)
    running.start()
    running.until("the total goes on", lambda: [each["total"] for each in written("totals")] == [1, 3, 6])
    running.until("the new table is read", lambda: seen() == ["clicks 1", "visits 1", "visits 2", "visits 3"])
    running.terminate()
    assert running.wait() == 0

    # The table that was read before is read again: its offsets were dropped with it.
    running.rewrite(text)
    running.start()
    running.until("the table before is read from its start", lambda: seen()[4:] == ["clicks 1", "clicks 2", "clicks 3"])
    running.terminate()
    assert running.wait() == 0
    assert [each["total"] for each in written("totals")] == [1, 3, 6]
