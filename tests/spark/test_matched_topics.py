"""The topics of a table with a 'topic-pattern': when the job starts, and when it starts again with others."""

from __future__ import annotations

import json
from collections.abc import Callable

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, messages

PIPELINE = """
    SET 'pipeline.name' = 'counts';
    CREATE TABLE t (id BIGINT, origin STRING METADATA FROM 'topic') WITH ('connector' = 'kafka',
      'topic-pattern' = '{prefix}-\\p{{Lower}}+', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
    CREATE TABLE counts (origin STRING, n BIGINT, total BIGINT, PRIMARY KEY (origin) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{counts}', 'key.format' = 'json', 'value.format' = 'json');
    INSERT INTO counts SELECT origin, COUNT(*), SUM(id) FROM t GROUP BY origin;
"""


def test_topics_that_match_are_read_and_new_ones_from_their_first_record(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    prefix, counts = make_topic("matched"), make_topic("counts", partitions=1)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    running = service(PIPELINE.format(prefix=prefix, counts=counts), kafka.bootstrap)

    def totals() -> dict[str, tuple[int, int]]:
        rows = [json.loads(m.value()) for m in messages(kafka.bootstrap, counts)]
        return {row["origin"].rpartition("-")[2]: (row["n"], row["total"]) for row in rows}

    def make(name: str) -> str:
        topic = f"{prefix}-{name}"
        for made in admin.create_topics([NewTopic(topic, 2, 1)]).values():
            made.result(30)
        return topic

    running.start()
    assert running.wait() == 2
    assert "table t: no topic matches its 'topic-pattern'" in running.log

    one, two, other = make("one"), make("two"), make("OTHER")
    for topic, amount in ((one, 1), (two, 10), (other, 100)):
        feed(kafka.bootstrap, topic, [(0, {"id": amount}), (1, {"id": amount})])
    running.start()
    running.until("both topics are read", lambda: totals() == {"one": (2, 2), "two": (2, 20)})

    # Killed, so that a batch may be planned that knows nothing of the topic that is new. Of its records Kafka has
    # removed the first: it does not begin at offset 0. The first batch is done: until then new topics wait.
    running.until("the first batch is done", lambda: any(each["event"] == "batch" for each in running.events()))
    running.kill_driver()
    three = make("three")
    feed(kafka.bootstrap, three, [(0, {"id": number}) for number in range(5)])
    for removed in admin.delete_records([TopicPartition(three, 0, 2)]).values():
        removed.result(30)
    feed(kafka.bootstrap, one, [(0, {"id": 5})])
    running.start()
    running.until(
        "the new topic is read, too", lambda: totals() == {"one": (3, 7), "two": (2, 20), "three": (3, 2 + 3 + 4)}
    )
    assert [each["topics"] for each in running.events() if each["event"] == "new topics are read"] == [three]
    running.terminate()
    assert running.wait() == 0

    for deleted in admin.delete_topics([two]).values():
        deleted.result(30)
    running.start()
    assert running.wait() == 2
    assert f"table t: {two} no longer exists" in running.log
