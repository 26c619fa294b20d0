"""What kept state costs a start: from `run` to the first commit with nothing kept, and with up to 10 GB.

A service reads some rows and is stopped. Then its state is made larger where it lies (`grown_state`), some rows more
are sent, and it is started, again and again.
"""

from __future__ import annotations

import csv
import statistics
import tempfile
import time
import uuid
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.feed import create_topics, feed_numbered
from bench.grown_state import FIRST_KEY, grow
from bench.processes import Cpu
from bench.progress import Progress
from bench.service_run import running_in, wait_for
from bench.workloads import GROUP_BY, payment_of_each

GIGABYTES = (0, 1, 10)
STARTS = 3
BYTES_A_KEY = 48
"""Of this query, merged."""

ROWS = 1_000
"""Rows that are there at each start, half of them of keys that are in the state."""

PATIENCE = 900.0


@dataclass(frozen=True, slots=True)
class Start:
    """One start: seconds until the first commit, and the CPU seconds of all processes until then."""

    seconds: float
    cpu: float


def report(bootstrap: str, out: Path, gigabytes: tuple[int, ...] = GIGABYTES, starts: int = STARTS) -> None:
    """Print and save the starts for each size of the state."""
    out.mkdir(parents=True, exist_ok=True)
    lines: list[tuple[object, ...]] = []
    for size in gigabytes:
        kept, found = measure(bootstrap, size, starts)
        seconds, cpu = (statistics.median(getattr(each, what) for each in found) for what in ("seconds", "cpu"))
        lines.append((size, kept, round(seconds, 2), round(cpu, 2)))
        print(
            f"{kept / 1e9:.1f} GB of state: first commit after {seconds:.1f} s, {cpu:.1f} CPU seconds"
            f" (medians of {len(found)} starts)",
            flush=True,
        )
    with (out / "restart.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("gigabytes", "bytes", "first_commit_seconds", "cpu_seconds"), *lines])


def measure(bootstrap: str, gigabytes: int, starts: int) -> tuple[int, list[Start]]:
    """The bytes that are kept, and the starts."""
    name = f"restart-{gigabytes}-{uuid.uuid4().hex[:8]}"
    source, output = f"{name}-in", f"{name}-out"
    create_topics(bootstrap, [source, output])
    sql = GROUP_BY.sql(bootstrap, name, output, (source,))
    kept, sent = 0, 0
    found: list[Start] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch, closing(Progress(bootstrap, name)) as progress:
        folder = Path(scratch)
        for number in range(starts + 1):
            # Keys that are new, or those of the first start, and keys that were added behind it.
            feed_numbered(bootstrap, source, payment_of_each, range(ROWS // 2))
            added = FIRST_KEY if number else 0
            feed_numbered(bootstrap, source, payment_of_each, range(added, added + ROWS // 2))
            sent += ROWS
            began = time.monotonic()
            with running_in(folder, GROUP_BY.case, "tailrace", sql) as service:
                cpu = Cpu(service.process.pid, folder)
                wait_for("the first commit", partial(_has_read, progress, source, sent), service.check, PATIENCE)
                seconds = time.monotonic() - began
                cpu.look()
                service.process.terminate()
                service.process.wait(120)
            start = Start(seconds, sum(cpu.by_kind().values()))
            if number:
                found.append(start)
                continue
            print(f"a new checkpoint: first commit after {seconds:.1f} s, {start.cpu:.1f} CPU seconds", flush=True)
            if gigabytes:
                (checkpoint,) = (each.parent for each in (folder / "checkpoint").glob("*/tailrace"))
                kept = grow(sql, checkpoint, gigabytes * 10**9 // BYTES_A_KEY)
    return kept, found


def _has_read(progress: Progress, topic: str, rows: int) -> bool:
    return progress.rows_read([topic]) >= rows
