"""Joins of every kind through real Kafka and real Spark: what comes out is what batch queries say of the same rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import debezium, feed, read

BASE = 1_700_000_000_000
ORDERS, PAYMENTS, PRICES = 3_000, 2_000, 400
USERS, PRODUCTS = 60, 7
HOT = 4
"""One row in this many is of the user u0."""

SOURCE = """CREATE TABLE {name} ({columns}, ts BIGINT, et AS TO_TIMESTAMP_LTZ(ts, 3),
  WATERMARK FOR et AS et - INTERVAL '1' SECOND{key}) WITH ('connector' = 'kafka', 'topic' = '{topic}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = '{format}');
"""
SINK = "CREATE TABLE {name} ({columns}) WITH ('connector' = 'kafka', 'topic' = '{topic}', 'format' = '{format}');\n"

TABLES = {
    "orders": ("id BIGINT, `user` STRING, product STRING, amount BIGINT", "json", ""),
    "changed": ("id BIGINT, `user` STRING, product STRING, amount BIGINT", "debezium-json", ""),
    "payments": ("id BIGINT, `user` STRING, amount BIGINT", "json", ""),
    "prices": ("product STRING, cents BIGINT", "debezium-json", ", PRIMARY KEY (product) NOT ENFORCED"),
}
"""`changed` are orders that are changed and deleted soon after they come; `prices` are versions."""

WINDOW = "TABLE(TUMBLE(TABLE {}, DESCRIPTOR(et), INTERVAL '5' SECOND))"
VERSION = "FOR SYSTEM_TIME AS OF o.et AS p ON o.product = p.product"
NEAR = (
    "o.`user` = p.`user` AND p.et BETWEEN o.et - INTERVAL '1' SECOND AND o.et + INTERVAL '2' SECOND"
    " AND p.amount > o.amount"
)

Answer = tuple[str, str, str | None]
"""Columns, a query, and the query in batch where its text is another."""

BY_TIME: dict[str, Answer] = {
    # An event-time temporal join: a version for each order, or none before the first.
    **{
        name: (
            "id BIGINT, cents BIGINT",
            f"SELECT {hint} o.id, p.cents FROM {orders} AS o {kind} prices {VERSION}",
            f"SELECT o.id, p.cents FROM {orders} AS o ASOF {kind} prices AS p"
            " ON o.product = p.product AND o.ts >= p.ts",
        )
        for name, orders, kind, hint in (
            ("priced", "orders", "LEFT JOIN", ""),
            ("priced_apart", "orders", "JOIN", "/*+ SKEW('o', 'product', 'p1') */"),
            ("changes_priced", "changed", "LEFT JOIN", ""),
            ("changes_priced_apart", "changed", "JOIN", "/*+ SKEW('o', 'product') */"),
        )
    },
    # A window join, both sides padded.
    "met": (
        "id BIGINT, paid BIGINT",
        f"SELECT o.id, p.id FROM {WINDOW.format('orders')} AS o FULL JOIN {WINDOW.format('payments')} AS p"
        " ON o.`user` = p.`user` AND o.window_start = p.window_start AND o.window_end = p.window_end",
        "SELECT o.id, p.id FROM orders AS o FULL JOIN payments AS p"
        " ON o.`user` = p.`user` AND o.ts // 5000 = p.ts // 5000",
    ),
    "users_in_one": (
        "who STRING",
        f"SELECT `user` FROM (SELECT window_start, window_end, `user` FROM {WINDOW.format('orders')}"
        f" EXCEPT ALL SELECT window_start, window_end, `user` FROM {WINDOW.format('payments')}) AS t",
        "SELECT `user` FROM (SELECT ts // 5000, `user` FROM orders EXCEPT ALL SELECT ts // 5000, `user` FROM payments)",
    ),
    **{
        f"near_{kind.lower()}": (
            "id BIGINT, paid BIGINT",
            f"SELECT o.id, p.id FROM orders AS o {kind} JOIN payments AS p ON {NEAR}",
            None,
        )
        for kind in ("INNER", "LEFT", "RIGHT", "FULL")
    },
    **{
        name: (
            "id BIGINT",
            f"SELECT id FROM orders AS o WHERE {word} (SELECT * FROM payments AS p WHERE {NEAR})",
            None,
        )
        for name, word in (("near", "EXISTS"), ("not_near", "NOT EXISTS"))
    },
}

AT_ANY_TIME: dict[str, Answer] = {
    "never_paid": (
        "id BIGINT",
        "SELECT id FROM orders WHERE NOT EXISTS (SELECT * FROM payments AS p WHERE p.`user` = orders.`user`)",
        None,
    ),
    "large_payers": (
        "id BIGINT",
        "SELECT id FROM changed WHERE `user` IN (SELECT `user` FROM payments WHERE amount > 990)",
        None,
    ),
    "small_payers": (
        "id BIGINT",
        "SELECT id FROM payments WHERE `user` NOT IN (SELECT `user` FROM changed WHERE amount > 990)",
        None,
    ),
    "large_payments": (
        "id BIGINT, is_large BOOLEAN, payments BIGINT",
        "SELECT id, amount > 900 OR EXISTS (SELECT * FROM payments AS p WHERE p.`user` = o.`user` AND p.amount > 990),"
        " (SELECT COUNT(*) FROM payments AS p WHERE p.`user` = o.`user`) FROM orders AS o",
        None,
    ),
    "users_of_both": ("who STRING", "SELECT `user` FROM orders INTERSECT SELECT `user` FROM payments", None),
    "amounts_of_one": ("amount BIGINT", "SELECT amount FROM payments EXCEPT ALL SELECT amount FROM changed", None),
    "largest": (
        "id BIGINT, paid BIGINT",
        "SELECT o.id, t.id FROM changed AS o, LATERAL"
        " (SELECT p.id FROM payments AS p WHERE p.`user` = o.`user` ORDER BY p.amount DESC, p.id LIMIT 2) AS t",
        None,
    ),
    "sums": (
        "id BIGINT, s BIGINT, n BIGINT",
        "SELECT o.id, t.s, t.n FROM orders AS o LEFT JOIN LATERAL"
        " (SELECT SUM(x.amount) AS s, COUNT(*) AS n FROM changed AS x WHERE x.`user` = o.`user` AND x.amount < o.amount"
        ") AS t ON TRUE",
        None,
    ),
    **{
        f"hot_{kind.lower()}": (
            "id BIGINT, paid BIGINT",
            f"SELECT {hint} o.id, p.id FROM changed AS o {kind} JOIN payments AS p"
            " ON o.`user` = p.`user` AND o.amount + p.amount = 1000",
            None,
        )
        for kind, hint in (
            ("INNER", "/*+ SKEW('o', 'user', 'u0') */"),
            ("LEFT", "/*+ SKEW('o', 'user', 'u0') */"),
            ("RIGHT", "/*+ SKEW('p', 'user', 'u0') */"),
            ("FULL", ""),
        )
    },
}

APPENDS = {name for name in BY_TIME if not name.startswith("changes_")}


def who(i: int, others: int) -> str:
    return "u0" if i % HOT == 0 else f"u{others}"


def orders() -> Iterator[tuple[int, dict[str, Any]]]:
    for i in range(ORDERS):
        own = {"id": i, "user": who(i, i * 31 % USERS), "product": f"p{i * 17 % PRODUCTS}", "amount": i * 37 % 1000}
        yield i % 2, {**own, "ts": BASE + i * 20 - (i * 7919 % 11) * 30}


def changed() -> Iterator[tuple[int, dict[str, Any]]]:
    """Every third order again, each of which is changed once or deleted ten orders later, or stays."""
    found = [order for order in orders() if order[1]["id"] % 3 == 0]
    for i, (partition, row) in enumerate(found):
        yield partition, {"before": None, "after": row, "op": "c"}
        if i < 10:
            continue
        partition, row = found[i - 10]
        if row["id"] % 4 == 1:
            new = {**row, "product": "p1", "user": "u0", "amount": row["amount"] + 1}
            yield partition, {"before": row, "after": new, "op": "u"}
        elif row["id"] % 4 == 2:
            yield partition, {"before": row, "after": None, "op": "d"}


def payments() -> Iterator[tuple[int, dict[str, Any]]]:
    for i in range(PAYMENTS):
        own = {"id": i, "user": who(i, i * 13 % USERS + USERS // 3), "amount": i * 41 % 1000}
        yield i % 2, {**own, "ts": BASE + i * 30 - (i * 104_729 % 7) * 40}


def prices() -> Iterator[tuple[int, dict[str, Any]]]:
    """Versions of the price of each product, one after another from some time after the first order."""
    for i in range(PRICES):
        product = i * 3 % (PRODUCTS - 1)
        row = {"product": f"p{product}", "cents": i, "ts": BASE + 1_000 + i * 140}
        yield product % 2, {"before": None, "after": row, "op": "c" if i < PRODUCTS else "r"}


ROWS: dict[str, Callable[[], Iterator[tuple[int, dict[str, Any]]]]] = {
    "orders": orders,
    "changed": changed,
    "payments": payments,
    "prices": prices,
}


@cache
def in_the_end() -> duckdb.DuckDBPyConnection:
    """A database with the rows that are there in the end, and all versions."""
    connection = duckdb.connect()
    for name, rows in ROWS.items():
        there: dict[str, dict[str, Any]] = {}
        for _, row in rows():
            before, after = (row["before"], row["after"]) if "op" in row else (None, row)
            if before:
                del there[json.dumps(before)]
            if after:
                there[json.dumps(after)] = after
        connection.register("given", pa.Table.from_pylist(list(there.values())))
        connection.execute(f"CREATE TABLE {name} AS SELECT *, make_timestamp(ts * 1000) AS et FROM given")
        connection.unregister("given")
    return connection


def expected(query: str) -> list[tuple[Any, ...]]:
    return sorted(in_the_end().execute(query.replace("`", '"')).fetchall(), key=repr)


@pytest.mark.parametrize(("answers", "batch"), [(BY_TIME, 1_700), (AT_ANY_TIME, 2_300)], ids=["by time", "at any time"])
def test_joins_and_set_operations_over_bounded_topics_end_with_the_answers_of_batch_queries(
    answers: dict[str, Answer],
    batch: int,
    kafka: Broker,
    make_topic: MakeTopic,
    service: Callable[..., ServiceProcess],
) -> None:
    text = " ".join(query for _, query, _ in answers.values())
    read_from = [name for name in TABLES if f" {name} " in text.replace(",", " ").replace("\n", " ")]
    topics = {name: make_topic(name.replace("_", "-")) for name in (*read_from, *answers)}
    for name in read_from:
        feed(kafka.bootstrap, topics[name], ROWS[name]())
    pipeline = "SET 'pipeline.name' = 'joins';\n"
    for name in read_from:
        columns, form, key = TABLES[name]
        pipeline += SOURCE.format(name=name, columns=columns, key=key, topic=topics[name], format=form)
    for name, (columns, _, _) in answers.items():
        form = "json" if name in APPENDS else "debezium-json"
        pipeline += SINK.format(name=name, columns=columns, topic=topics[name], format=form)
    inserts = "".join(f"INSERT INTO {name} {query};\n" for name, (_, query, _) in answers.items())
    pipeline += f"EXECUTE STATEMENT SET BEGIN\n{inserts}END;"
    running = service(pipeline, kafka.bootstrap, BATCH__ROWS=str(batch))
    running.start()
    assert running.wait() == 0, running.log[-4000:]
    for name, (columns, query, in_batch) in answers.items():
        records = read(kafka.bootstrap, topics[name])
        came = [json.loads(v) for _, v in records if v is not None] if name in APPENDS else debezium(records)
        shown = [column.split()[0] for column in columns.split(", ")]
        assert sorted((tuple(row[c] for c in shown) for row in came), key=repr) == expected(in_batch or query), name
