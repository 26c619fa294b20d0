"""Through real Kafka and real Spark, with a kill -9 in the middle: sessions, count and sliding windows, windows that
fire early and late, Top-N of windows and of totals answer what a batch query says of the same rows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import duckdb

from tests.brokers import Broker, MakeTopic
from tests.spark.orders import BASE
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import debezium, feed, read, upserted

COUNT, BATCH = 4_000, 300
SINKS = ("fired", "sessions", "counts", "slides", "best", "leaders")

JSON = "'connector' = 'kafka', 'format' = 'json'"
UPSERT = "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'"


def rows(count: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of eight people, each in one of two partitions and in the order of time; one of fifty comes half a minute
    too late, and is read by the windows alone that wait for it."""
    for i in range(count):
        late = i % 50 == 49
        ts = BASE + i * 50 - (i * 7919 % 11) * 30 - (30_000 if late else 0)
        yield i % 2, {"id": i, "who": f"u{i % 8}", "amount": i * 37 % 1000, "late": late, "ts": ts}


def pipeline(source: str, sinks: dict[str, str]) -> str:
    """Two jobs over a topic that ends where all rows are written."""

    def table(name: str, columns: str, connector: str) -> str:
        return f"CREATE TABLE {name} ({columns}) WITH ({connector}, 'topic' = '{sinks[name]}');"

    return f"""
    CREATE TABLE everything (
      id BIGINT, who STRING, amount BIGINT, late BOOLEAN, ts BIGINT,
      et AS TO_TIMESTAMP_LTZ(ts, 3),
      WATERMARK FOR et AS et - INTERVAL '1' SECOND
    ) WITH ('connector' = 'kafka', 'topic' = '{source}', 'scan.startup.mode' = 'earliest-offset',
            'scan.bounded.mode' = 'specific-offsets',
            'scan.bounded.specific-offsets' = 'partition:0,offset:{COUNT // 2};partition:1,offset:{COUNT // 2}',
            'format' = 'json');
    {table("fired", "w TIMESTAMP(3), who STRING, n BIGINT, total BIGINT, PRIMARY KEY (w, who) NOT ENFORCED", UPSERT)}
    {table("sessions", "who STRING, since BIGINT, n BIGINT, total BIGINT", JSON)}
    {table("counts", "who STRING, until BIGINT, n BIGINT, total BIGINT", JSON)}
    {table("slides", "who STRING, until BIGINT, n BIGINT, total BIGINT", JSON)}
    {table("best", "w TIMESTAMP(3), place BIGINT, who STRING, total BIGINT", JSON)}
    {table("leaders", "place BIGINT, who STRING, total BIGINT", "'connector' = 'kafka', 'format' = 'debezium-json'")}
    CREATE VIEW timely AS SELECT * FROM everything WHERE NOT late;

    SET 'pipeline.name' = 'firing';
    SET 'table.exec.emit.early-fire.enabled' = 'true';
    SET 'table.exec.emit.early-fire.delay' = '0 s';
    SET 'table.exec.emit.late-fire.enabled' = 'true';
    SET 'table.exec.emit.late-fire.delay' = '0 s';
    SET 'table.exec.emit.allow-lateness' = '1 h';
    INSERT INTO fired SELECT window_start, who, COUNT(*), SUM(amount)
      FROM TABLE(TUMBLE(TABLE everything, DESCRIPTOR(et), INTERVAL '10' SECOND))
      GROUP BY window_start, window_end, who;

    SET 'pipeline.name' = 'closing';
    RESET 'table.exec.emit.early-fire.enabled';
    RESET 'table.exec.emit.early-fire.delay';
    RESET 'table.exec.emit.late-fire.enabled';
    RESET 'table.exec.emit.late-fire.delay';
    RESET 'table.exec.emit.allow-lateness';
    EXECUTE STATEMENT SET BEGIN
      INSERT INTO sessions SELECT who, FIRST_VALUE(id), COUNT(*), SUM(amount)
        FROM TABLE(SESSION(TABLE timely PARTITION BY who, DESCRIPTOR(et), INTERVAL '0.5' SECOND))
        GROUP BY window_start, window_end, who;
      INSERT INTO counts SELECT who, MAX(id), COUNT(*), SUM(amount)
        FROM timely GROUP BY who, COUNTWINDOW(5, 2) OVER (PARTITION BY who);
      INSERT INTO slides SELECT who, MAX(id), COUNT(*), SUM(amount)
        FROM timely GROUP BY who, SLIDINGWINDOW(ss, 2) OVER (PARTITION BY who);
      INSERT INTO best SELECT window_start, place, who, total FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY total DESC, who) AS place FROM (
          SELECT window_start, window_end, who, SUM(amount) AS total
          FROM TABLE(HOP(TABLE timely, DESCRIPTOR(et), INTERVAL '5' SECOND, INTERVAL '10' SECOND))
          GROUP BY window_start, window_end, who)) WHERE place <= 3;
      INSERT INTO leaders SELECT place, who, total FROM (
        SELECT *, ROW_NUMBER() OVER (ORDER BY total DESC, who) AS place FROM (
          SELECT who, SUM(amount) AS total FROM everything GROUP BY who)) WHERE place <= 5;
    END;
    """


TEXT = "strftime(make_timestamp_ms({}), '%Y-%m-%d %H:%M:%S')"
QUERIES = {
    "fired": f"SELECT {TEXT.format('ts - ts % 10000')}, who, COUNT(*), SUM(amount) FROM everything GROUP BY ALL",
    "sessions": """
        SELECT who, MIN(id), COUNT(*), SUM(amount) FROM (
          SELECT *, COUNT(*) FILTER (WHERE pause) OVER (PARTITION BY who ORDER BY ts) AS number FROM (
            SELECT *, COALESCE(ts - LAG(ts) OVER (PARTITION BY who ORDER BY ts) > 500, true) AS pause FROM timely))
        GROUP BY who, number""",
    "counts": """
        SELECT who, id, 5, total FROM (
          SELECT *, ROW_NUMBER() OVER w AS number, SUM(amount) OVER (w ROWS 4 PRECEDING) AS total
          FROM timely WINDOW w AS (PARTITION BY who ORDER BY id))
        WHERE number >= 5 AND number % 2 = 0""",
    "slides": """
        SELECT who, id, COUNT(*) OVER w, SUM(amount) OVER w FROM timely
        WINDOW w AS (PARTITION BY who ORDER BY ts RANGE BETWEEN 1999 PRECEDING AND CURRENT ROW)""",
    "best": f"""
        SELECT {TEXT.format("w")}, ROW_NUMBER() OVER (PARTITION BY w ORDER BY total DESC, who) AS place, who, total
        FROM (
          SELECT ts - ts % 5000 - back AS w, who, SUM(amount) AS total
          FROM timely, (VALUES (0), (5000)) AS hops(back) GROUP BY ALL)
        QUALIFY place <= 3""",
    "leaders": """
        SELECT ROW_NUMBER() OVER (ORDER BY total DESC, who) AS place, who, total
        FROM (SELECT who, SUM(amount) AS total FROM everything GROUP BY who) QUALIFY place <= 5""",
}


def expected() -> dict[str, list[tuple[Any, ...]]]:
    """What batch queries say of all rows, by table, sorted."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE everything (id BIGINT, who VARCHAR, amount BIGINT, late BOOLEAN, ts BIGINT)")
    connection.executemany("INSERT INTO everything VALUES (?, ?, ?, ?, ?)", [tuple(r.values()) for _, r in rows(COUNT)])
    connection.execute("CREATE VIEW timely AS FROM everything WHERE NOT late")
    return {name: sorted(connection.execute(query).fetchall()) for name, query in QUERIES.items()}


def answered(bootstrap: str, sinks: dict[str, str]) -> dict[str, list[tuple[Any, ...]]]:
    """What the topics hold. Fails where a changelog is not well formed."""
    records = {name: read(bootstrap, topic) for name, topic in sinks.items()}
    tables = {name: [json.loads(v) for _, v in records[name] if v is not None] for name in SINKS}
    tables |= {"fired": list(upserted(records["fired"]).values()), "leaders": debezium(records["leaders"])}
    columns = {"leaders": ("place", "who", "total")}
    found = {}
    for name, table in tables.items():
        for row in table:
            if "w" in row:
                row["w"] = row["w"].removesuffix(".000")
        found[name] = sorted(tuple(row[c] for c in columns.get(name, tuple(row))) for row in table)
    return found


def test_windows_and_top_n_that_are_killed_end_with_the_answer_of_a_batch_query(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, sinks = make_topic("everything"), {name: make_topic(name) for name in SINKS}
    given = rows(COUNT)
    feed(kafka.bootstrap, source, islice(given, COUNT // 2))
    running = service(pipeline(source, sinks), kafka.bootstrap, BATCH__ROWS=str(BATCH))

    def batches() -> int:
        return sum(event["event"] == "batch" for event in running.events())

    running.start()
    running.until("both jobs have done some batches", lambda: batches() >= 8)
    # The jobs go on while we look. They cannot end before they are killed: the last rows are not there yet.
    feed(kafka.bootstrap, source, islice(given, COUNT // 4))
    half = 2 * math.ceil(COUNT / 2 / BATCH)
    running.until("they are in the midst of the rest", lambda: batches() >= half + 4)
    running.kill()
    feed(kafka.bootstrap, source, given)
    running.start()
    assert running.wait() == 0, running.log[-4000:]
    found, batch = answered(kafka.bootstrap, sinks), expected()
    for name in SINKS:
        assert found[name] == batch[name], name
