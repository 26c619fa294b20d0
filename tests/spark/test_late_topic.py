"""A topic that does not exist yet when a changed query asks for it: the start is refused, the checkpoint goes on."""

from __future__ import annotations

import json
from collections.abc import Callable

from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, read, upserted

PIPELINE = """
    SET 'pipeline.name' = 'totals';
    CREATE TABLE orders (name STRING, amount BIGINT) WITH ('connector' = 'kafka', 'topic' = '{orders}',
      'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
    CREATE TABLE clicks (name STRING, amount BIGINT) WITH ('connector' = 'kafka', 'topic' = '{orders}-late',
      'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
    CREATE TABLE totals (name STRING, total BIGINT, PRIMARY KEY (name) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{totals}', 'key.format' = 'json', 'value.format' = 'json');
    CREATE TABLE seen (name STRING) WITH ('connector' = 'kafka', 'topic' = '{seen}', 'format' = 'json');
    EXECUTE STATEMENT SET BEGIN
      INSERT INTO totals SELECT name, SUM(amount) FROM orders GROUP BY name;
      {more}
    END;
"""


def test_a_topic_that_appears_late_is_read_over_the_checkpoint_that_was_there(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    topics = {name: make_topic(name, partitions=1) for name in ("orders", "totals", "seen")}
    late = f"{topics['orders']}-late"
    own = {"TOPICS__MARKERS": make_topic("markers", partitions=16, cleanup_policy="compact")}
    own |= {"TOPICS__CREATE": "false", "TOPICS__DEAD_LETTER": ""}
    running = service(PIPELINE.format(more="", **topics), kafka.bootstrap, **own)

    def total() -> int | None:
        rows = upserted(read(kafka.bootstrap, topics["totals"])).values()
        return next((row["total"] for row in rows), None)

    def seen() -> list[str]:
        return [json.loads(value or b"")["name"] for _, value in read(kafka.bootstrap, topics["seen"])]

    feed(kafka.bootstrap, topics["orders"], [(0, {"name": "ann", "amount": 1})])
    running.start()
    running.until("the first order is counted", lambda: total() == 1)
    running.terminate()
    assert running.wait() == 0

    running.rewrite(PIPELINE.format(more="INSERT INTO seen SELECT name FROM clicks;", **topics))
    feed(kafka.bootstrap, topics["orders"], [(0, {"name": "ann", "amount": 2})])
    running.start()
    assert running.wait() == 2
    assert f"this topic does not exist: {late}" in running.log
    assert total() == 1

    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(late, 2, 1)])[late].result(30)
    feed(kafka.bootstrap, late, [(1, {"name": "first", "amount": 0})])
    running.start()
    running.until("both tables are read", lambda: (total(), seen()) == (3, ["first"]))
    feed(kafka.bootstrap, topics["orders"], [(0, {"name": "ann", "amount": 4})])
    feed(kafka.bootstrap, late, [(0, {"name": "second", "amount": 0})])
    running.until("both go on", lambda: (total(), sorted(seen())) == (7, ["first", "second"]))
    running.terminate()
    assert running.wait() == 0
