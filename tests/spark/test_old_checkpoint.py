"""A checkpoint of which Spark has forgotten the first batches: it knows all the same that its sources have begun."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, read

PIPELINE = """
    SET 'pipeline.name' = 'counts';
    CREATE TABLE t (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json',
      'scan.startup.mode' = 'group-offsets', 'properties.group.id' = '{group}');
    CREATE TABLE seen (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '{seen}', 'format' = 'json');
    CREATE TABLE counted (n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{counted}', 'format' = 'changelog-json');
    EXECUTE STATEMENT SET BEGIN
      INSERT INTO seen SELECT id FROM t;
      INSERT INTO counted SELECT COUNT(*) FROM t;
    END;
"""


def test_a_group_that_is_forgotten_and_an_added_partition_stop_no_old_checkpoint(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    source, seen, counted = (make_topic(name, partitions=1) for name in ("source", "seen", "counted"))
    group = f"of-{source}"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    feed(kafka.bootstrap, source, [(0, {"id": id}) for id in (1, 2, 3)])
    start = ConsumerGroupTopicPartitions(group, [TopicPartition(source, 0, 1)])
    admin.alter_consumer_group_offsets([start])[group].result(30)

    def ids() -> list[int]:
        return sorted(json.loads(value or b"")["id"] for _, value in read(kafka.bootstrap, seen))

    running = service(
        PIPELINE.format(source=source, seen=seen, counted=counted, group=group), kafka.bootstrap, BATCH__TICK="50ms"
    )
    running.start()
    running.until("it reads from where the group was", lambda: ids() == [2, 3])
    logs = tmp_path / "checkpoint" / "counts" / "offsets"

    def oldest() -> int:
        return min((int(path.name) for path in logs.iterdir() if path.name.isdigit()), default=0)

    running.until("its first batches are forgotten", lambda: oldest() > 0, seconds=600)
    running.terminate()
    assert running.wait() == 0

    admin.delete_consumer_groups([group])[group].result(30)
    admin.create_partitions([NewPartitions(source, 2)])[source].result(30)
    feed(kafka.bootstrap, source, [(1, {"id": 4}), (0, {"id": 5})])
    running.start()
    running.until("it goes on, in the new partition too", lambda: ids() == [2, 3, 4, 5])
    running.terminate()
    assert running.wait() == 0
    changes = [json.loads(value or b"") for _, value in read(kafka.bootstrap, counted)]
    assert sum(c["data"]["n"] * (1 if c["op"] in ("+I", "+U") else -1) for c in changes) == 4
