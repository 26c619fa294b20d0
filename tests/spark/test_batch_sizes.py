"""The size of a batch is fitted to how long batches take, while the query runs."""

from __future__ import annotations

import json
from collections.abc import Callable

from service.spark.supervision.batch_sizing import FIRST_ROWS, GROWTH
from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, read

ROWS = 9 * FIRST_ROWS


def test_a_backlog_begins_with_a_small_batch_and_goes_on_with_larger_ones(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    numbers, totals = make_topic("numbers", partitions=2), make_topic("totals", cleanup_policy="compact")
    feed(kafka.bootstrap, numbers, ((number % 2, b'{"n":1}') for number in range(ROWS)))
    job = service(
        f"""
        CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{numbers}', 'format' = 'json',
          'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');
        CREATE TABLE totals (n BIGINT, total BIGINT, PRIMARY KEY (n) NOT ENFORCED) WITH (
          'connector' = 'upsert-kafka', 'topic' = '{totals}', 'key.format' = 'json', 'value.format' = 'json');
        INSERT INTO totals SELECT n, COUNT(*) FROM numbers GROUP BY n;
        """,
        kafka.bootstrap,
        BATCH__DURATION="1h",
    )
    job.start()
    assert job.wait() == 0, job.log[-6000:]

    sizes = [int(str(event["rows"])) for event in job.events() if event["event"] == "batch"]
    assert sum(sizes) == ROWS
    assert sizes[0] == FIRST_ROWS
    assert max(sizes) == GROWTH * FIRST_ROWS, sizes
    assert json.loads(read(kafka.bootstrap, totals)[-1][1] or b"")["total"] == ROWS
