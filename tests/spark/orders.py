"""The pipeline and the rows that the tests through real Kafka and real Spark share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from tests.spark.topics import debezium, read, upserted

BASE = 1_700_000_000_000


def orders(count: int, users: int = 50) -> Iterator[tuple[int, dict[str, Any]]]:
    """`count` orders over two partitions, event time a little out of order, 20 rows a second of event time."""
    for i in range(count):
        ts = BASE + i * 50 - (i * 7919 % 11) * 30
        yield i % 2, {"id": i, "user": f"u{i * 31 % users}", "amount": (i * 37) % 1000, "ts": ts}


def pipeline(source: str, totals: str, windows: str, changes: str, ends: Mapping[int, int] | None = None) -> str:
    """Running totals by user (upsert), revenue per window (append-only) and users by how much they spend, a group over
    a group (debezium-json, with retractions), in one statement set. It ends where the topic ends now, or where `ends`
    says, by partition."""
    bounded = "'scan.bounded.mode' = 'latest-offset'"
    if ends is not None:
        places = ";".join(f"partition:{p},offset:{o}" for p, o in ends.items())
        bounded = f"'scan.bounded.mode' = 'specific-offsets', 'scan.bounded.specific-offsets' = '{places}'"
    return f"""
    SET 'pipeline.name' = 'orders';
    CREATE TABLE orders (
      id BIGINT, `user` STRING, amount BIGINT, ts BIGINT,
      et AS TO_TIMESTAMP_LTZ(ts, 3),
      WATERMARK FOR et AS et - INTERVAL '1' SECOND
    ) WITH ('connector' = 'kafka', 'topic' = '{source}', 'scan.startup.mode' = 'earliest-offset',
            {bounded}, 'format' = 'json');
    CREATE TABLE totals (`user` STRING, n BIGINT, total BIGINT, PRIMARY KEY (`user`) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{totals}', 'key.format' = 'json', 'value.format' = 'json');
    CREATE TABLE windows (w TIMESTAMP(3), `user` STRING, n BIGINT, total BIGINT)
      WITH ('connector' = 'kafka', 'topic' = '{windows}', 'format' = 'json');
    CREATE TABLE spread (bracket BIGINT, users BIGINT, highest BIGINT)
      WITH ('connector' = 'kafka', 'topic' = '{changes}', 'format' = 'debezium-json');
    CREATE VIEW by_user AS SELECT `user`, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY `user`;
    EXECUTE STATEMENT SET BEGIN
      INSERT INTO totals SELECT * FROM by_user;
      INSERT INTO windows SELECT window_start, `user`, COUNT(*), SUM(amount)
        FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(et), INTERVAL '10' SECOND))
        GROUP BY window_start, window_end, `user`;
      INSERT INTO spread SELECT total / 5000, COUNT(*), MAX(total) FROM by_user GROUP BY total / 5000;
    END;
    """


def expected(count: int, users: int = 50) -> dict[str, list[tuple[Any, ...]]]:
    """What a batch query says of the same rows, by table, sorted."""
    connection = duckdb.connect()
    connection.execute('CREATE TABLE orders (id BIGINT, "user" VARCHAR, amount BIGINT, ts BIGINT)')
    rows = [(r["id"], r["user"], r["amount"], r["ts"]) for _, r in orders(count, users)]
    connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", rows)
    by_user = 'SELECT "user", COUNT(*) AS n, SUM(amount)::BIGINT AS total FROM orders GROUP BY 1'
    queries = {
        "totals": by_user,
        "windows": (
            "SELECT strftime(make_timestamp_ms(ts - ts % 10000), '%Y-%m-%d %H:%M:%S') AS w, \"user\", COUNT(*),"
            " SUM(amount)::BIGINT FROM orders GROUP BY 1, 2"
        ),
        "spread": f"SELECT total // 5000, COUNT(*), MAX(total) FROM ({by_user}) GROUP BY 1",
    }
    return {name: sorted(connection.execute(query).fetchall()) for name, query in queries.items()}


def answers(bootstrap: str, totals: str, windows: str, spread: str) -> dict[str, list[tuple[Any, ...]]]:
    """What the three topics hold, as `expected` says it. Fails where a changelog is not well formed."""
    by_user = upserted(read(bootstrap, totals))
    rows = [json.loads(value) for _, value in read(bootstrap, windows) if value is not None]
    return {
        "totals": sorted((r["user"], r["n"], r["total"]) for r in by_user.values()),
        "windows": sorted((r["w"].removesuffix(".000"), r["user"], r["n"], r["total"]) for r in rows),
        "spread": sorted((r["bracket"], r["users"], r["highest"]) for r in debezium(read(bootstrap, spread))),
    }
