"""A pipeline with something of everything, and orders for it: a steady stream with unreadable records, rows that cannot
be computed and late ones in it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self
from uuid import uuid4

from tests.spark.topics import feed

QUERY = "orders"


class Topics:
    """Topics that no other test has; the service makes them."""

    def __init__(self) -> None:
        own = uuid4().hex[:8]
        self.orders, self.totals, self.windows, self.shares = (
            f"{n}-{own}" for n in ("orders", "totals", "windows", "shares")
        )
        self.dead, self.late = f"dead-{own}", f"late-{own}"

    def all(self) -> set[str]:
        """Every topic whose name may be a label."""
        return {self.orders, self.totals, self.windows, self.shares, self.dead}


def pipeline(topics: Topics) -> str:
    """Totals with retractions, windows with late rows, a division that may fail."""
    return f"""
    SET 'pipeline.name' = '{QUERY}';
    CREATE TABLE orders (
      name STRING, amount BIGINT, parts BIGINT, ts BIGINT,
      et AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR et AS et - INTERVAL '1' SECOND
    ) WITH ('connector' = 'kafka', 'topic' = '{topics.orders}', 'scan.startup.mode' = 'earliest-offset',
            'format' = 'json', 'scan.watermark.idle-timeout' = '5 s');
    CREATE TABLE totals (name STRING, total BIGINT)
      WITH ('connector' = 'kafka', 'topic' = '{topics.totals}', 'format' = 'debezium-json');
    CREATE TABLE windows (w TIMESTAMP(3), name STRING, n BIGINT)
      WITH ('connector' = 'kafka', 'topic' = '{topics.windows}', 'format' = 'json');
    CREATE TABLE shares (name STRING, share BIGINT)
      WITH ('connector' = 'kafka', 'topic' = '{topics.shares}', 'format' = 'json');
    EXECUTE STATEMENT SET BEGIN
      INSERT INTO totals SELECT name, SUM(amount) FROM orders GROUP BY name;
      INSERT INTO windows SELECT window_start, name, COUNT(*)
        FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(et), INTERVAL '1' SECOND)) GROUP BY window_start, window_end, name;
      INSERT INTO shares SELECT name, amount / parts FROM orders;
    END;
    """


class Feed:
    """Writes orders to both partitions of the topic in a thread of its own, from `with` on until its end."""

    EVERY = 0.2
    ROWS = 40

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="orders")
        self.fed = 0
        self.unreadable = 0
        self.uncomputable = 0
        self.faults = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self.EVERY):
            rows = list(self._rows())
            feed(self._bootstrap, self._topic, rows)
            self.fed += len(rows)

    def _rows(self) -> Iterator[tuple[int, bytes]]:
        now = int(time.time() * 1000)
        for i in range(self.ROWS):
            yield i % 2, _order(f"u{i % 7}", now + i)
        if self.faults.is_set():
            yield 0, b'{"name": "ann"'
            yield 1, _order("bob", now, parts=0)
            yield 0, _order("late", now - 600_000)
            self.unreadable += 1
            self.uncomputable += 1


def _order(name: str, ts: int, parts: int = 2) -> bytes:
    return json.dumps({"name": name, "amount": 11, "parts": parts, "ts": ts}).encode()
