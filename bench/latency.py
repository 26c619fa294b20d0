"""From produce to consume: how old a row's result is when a read-committed consumer gets it."""

from __future__ import annotations

import csv
import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from bench.cases import PARTITIONS, PAYMENTS, Case
from bench.feed import create_topics
from bench.service_run import Launcher, Service, running, wait_for
from bench.steady import Steady, payments_sent_now

RATES = (1_000, 10_000)
WARM_UP = 20.0
SECONDS = 60.0
CASE = Case("latency", "one result a row", "latency", (), head=PAYMENTS, start="latest-offset", until="unbounded")
LOOK = 0.005
"""The seconds between two looks of the reader."""

ENGINES = ("flink-row-by-row", "tailrace")
"""Flink without mini-batches: they would only hold rows back here."""


def report(bootstrap: str, engines: Sequence[str], out: Path) -> None:
    """Print and save p50, p95 and p99 for every rate and engine."""
    out.mkdir(parents=True, exist_ok=True)
    lines = []
    for rate in RATES:
        for engine in (engine for engine in ENGINES if engine in engines):
            try:
                found = measure(bootstrap, engine, rate)
            except RuntimeError as error:
                print(f"latency of {engine} at {rate:,} rows/s: {error}", flush=True)
                continue
            percentiles = [round(float(value)) for value in np.percentile(found, (50, 95, 99))]
            lines.append((engine, rate, len(found), *percentiles))
            print(
                f"latency of {engine} at {rate:,} rows/s: p50 {percentiles[0]} ms, p95 {percentiles[1]} ms,"
                f" p99 {percentiles[2]} ms ({len(found):,} rows)",
                flush=True,
            )
    with (out / "latency.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("engine", "rows_per_second", "rows", "p50_ms", "p95_ms", "p99_ms"), *lines])


def measure(bootstrap: str, engine: str, rate: int, warm_up: float = WARM_UP, seconds: float = SECONDS) -> np.ndarray:
    """The delays in milliseconds of all rows that were sent while it lasted, after the engine had warmed up."""
    with over_topics(bootstrap, engine, rate) as (service, consumer):
        return delays(service, consumer, warm_up, seconds)


@contextmanager
def over_topics(
    bootstrap: str,
    engine: str,
    rate: int,
    partitions: int = PARTITIONS,
    variables: Mapping[str, str] | None = None,
    launcher: Launcher | None = None,
) -> Iterator[tuple[Service, Consumer]]:
    """The engine over a topic of `partitions` that is fed throughout, and a reader of what it writes."""
    name = f"latency-{engine}-{rate}-{uuid.uuid4().hex[:8]}"
    source, output = f"{name}-in", f"{name}-out"
    create_topics(bootstrap, [source], partitions)
    create_topics(bootstrap, [output])
    sql = CASE.sql(bootstrap, name, output, {"PAYMENTS": source})
    with (
        running(CASE, engine, sql, variables, launcher) as service,
        closing(_consumer(bootstrap, output)) as consumer,
        Steady(bootstrap, source, rate, payments_sent_now(1_000), partitions),
    ):
        wait_for("the first result", lambda: bool(_delays(consumer)), service.check, 180)
        yield service, consumer


def delays(service: Service, consumer: Consumer, warm_up: float, seconds: float) -> np.ndarray:
    """The delays of the rows that come after the warm-up."""
    until = time.monotonic() + warm_up
    while time.monotonic() < until:
        _delays(consumer)
    found: list[int] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found += _delays(consumer)
        service.check()
    return np.array(found)


def _consumer(bootstrap: str, topic: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
    return consumer


def _delays(consumer: Consumer) -> list[int]:
    # A call returns when it has that many messages or its time is over: a longer time would be a delay of its own.
    messages = consumer.consume(5_000, LOOK)
    now = time.time_ns() // 1_000_000
    values = (message.value() for message in messages if message.error() is None)
    rows = (json.loads(value)["after"] for value in values if value)
    return [now - row["sent"] for row in rows if row is not None]
