"""One checkpoint from start to start: who may go on with it, and with what."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from service.host.machine import free_ports
from service.kafka.admin import Cluster
from service.kafka.local_broker.broker import EmbeddedKafka
from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, read, upserted

QUERY = """
    SET 'pipeline.name' = 'totals';
    CREATE TABLE orders (name STRING, amount BIGINT)
      WITH ('connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
    CREATE TABLE totals (name STRING, total BIGINT, PRIMARY KEY (name) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = 'totals', 'key.format' = 'json', 'value.format' = 'json');
    INSERT INTO totals SELECT name, SUM(amount) FROM orders GROUP BY name;
"""
REFORMATTED = QUERY.replace(
    "SELECT name, SUM(amount)", "-- what each has spent\n  select o.name,\n  sum( amount ) as s"
)
REFORMATTED = REFORMATTED.replace("FROM orders", "FROM orders AS o").replace("GROUP BY name", "GROUP BY o.name")
CHANGED = QUERY.replace("SUM(amount)", "SUM(amount + 1)")


def test_a_checkpoint_goes_on_with_its_own_query_any_copy_of_it_and_one_driver_only(
    own_kafka: Callable[..., EmbeddedKafka], service: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    broker = own_kafka()
    port = free_ports(1)[0]
    first = service(QUERY, broker.bootstrap, HTTP__PORT=str(port))
    checkpoint = tmp_path / "checkpoint" / "totals"

    def totals() -> dict[str, int]:
        rows = upserted(read(broker.bootstrap, "totals")).values()
        return {r["name"]: r["total"] for r in rows}

    def feed_and_await(amount: int, total: int) -> None:
        feed(broker.bootstrap, "orders", [(0, {"name": "ann", "amount": amount})])
        first.until(f"the total is {total}", lambda: totals() == {"ann": total})

    # Kafka is down at the start: the service waits, alive and unready, and says why.
    broker.kill()
    first.start()
    first.until("it waits for Kafka", lambda: "waiting for Kafka" in first.log)
    status, body = first.ask("/readyz")
    assert (status, "totals" in json.loads(body)["details"]) == (503, True), body
    assert first.ask("/livez")[0] == 200
    broker.restart()
    first.until("it is ready", lambda: first.ask("/readyz")[0] == 200)
    feed_and_await(1, 1)

    # A second driver is kept out at once, in a sentence, and the first goes on.
    second = service(QUERY, broker.bootstrap, folder=tmp_path / "second", CHECKPOINT=str(tmp_path / "checkpoint"))
    second.start()
    assert second.wait() == 1
    assert second.log.splitlines() == [f"another driver works on the checkpoint {checkpoint}"]
    feed_and_await(2, 3)

    # SIGTERM ends it in order, within the grace period or soon after it.
    first.terminate()
    assert first.wait(25 + 60) == 0
    assert "stopping" in [e["event"] for e in first.events()]
    cluster = Cluster({"bootstrap.servers": broker.bootstrap})
    assert cluster.group_offsets("tailrace-totals", ["orders"]) == cluster.end_offsets(["orders"])
    older = tmp_path / "older"
    shutil.copytree(checkpoint, older)

    # The same query in other words goes on where the first ended.
    first.rewrite(REFORMATTED)
    first.start()
    feed_and_await(4, 7)
    first.terminate()
    assert first.wait() == 0

    # Another query is refused: it writes nothing.
    feed(broker.bootstrap, "orders", [(0, {"name": "ann", "amount": 8})])
    written = ends(broker, "totals")
    first.rewrite(CHANGED)
    first.start()
    assert first.wait() == 1
    assert any("the checkpoint holds the state of another query" in str(each) for each in first.events())
    assert "gave up" in [e["event"] for e in first.events()]
    assert ends(broker, "totals") == written

    # The right one takes an older copy to where it was, and goes on.
    first.rewrite(QUERY)
    shutil.rmtree(checkpoint)
    older.rename(checkpoint)
    first.start()
    first.until("the total is 15", lambda: totals() == {"ann": 15})
    first.terminate()
    assert first.wait() == 0
    assert "the checkpoint is an older copy and rolls forward" in [e["event"] for e in first.events()]


def test_a_missing_topic_is_named_before_anything_starts(
    kafka: Broker, service: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    text = QUERY.replace("'orders'", "'no-such-source'").replace("'totals',", "'no-such-sink',")
    refused = service(text, kafka.bootstrap, TOPICS__CREATE="false", TOPICS__DEAD_LETTER="", TOPICS__MARKERS="no-marks")
    refused.start()
    assert refused.wait() == 2
    assert "these topics do not exist: no-marks, no-such-sink, no-such-source" in refused.log
    assert "TAILRACE_TOPICS__CREATE" in refused.log
    assert not {"started", "batch"} & {str(event["event"]) for event in refused.events()}
    assert not list((tmp_path / "checkpoint").rglob("offsets"))
    assert Cluster({"bootstrap.servers": kafka.bootstrap}).describe(["no-such-source"]) == {}


def ends(broker: EmbeddedKafka, topic: str) -> dict[int, int]:
    """The end of each partition: a transaction moves it even if it is aborted."""
    return dict(Cluster({"bootstrap.servers": broker.bootstrap}).end_offsets([topic])[topic])


TWO_SINKS = """
    SET 'pipeline.name' = 'two';
    CREATE TABLE t (n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json',
      'properties.group.id' = 'nobody', 'scan.startup.mode' = 'group-offsets', 'scan.bounded.mode' = 'latest-offset');
    CREATE TABLE a (n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{a}', 'format' = 'json');
    CREATE TABLE b (n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{b}', 'format' = 'json',
      'properties.acks' = 'all');
    EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT n FROM t; INSERT INTO b SELECT -n FROM t; END;
"""


def test_a_configuration_that_turns_out_to_be_wrong_at_the_start_of_a_query_is_distinguished_from_a_failure(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, a, b = (make_topic(name, partitions=1) for name in ("source", "a", "b"))
    text = TWO_SINKS.format(source=source, a=a, b=b)
    feed(kafka.bootstrap, source, [(0, {"n": n}) for n in range(1, 4)])
    running = service(text, kafka.bootstrap)
    running.start()
    assert running.wait() == 2
    assert "has committed no offset" in running.log

    # What the tables say that concerns a reader, or nobody, makes no transaction of its own.
    text = text.replace("'group-offsets'", "'earliest-offset'")
    running.rewrite(text)
    running.start()
    assert running.wait() == 0
    assert [json.loads(value or b"")["n"] for _, value in read(kafka.bootstrap, b)] == [-1, -2, -3]

    # Nor does how it is sent, which may change under a checkpoint.
    running.rewrite(text.replace("'properties.acks' = 'all'", "'properties.compression.type' = 'gzip'"))
    running.start()
    assert running.wait() == 0
    assert len(read(kafka.bootstrap, b)) == len(read(kafka.bootstrap, a)) == 3
