"""What a batch costs over little and over much state: 2,000 rows a second over 10 thousand and over 3 million keys."""

from __future__ import annotations

import csv
import time
import uuid
from contextlib import closing
from pathlib import Path

from bench.cases import ACCOUNTS, Case
from bench.feed import create_topics, feed_numbered
from bench.progress import Progress
from bench.scrape import Scrape
from bench.service_run import running, wait_for
from bench.steady import Steady, payments_sent_now
from bench.workloads import payment_of_each
from service.host.machine import free_ports

KEYS = (10_000, 3_000_000)
RATE = 2_000
WARM_UP = 30.0
SECONDS = 60.0
CASE = Case("state", "batches over much state", "group_by", (), head=ACCOUNTS, until="unbounded")


def report(bootstrap: str, out: Path, keys: tuple[int, ...] = KEYS) -> None:
    """Print and save the mean time of a batch for each number of keys."""
    out.mkdir(parents=True, exist_ok=True)
    lines = []
    for number in keys:
        try:
            batches, mean = measure(bootstrap, number)
        except RuntimeError as error:
            print(f"state of {number:,} keys: {error}", flush=True)
            continue
        lines.append((number, RATE, batches, round(mean, 4)))
        print(f"state of {number:,} keys: a batch takes {mean:.3f} s (mean of {batches} batches)", flush=True)
    with (out / "state.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("keys", "rows_per_second", "batches", "mean_batch_seconds"), *lines])


def measure(bootstrap: str, keys: int, warm_up: float = WARM_UP, seconds: float = SECONDS) -> tuple[int, float]:
    """How many batches ran while it was measured, and how long one took."""
    name = f"state-{keys}-{uuid.uuid4().hex[:8]}"
    source, output = f"{name}-in", f"{name}-out"
    create_topics(bootstrap, [source, output])
    feed_numbered(bootstrap, source, payment_of_each, range(keys))
    sql = CASE.sql(bootstrap, name, output, {"PAYMENTS": source})
    (port,) = free_ports(1)
    scrape = Scrape(port)
    with (
        closing(Progress(bootstrap, name)) as progress,
        running(CASE, "tailrace", sql, {"TAILRACE_HTTP__PORT": str(port)}) as service,
    ):
        wait_for("the state", lambda: progress.rows_read([source]) >= keys, service.check, 900)
        with Steady(bootstrap, source, RATE, payments_sent_now(keys)):
            time.sleep(warm_up)
            before = scrape.batches()
            time.sleep(seconds)
            service.check()
            after = scrape.batches()
    if after.done == before.done:
        raise RuntimeError("no batch ran")
    return after.done - before.done, (after.seconds - before.seconds) / (after.done - before.done)
