"""A partition that falls silent holds the watermark back, unless the table has an idle timeout."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, read

BASE = 1_700_000_000_000
"""Twenty seconds into a minute."""

TABLE = """
    CREATE TABLE {name} (v BIGINT, ts BIGINT, et AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR et AS et)
    WITH ('connector' = 'kafka', 'topic' = '{source}', 'scan.startup.mode' = 'earliest-offset',
          'format' = 'json'{more});
    CREATE TABLE {name}_windows (w TIMESTAMP(3), n BIGINT)
    WITH ('connector' = 'kafka', 'topic' = '{windows}', 'format' = 'json');
"""
INSERT = """
      INSERT INTO {name}_windows SELECT window_start, COUNT(*)
        FROM TABLE(TUMBLE(TABLE {name}, DESCRIPTOR(et), INTERVAL '10' SECOND)) GROUP BY window_start, window_end;
"""


def seconds(partition: int, *which: int) -> Iterator[tuple[int, dict[str, int]]]:
    """Rows of one partition at these seconds."""
    return ((partition, {"v": 1, "ts": BASE + s * 1000}) for s in which)


def test_a_silent_partition_holds_windows_open_until_it_is_idle_and_never_without_a_timeout(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, patient, impatient = (make_topic(n) for n in ("source", "patient", "impatient"))
    tables = TABLE.format(name="patient", source=source, windows=patient, more="") + TABLE.format(
        name="impatient", source=source, windows=impatient, more=", 'scan.watermark.idle-timeout' = '3 s'"
    )
    inserts = INSERT.format(name="patient") + INSERT.format(name="impatient")
    running = service(f"{tables} EXECUTE STATEMENT SET BEGIN {inserts} END;", kafka.bootstrap)

    def windows(topic: str) -> list[tuple[str, int]]:
        return sorted((r["w"], r["n"]) for r in (json.loads(v or b"") for _, v in read(kafka.bootstrap, topic)))

    fed: list[int] = []

    def feed_one_until(closed: int, second: int) -> Callable[[], bool]:
        """Feed the other partition again and again: where every partition is silent, time stands still."""

        def look() -> bool:
            feed(kafka.bootstrap, source, seconds(0, second))
            fed.append(second)
            time.sleep(0.4)
            return len(windows(impatient)) == closed

        return look

    first, second = "2023-11-14 22:13:20", "2023-11-14 22:13:30"
    feed(kafka.bootstrap, source, [*seconds(0, 1, 2), *seconds(1, 3)])
    running.start()
    running.until("the window closes without the silent partition", feed_one_until(1, 15))
    assert windows(impatient) == [(first, 3)]
    assert windows(patient) == []

    # Fed again in time, it is waited for again, until it has been silent for another while.
    feed(kafka.bootstrap, source, seconds(1, 16))
    running.until("the window that both have passed", lambda: windows(patient) == [(first, 3)])
    running.until("the window closes without the silent partition", feed_one_until(2, 25))
    assert windows(impatient) == [(first, 3), (second, fed.count(15) + 1)]
    assert windows(patient) == [(first, 3)]
    running.terminate()
    assert running.wait() == 0
