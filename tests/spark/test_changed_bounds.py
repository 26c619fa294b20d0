"""The end of a source stays what its checkpoint was made with: a changed one is refused, and the old one goes on."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, read

pytestmark = pytest.mark.timeout(1200)

PIPELINE = """
    SET 'pipeline.name' = 'sums';
    CREATE TABLE t (k STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json',
      'scan.startup.mode' = 'earliest-offset'{bound});
    CREATE TABLE sums (k STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = '{sums}',
      'format' = 'changelog-json');
    INSERT INTO sums SELECT k, SUM(n) FROM t GROUP BY k;
"""
LATEST = ", 'scan.bounded.mode' = 'latest-offset'"
FIFTY = ", 'scan.bounded.mode' = 'specific-offsets', 'scan.bounded.specific-offsets' = 'partition:0,offset:50'"


@pytest.mark.parametrize(("before", "others"), [(LATEST, ["", FIFTY]), ("", [LATEST])])
def test_another_end_is_refused_and_nothing_is_lost(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], before: str, others: list[str]
) -> None:
    source, sums = make_topic("source", partitions=1), make_topic("sums", partitions=1)
    feed(kafka.bootstrap, source, [(0, {"k": "a", "n": n}) for n in range(1, 4)])

    def pipeline(bound: str) -> str:
        return PIPELINE.format(source=source, sums=sums, bound=bound)

    def total() -> int:
        changes = [json.loads(value or b"") for _, value in read(kafka.bootstrap, sums)]
        return sum(c["data"]["n"] * (1 if c["op"] in ("+I", "+U") else -1) for c in changes)

    running = service(pipeline(before), kafka.bootstrap)
    running.start()
    if not before:
        running.until("all rows are counted", lambda: total() == 6)
        running.terminate()
    assert running.wait(600) == 0
    assert total() == 6

    feed(kafka.bootstrap, source, [(0, {"k": "a", "n": 10})])
    for after in others:
        running.rewrite(pipeline(after))
        before_start = len(running.log)
        running.start()
        assert running.wait(600) == 2, "a configuration that is wrong"
        assert "the end of reading table t cannot change while its checkpoint exists" in running.log[before_start:]
        assert total() == 6

    running.rewrite(pipeline(before))
    running.start()
    if before:
        assert running.wait(600) == 0
        assert total() == 6, "its end is that of the first start"
    else:
        running.until("the row that came meanwhile is counted", lambda: total() == 16)
