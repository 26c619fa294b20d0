"""What Kafka partitions and shards cost: a steady 2,000 rows a second over topics of 2 to 256 partitions, and over 2 to
128 tasks a level; and a backlog.

Tailrace says how long its batches take. Flink has none, so beside it stands how old a row's result is.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench import latency
from bench.cases import CASES
from bench.cases import PARTITIONS as FEW
from bench.engines import IN_TASKS
from bench.measure import measure
from bench.scrape import Scrape
from bench.service_run import Launcher
from service.host.machine import free_ports

PARTITIONS = (2, 16, 64, 256)
TASKS = (2, 8, 32, 128)
"""Tasks that a level is asked to have; Flink is given this parallelism."""

BACKLOGS = (2, 64)
"""Partitions of the topics whose backlog is read."""

RATE = 2_000
WARM_UP = 20.0
SECONDS = 40.0
ENGINES = ("flink-row-by-row", "tailrace")
BACKLOG = "group-1k"


class Asked(NamedTuple):
    """Numbers of Kafka partitions, numbers of tasks of a level over few of them, and engines; a steady stream is looked
    at for `seconds`, after others to warm up."""

    partitions: Sequence[int]
    tasks: Sequence[int]
    engines: Sequence[str]
    warm_up: float = WARM_UP
    seconds: float = SECONDS


class Steadily(NamedTuple):
    """How a steady stream was followed: the mean time of a batch in seconds, which only Tailrace has, and the delay of
    a row's result in milliseconds."""

    batch: float | None
    median: float
    p99: float


def report(bootstrap: str, asked: Asked, rows: int, patience: float, out: Path) -> None:
    """Print and save what each engine takes over each number of partitions, then over each number of tasks."""
    out.mkdir(parents=True, exist_ok=True)
    lines: list[tuple[object, ...]] = []
    for engine in asked.engines:
        for number in asked.partitions:
            lines.append(_steady(bootstrap, engine, number, None, f"{number} Kafka partitions", asked))
    for number in asked.tasks:
        for engine in (engine for engine in asked.engines if engine in IN_TASKS):
            lines.append(_steady(bootstrap, engine, FEW, IN_TASKS[engine](number), f"{number} tasks", asked))
    for engine in asked.engines:
        for number in (each for each in BACKLOGS if each in asked.partitions):
            case = next(case for case in CASES if case.name == BACKLOG)
            case = replace(case, topics=tuple(replace(topic, partitions=number) for topic in case.topics))
            run = measure(bootstrap, case, engine, rows, patience)
            print(
                f"backlog over {number} partitions on {engine}: {run.error or f'{run.middle:,.0f} rows/s'}", flush=True
            )
            lines.append((engine, f"backlog over {number}", "", "", "", round(run.middle)))
    with (out / "partitions.csv").open("w", newline="") as file:
        head = ("engine", "what", "batch_seconds", "p50_ms", "p99_ms", "rows_per_second")
        csv.writer(file).writerows([head, *lines])


def _steady(
    bootstrap: str, engine: str, partitions: int, launcher: Launcher | None, what: str, asked: Asked
) -> tuple[object, ...]:
    try:
        result = steadily(bootstrap, engine, partitions, launcher, asked)
    except RuntimeError as error:
        print(f"{what} on {engine}: {error}", flush=True)
        return engine, what, "", "", "", ""
    batch = "" if result.batch is None else f"a batch takes {result.batch:.3f} s, "
    print(f"{what} on {engine}: {batch}p50 {result.median:.0f} ms, p99 {result.p99:.0f} ms", flush=True)
    return engine, what, result.batch, round(result.median), round(result.p99), ""


def steadily(bootstrap: str, engine: str, partitions: int, launcher: Launcher | None, asked: Asked) -> Steadily:
    """Follow 2,000 rows a second for a while."""
    (port,) = free_ports(1)
    scrape = Scrape(port)
    own = {"TAILRACE_HTTP__PORT": str(port)} if engine == "tailrace" else {}
    with latency.over_topics(bootstrap, engine, RATE, partitions, own, launcher) as (service, consumer):
        latency.delays(service, consumer, 0.0, asked.warm_up)
        before = scrape.batches() if own else None
        found = latency.delays(service, consumer, 0.0, asked.seconds)
        after = scrape.batches() if own else None
    batch = None
    if before is not None and after is not None and after.done > before.done:
        batch = (after.seconds - before.seconds) / (after.done - before.done)
    if not len(found):
        raise RuntimeError("no row came")
    median, p99 = np.percentile(found, (50, 99))
    return Steadily(batch, float(median), float(p99))
