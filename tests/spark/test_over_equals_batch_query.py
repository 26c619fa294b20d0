"""Through real Kafka and real Spark: OVER windows that look ahead answer what a batch query says of the same rows."""

from __future__ import annotations

import json
from collections.abc import Callable

import duckdb

from tests.brokers import Broker, MakeTopic
from tests.spark.orders import orders
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, read

COUNT = 6_000

WINDOWS = """
  LEAD(id, 2, -1) OVER (PARTITION BY "user" ORDER BY {time}) AS next_but_one,
  SUM(amount) OVER (PARTITION BY "user" ORDER BY {time} ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING) AS near,
  COUNT(*) OVER (PARTITION BY "user" ORDER BY {time}
    RANGE BETWEEN {seconds[10]} PRECEDING AND {seconds[5]} FOLLOWING) AS soon,
  COUNT(DISTINCT amount) OVER (PARTITION BY "user" ORDER BY {time}
    RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS amounts,
  DENSE_RANK() OVER (PARTITION BY "user" ORDER BY {time}) AS place,
  SUM(amount) OVER (PARTITION BY MOD(id, 5) ORDER BY {time}
    RANGE BETWEEN {seconds[5]} PRECEDING AND {seconds[10]} FOLLOWING) AS around
"""
"""Of each user no two orders have one time. Windows of two partitions are computed apart and put together by row."""


def pipeline(source: str, sink: str) -> str:
    """The windows over a bounded topic."""
    seconds = {n: f"INTERVAL '{n}' SECOND" for n in (5, 10)}
    return f"""
    SET 'pipeline.name' = 'over';
    CREATE TABLE orders (
      id BIGINT, `user` STRING, amount BIGINT, ts BIGINT,
      et AS TO_TIMESTAMP_LTZ(ts, 3),
      WATERMARK FOR et AS et - INTERVAL '1' SECOND
    ) WITH ('connector' = 'kafka', 'topic' = '{source}', 'scan.startup.mode' = 'earliest-offset',
            'scan.bounded.mode' = 'latest-offset', 'format' = 'json');
    CREATE TABLE answers (id BIGINT, next_but_one BIGINT, near BIGINT, soon BIGINT, amounts BIGINT, place BIGINT,
                          around BIGINT)
      WITH ('connector' = 'kafka', 'topic' = '{sink}', 'format' = 'json');
    INSERT INTO answers SELECT id, {WINDOWS.format(time="et", seconds=seconds).replace('"user"', "`user`")} FROM orders;
    """


def expected() -> list[tuple[int, ...]]:
    """What a batch query says of the same rows."""
    connection = duckdb.connect()
    connection.execute('CREATE TABLE orders (id BIGINT, "user" VARCHAR, amount BIGINT, ts BIGINT)')
    rows = [(r["id"], r["user"], r["amount"], r["ts"]) for _, r in orders(COUNT)]
    connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", rows)
    windows = WINDOWS.format(time="ts", seconds={n: n * 1000 for n in (5, 10)})
    return sorted(connection.execute(f"SELECT id, {windows} FROM orders").fetchall())


def test_windows_over_a_bounded_topic_end_with_the_answer_of_a_batch_query(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, sink = make_topic("orders"), make_topic("answers")
    feed(kafka.bootstrap, source, orders(COUNT))
    running = service(pipeline(source, sink), kafka.bootstrap, BATCH__ROWS="1500")
    running.start()
    assert running.wait() == 0, running.log[-4000:]
    rows = [json.loads(value) for _, value in read(kafka.bootstrap, sink) if value is not None]
    assert sorted(tuple(row.values()) for row in rows) == expected()
