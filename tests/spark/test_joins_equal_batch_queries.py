"""Joins of every kind through real Kafka and real Spark: what comes out is what batch queries say of the same rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import duckdb

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import debezium, feed, read

BASE = 1_700_000_000_000
ORDERS, PAYMENTS, PRICES = 3_000, 2_000, 400
USERS, PRODUCTS = 60, 7

SOURCE = """CREATE TABLE {name} ({columns}, ts BIGINT, et AS TO_TIMESTAMP_LTZ(ts, 3),
  WATERMARK FOR et AS et - INTERVAL '1' SECOND{key}) WITH ('connector' = 'kafka', 'topic' = '{topic}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = '{format}');
"""
SINK = "CREATE TABLE {name} ({columns}) WITH ('connector' = 'kafka', 'topic' = '{topic}', 'format' = '{format}');\n"

WINDOW = "TABLE(TUMBLE(TABLE {}, DESCRIPTOR(et), INTERVAL '5' SECOND))"

ANSWERS = {
    # An event-time temporal join: a version for each order, or none before the first.
    "priced": (
        "id BIGINT, cents BIGINT",
        "SELECT o.id, p.cents FROM orders AS o LEFT JOIN prices FOR SYSTEM_TIME AS OF o.et AS p"
        " ON o.product = p.product",
        "SELECT o.id, p.cents FROM orders AS o ASOF LEFT JOIN prices AS p ON o.product = p.product AND o.ts >= p.ts",
    ),
    # A window join, both sides padded.
    "met": (
        "id BIGINT, paid BIGINT",
        f"SELECT o.id, p.id FROM {WINDOW.format('orders')} AS o FULL JOIN {WINDOW.format('payments')} AS p"
        " ON o.`user` = p.`user` AND o.window_start = p.window_start AND o.window_end = p.window_end",
        "SELECT o.id, p.id FROM orders AS o FULL JOIN payments AS p"
        ' ON o."user" = p."user" AND o.ts // 5000 = p.ts // 5000',
    ),
    "never_paid": (
        "id BIGINT",
        "SELECT id FROM orders WHERE NOT EXISTS (SELECT * FROM payments AS p WHERE p.`user` = orders.`user`)",
        'SELECT id FROM orders WHERE NOT EXISTS (SELECT * FROM payments AS p WHERE p."user" = orders."user")',
    ),
    "large_payers": (
        "id BIGINT",
        "SELECT id FROM orders WHERE `user` IN (SELECT `user` FROM payments WHERE amount > 990)",
        'SELECT id FROM orders WHERE "user" IN (SELECT "user" FROM payments WHERE amount > 990)',
    ),
    "told": (
        "id BIGINT, is_large BOOLEAN, payments BIGINT",
        "SELECT id, amount > 900 OR EXISTS (SELECT * FROM payments AS p WHERE p.`user` = o.`user` AND p.amount > 990),"
        " (SELECT COUNT(*) FROM payments AS p WHERE p.`user` = o.`user`) FROM orders AS o",
        'SELECT id, amount > 900 OR EXISTS (SELECT * FROM payments AS p WHERE p."user" = o."user" AND p.amount > 990),'
        ' (SELECT COUNT(*) FROM payments AS p WHERE p."user" = o."user") FROM orders AS o',
    ),
    "users_of_both": (
        "who STRING",
        "SELECT `user` FROM orders INTERSECT SELECT `user` FROM payments",
        'SELECT "user" FROM orders INTERSECT SELECT "user" FROM payments',
    ),
    "amounts_of_one": (
        "amount BIGINT",
        "SELECT amount FROM orders EXCEPT ALL SELECT amount FROM payments",
        "SELECT amount FROM orders EXCEPT ALL SELECT amount FROM payments",
    ),
}
APPENDS = ("priced", "met")


def orders() -> Iterator[tuple[int, dict[str, Any]]]:
    for i in range(ORDERS):
        own = {"id": i, "user": f"u{i * 31 % USERS}", "product": f"p{i * 17 % PRODUCTS}", "amount": i * 37 % 1000}
        yield i % 2, {**own, "ts": BASE + i * 20 - (i * 7919 % 11) * 30}


def payments() -> Iterator[tuple[int, dict[str, Any]]]:
    for i in range(PAYMENTS):
        own = {"id": i, "user": f"u{i * 13 % USERS + USERS // 3}", "amount": i * 41 % 1000}
        yield i % 2, {**own, "ts": BASE + i * 30 - (i * 104_729 % 7) * 40}


def prices() -> Iterator[tuple[int, dict[str, Any]]]:
    """Versions of the price of each product, one after another from some time after the first order."""
    for i in range(PRICES):
        product = i * 3 % (PRODUCTS - 1)
        row = {"product": f"p{product}", "cents": i, "ts": BASE + 1_000 + i * 140}
        yield product % 2, {"before": None, "after": row, "op": "c" if i < PRODUCTS else "r"}


def expected(query: str) -> list[tuple[Any, ...]]:
    connection = duckdb.connect()
    sources: dict[str, tuple[str, Callable[[], Iterator[tuple[int, dict[str, Any]]]]]] = {
        "orders": ('id BIGINT, "user" VARCHAR, product VARCHAR, amount BIGINT, ts BIGINT', orders),
        "payments": ('id BIGINT, "user" VARCHAR, amount BIGINT, ts BIGINT', payments),
        "prices": ("product VARCHAR, cents BIGINT, ts BIGINT", prices),
    }
    for name, (columns, rows) in sources.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")
        given = [tuple(row.get("after", row).values()) for _, row in rows()]
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(given[0]))})", given)
    return sorted(connection.execute(query).fetchall(), key=repr)


def test_joins_and_set_operations_over_bounded_topics_end_with_the_answers_of_batch_queries(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    topics = {name: make_topic(name.replace("_", "-")) for name in ("orders", "payments", "prices", *ANSWERS)}
    for name, rows in (("orders", orders()), ("payments", payments()), ("prices", prices())):
        feed(kafka.bootstrap, topics[name], rows)
    tables = [
        ("orders", "id BIGINT, `user` STRING, product STRING, amount BIGINT", "json", ""),
        ("payments", "id BIGINT, `user` STRING, amount BIGINT", "json", ""),
        ("prices", "product STRING, cents BIGINT", "debezium-json", ", PRIMARY KEY (product) NOT ENFORCED"),
    ]
    text = "SET 'pipeline.name' = 'joins';\n" + "".join(
        SOURCE.format(name=name, columns=columns, key=key, topic=topics[name], format=form)
        for name, columns, form, key in tables
    )
    for name, (columns, _, _) in ANSWERS.items():
        form = "json" if name in APPENDS else "debezium-json"
        text += SINK.format(name=name, columns=columns, topic=topics[name], format=form)
    inserts = "".join(f"INSERT INTO {name} {query};\n" for name, (_, query, _) in ANSWERS.items())
    running = service(f"{text}EXECUTE STATEMENT SET BEGIN\n{inserts}END;", kafka.bootstrap, BATCH__ROWS="2500")
    running.start()
    assert running.wait() == 0, running.log[-4000:]
    for name, (_, _, query) in ANSWERS.items():
        records = read(kafka.bootstrap, topics[name])
        came = [json.loads(v) for _, v in records if v is not None] if name in APPENDS else debezium(records)
        assert sorted((tuple(row.values()) for row in came), key=repr) == expected(query), name
