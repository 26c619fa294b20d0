"""Rows produced at a steady rate, in a thread of its own."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from confluent_kafka import Producer

from bench.cases import PARTITIONS

_STEP = 0.01


def payments_sent_now(keys: int) -> Callable[[int], str]:
    """Payments of accounts chosen at random; `ms` of a row is when it is sent."""
    chosen = random.Random(1)

    def payment(number: int) -> str:
        now = time.time_ns() // 1_000_000
        return f'{{"id":{number},"account":{chosen.randrange(keys)},"amount":1.5,"ms":{now}}}'

    return payment


class Steady:
    """Rows at `rate` a second while its `with` block lasts: the `value` of 0, of 1, ..., each to the next partition."""

    def __init__(
        self, bootstrap: str, topic: str, rate: int, value: Callable[[int], str], partitions: int = PARTITIONS
    ) -> None:
        self._partitions = partitions
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2, "acks": "1"})
        self._topic, self._rate, self._value = topic, rate, value
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="steady")
        self.sent = 0

    def __enter__(self) -> Steady:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.flush(30)

    def _run(self) -> None:
        started = time.monotonic()
        while not self._stop.is_set():
            due = int((time.monotonic() - started) * self._rate)
            while self.sent < due:
                self._producer.produce(self._topic, self._value(self.sent), partition=self.sent % self._partitions)
                self.sent += 1
            self._producer.poll(0)
            time.sleep(_STEP)
