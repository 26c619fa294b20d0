"""A partition that is added to a topic while the pipeline runs is read from its beginning, and holds time back."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import add_partitions, feed, messages

PIPELINE = """
    SET 'pipeline.name' = 'counts';
    CREATE TABLE t (id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
      WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
    CREATE TABLE seen (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '{seen}', 'format' = 'json');
    CREATE TABLE windows (w TIMESTAMP(3), n BIGINT)
      WITH ('connector' = 'kafka', 'topic' = '{windows}', 'format' = 'json');
    EXECUTE STATEMENT SET BEGIN
      INSERT INTO seen SELECT id FROM t;
      INSERT INTO windows SELECT window_start, COUNT(*)
        FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end;
    END;
"""


def row(identifier: int, second: int) -> dict[str, object]:
    return {"id": identifier, "ts": f"2024-01-01 00:00:{second:02d}"}


def test_a_partition_that_is_added_is_read_and_counts(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, seen, windows = (make_topic(name, partitions=1) for name in ("source", "seen", "windows"))
    running = service(PIPELINE.format(source=source, seen=seen, windows=windows), kafka.bootstrap)
    running.start()

    def ids() -> set[int]:
        return {json.loads(m.value())["id"] for m in messages(kafka.bootstrap, seen)}

    def counts() -> dict[str, int]:
        return {w["w"]: w["n"] for m in messages(kafka.bootstrap, windows) for w in [json.loads(m.value())]}

    feed(kafka.bootstrap, source, [(0, row(1, 1)), (0, row(2, 12))])
    running.until("the first rows are seen", lambda: ids() == {1, 2})
    running.until("the first window is closed", lambda: counts() == {"2024-01-01 00:00:00": 1})

    add_partitions(kafka.bootstrap, source, 2)
    feed(kafka.bootstrap, source, [(1, row(3, 13))])
    running.until("the row of the new partition is seen", lambda: ids() == {1, 2, 3})

    # The new partition is at second 13, so the window up to 20 is open, whatever the other one says.
    feed(kafka.bootstrap, source, [(0, row(4, 25)), (0, row(5, 26))])
    running.until("the old partition goes on", lambda: ids() == {1, 2, 3, 4, 5})
    assert len(counts()) == 1
    # Had it been closed, this row would be late.
    feed(kafka.bootstrap, source, [(1, row(6, 14)), (1, row(7, 27))])
    running.until("its time moves on", lambda: "2024-01-01 00:00:10" in counts())
    assert counts()["2024-01-01 00:00:10"] == 3
