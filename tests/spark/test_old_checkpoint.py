"""A checkpoint of which Spark has forgotten the first batches: it knows all the same that its sources have begun."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from service.kafka.admin import Cluster
from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import QUICK, ServiceProcess
from tests.spark.topics import add_partitions, feed, read

pytestmark = pytest.mark.timeout(1200)

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
    Cluster({"bootstrap.servers": kafka.bootstrap}).commit_group_offsets(group, {source: {0: 1}})

    def ids() -> list[int]:
        return sorted(json.loads(value or b"")["id"] for _, value in read(kafka.bootstrap, seen))

    running = service(
        PIPELINE.format(source=source, seen=seen, counted=counted, group=group),
        kafka.bootstrap,
        BATCH__TICK="50ms",
        # What Spark forgets after a hundred batches by default.
        SPARK__CONF=json.dumps({**QUICK, "spark.sql.streaming.minBatchesToRetain": "3"}),
    )
    running.start()
    running.until("it reads from where the group was", lambda: ids() == [2, 3], seconds=600)
    logs = tmp_path / "checkpoint" / "counts" / "offsets"

    def oldest() -> int:
        return min((int(path.name) for path in logs.iterdir() if path.name.isdigit()), default=0)

    running.until("its first batches are forgotten", lambda: oldest() > 0, seconds=600)
    running.terminate()
    assert running.wait(600) == 0

    admin.delete_consumer_groups([group])[group].result(120)
    add_partitions(kafka.bootstrap, source, 2)
    feed(kafka.bootstrap, source, [(1, {"id": 4}), (0, {"id": 5})])
    running.start()
    running.until("it goes on, in the new partition too", lambda: ids() == [2, 3, 4, 5], seconds=600)
    running.terminate()
    assert running.wait(600) == 0
    changes = [json.loads(value or b"") for _, value in read(kafka.bootstrap, counted)]
    assert sum(c["data"]["n"] * (1 if c["op"] in ("+I", "+U") else -1) for c in changes) == 4
