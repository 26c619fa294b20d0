"""Rows produced at a steady rate, in a thread of its own."""

from __future__ import annotations

import random
import threading
import time

from confluent_kafka import Producer

from bench.cases import PARTITIONS

_STEP = 0.01


class Steady:
    """Payments at `rate` rows a second while its `with` block lasts; `ms` of a row is when it is sent."""

    def __init__(self, bootstrap: str, topic: str, rate: int, keys: int) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2, "acks": "1"})
        self._topic, self._rate, self._keys = topic, rate, keys
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
        chosen = random.Random(1)
        started = time.monotonic()
        while not self._stop.is_set():
            due = int((time.monotonic() - started) * self._rate)
            now = time.time_ns() // 1_000_000
            while self.sent < due:
                account = chosen.randrange(self._keys)
                value = f'{{"id":{self.sent},"account":{account},"amount":1.5,"ms":{now}}}'
                self._producer.produce(self._topic, value, partition=self.sent % PARTITIONS)
                self.sent += 1
            self._producer.poll(0)
            time.sleep(_STEP)
