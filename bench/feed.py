"""Generated rows in Kafka: always the same ones for the same topic and number of rows.

Event time advances one millisecond a row; a row is up to two seconds older than that, in any order. Orders and
shipments go side by side: each order is shipped once, up to six seconds later, and an order's shipment has its number,
as has its invoice. Of the accounts there is a version for every nine orders, or for each, newer than those before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from itertools import islice

import duckdb
import numpy as np
import pyarrow as pa
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.cases import PARTITIONS, Topic
from bench.nexmark import side_input
from bench.nexmark.events import events
from bench.progress import Progress

BLOCK = 200_000
START_MS = 1_704_067_200_000  # 2024-01-01

Columns = dict[str, np.ndarray]
Maker = Callable[[np.random.Generator, np.ndarray, int], tuple[Columns | pa.Table, str]]
"""Columns of the rows with some numbers, and DuckDB text for the record of a row."""

PRODUCER = {
    "linger.ms": 50,
    "batch.num.messages": 50_000,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 2_000_000,
    "queue.buffering.max.kbytes": 1_000_000,
    "acks": "1",
}


def _payments(random: np.random.Generator, numbers: np.ndarray, keys: int) -> tuple[Columns, str]:
    columns = _payer(random, numbers, keys) | {"ms": START_MS + numbers - random.integers(0, 2_000, len(numbers))}
    return columns, """'{"id":' || id || ',"account":' || account || ',"amount":' || amount || ',"ms":' || ms || '}'"""


def _orders(random: np.random.Generator, numbers: np.ndarray, keys: int) -> tuple[Columns, str]:
    columns = _payer(random, numbers, keys) | {"ms": START_MS + 2 * numbers - random.integers(0, 2_000, len(numbers))}
    return columns, """'{"id":' || id || ',"account":' || account || ',"amount":' || amount || ',"ms":' || ms || '}'"""


def _shipments(random: np.random.Generator, numbers: np.ndarray, keys: int) -> tuple[Columns, str]:
    ms = START_MS + 2 * numbers + random.integers(-2_000, 4_000, len(numbers))
    columns = {"id": numbers, "carrier": random.integers(0, 50, len(numbers)), "ms": ms}
    return columns, """'{"order_id":' || id || ',"carrier":' || carrier || ',"ms":' || ms || '}'"""


def _invoices(random: np.random.Generator, numbers: np.ndarray, keys: int) -> tuple[Columns, str]:
    columns = {"id": numbers, "cents": random.integers(1, 50_000, len(numbers))}
    return columns, """'{"order_id":' || id || ',"cents":' || cents || '}'"""


def _accounts(random: np.random.Generator, numbers: np.ndarray, keys: int) -> tuple[Columns, str]:
    """Accounts with as much event time as orders of which there are nine times as many."""
    return _of_accounts(random, numbers, keys, 18)


def _versions(random: np.random.Generator, numbers: np.ndarray, keys: int) -> tuple[Columns, str]:
    """Accounts with as much event time as orders of which there are as many."""
    return _of_accounts(random, numbers, keys, 2)


def _of_accounts(random: np.random.Generator, numbers: np.ndarray, keys: int, ms: int) -> tuple[Columns, str]:
    """Every account once, then any of them again, one each `ms`: a table that a database sends."""
    account = np.where(numbers < keys, numbers, random.integers(0, keys, len(numbers)))
    columns = {"account": account, "tier": random.integers(0, 5, len(numbers)), "ms": START_MS + ms * numbers}
    return columns, _inserted("""'{"account":' || account || ',"tier":' || tier || ',"ms":' || ms || '}'""")


def _side_input(random: np.random.Generator, numbers: np.ndarray, keys: int) -> tuple[Columns, str]:
    """The side input of Nexmark's q13 as a table that a database sends."""
    names = dict(side_input.rows())
    columns = {"key": numbers, "name": np.array([names[key] for key in numbers.tolist()], dtype=object)}
    return columns, _inserted("""'{"key":' || key || ',"value":"' || name || '"}'""")


def _inserted(row: str) -> str:
    """DuckDB text for the record of Debezium that says that `row` is new."""
    return f"""'{{"before":null,"after":' || {row} || ',"op":"c"}}'"""


def _payer(random: np.random.Generator, numbers: np.ndarray, keys: int) -> Columns:
    cents = random.integers(1, 50_000, len(numbers))
    return {"id": numbers, "account": random.integers(0, keys, len(numbers)), "amount": cents / 100}


MAKERS: dict[str, Maker] = {
    "payments": _payments,
    "orders": _orders,
    "shipments": _shipments,
    "invoices": _invoices,
    "accounts": _accounts,
    "versions": _versions,
    "side_input": _side_input,
    "nexmark": events,
}


def blocks(topic: Topic, rows: int) -> Iterable[list[bytes]]:
    """The values of the topic's rows, block by block."""
    database = duckdb.connect(config={"threads": 1})
    for start in range(0, rows, BLOCK):
        random = np.random.default_rng([topic.keys, start])
        numbers = np.arange(start, min(start + BLOCK, rows))
        columns, text = MAKERS[topic.kind](random, numbers, topic.keys)
        database.register("columns", columns)
        yield [row[0] for row in database.sql(f"SELECT encode({text}) FROM columns").fetchall()]
        database.unregister("columns")


def feed(bootstrap: str, topic: Topic, rows_of_case: int) -> None:
    """Fill the topic unless it has all its rows already; row n goes to partition n modulo the partitions."""
    rows, name = topic.rows(rows_of_case), topic.name(rows_of_case)
    create_topics(bootstrap, [name], topic.partitions)
    with closing(Progress(bootstrap, partitions=topic.partitions)) as progress:
        if progress.rows(name) == rows:
            return
        started = time.monotonic()
        _produce(bootstrap, name, blocks(topic, rows), topic.partitions)
        if progress.rows(name) != rows:
            raise RuntimeError(f"topic {name} did not take its {rows} rows")
    print(f"{name}: {rows:,} rows fed in {time.monotonic() - started:.1f} s", flush=True)


def feed_numbered(bootstrap: str, name: str, value: Callable[[int], str], numbers: range) -> None:
    """Put the value of each of the `numbers` into the topic called `name`."""
    values = (value(number).encode() for number in numbers)
    _produce(bootstrap, name, iter(lambda: list(islice(values, BLOCK)), []))


def _produce(bootstrap: str, name: str, values: Iterable[list[bytes]], partitions: int = PARTITIONS) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **PRODUCER})
    for block in values:
        for number, value in enumerate(block):
            while True:
                try:
                    producer.produce(name, value, partition=number % partitions)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
    producer.flush(120)


def create_topics(bootstrap: str, names: list[str], partitions: int = PARTITIONS) -> None:
    """Make the topics that are not there, each with this number of partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
    present = admin.list_topics(timeout=20).topics
    wanted = [NewTopic(name, num_partitions=partitions, replication_factor=1) for name in names if name not in present]
    for future in admin.create_topics(wanted).values() if wanted else ():
        future.result(30)
