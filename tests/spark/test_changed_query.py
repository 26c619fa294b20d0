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
    assert running.wait(60) == 0

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
    events = [each for each in running.events() if each["event"] == "the query has changed and goes on with its state"]
    assert [each["operators_kept"] for each in events] == [1]
    running.terminate()
    assert running.wait(60) == 0
    assert written() == after
