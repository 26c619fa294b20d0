"""Runs as a table on the terminal, as CSV and as a plot."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.cases import CASES
from bench.measure import Run
from bench.plot import bar_chart

REFERENCE = ("flink", "flink-row-by-row")
HEAD = ("case", "engine", "rows/s whole", "rows/s 20-90 %", "of Flink", "memory MiB", "first commit s", "run s")


def table(runs: Sequence[Run]) -> str:
    """All runs, a line each, as far as they have come."""
    lines = [HEAD, *(_cells(run, _flink(run, runs)) for run in runs)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    ruled = [lines[0], tuple("-" * width for width in widths), *lines[1:]]
    return "\n".join(
        " | ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in ruled
    ) + "".join(f"\n{run.case} on {run.engine} {run.error}" for run in runs if run.error)


def _flink(run: Run, runs: Iterable[Run]) -> float:
    """The better of the rates that Flink had on the same case, in the same part of the run."""
    return max((other.middle for other in runs if other.case == run.case and other.engine in REFERENCE), default=0.0)


def _cells(run: Run, flink: float) -> tuple[str, ...]:
    title = next(case.title for case in CASES if case.name == run.case)
    if run.error:
        return (title, run.engine, *["failed"] * 6)
    ratio = f"{run.middle / flink:.2f}" if flink and run.middle else "-"
    memory = f"{run.peak_memory / 2**20:,.0f}"
    rates = (f"{run.whole:,.0f}", f"{run.middle:,.0f}" if run.middle else "-")
    return (title, run.engine, *rates, ratio, memory, f"{run.first_commit:.1f}", f"{run.seconds:.1f}")


def save(runs: Sequence[Run], folder: Path) -> None:
    """Write runs.csv, samples.csv (what was committed when) and rates.svg into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "runs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ("case", "engine", "rows", "seconds", "rate_whole", "rate_20_90", "peak_bytes", "first_commit", "error")
        )
        for run in runs:
            figures = (round(run.seconds, 2), round(run.whole), round(run.middle), run.peak_memory)
            writer.writerow((run.case, run.engine, run.rows, *figures, round(run.first_commit, 2), run.error))
    with (folder / "samples.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("case", "engine", "seconds", "rows_committed"))
        for run in runs:
            writer.writerows((run.case, run.engine, round(s.seconds, 2), s.rows) for s in run.samples)
    (folder / "rates.svg").write_text(_plot(runs))


def _plot(runs: Sequence[Run]) -> str:
    titles = {case.name: case.title for case in CASES}
    bars: dict[str, dict[str, float]] = {}
    for run in runs:
        if not run.error:
            bars.setdefault(titles[run.case], {})[run.engine] = run.middle or run.whole
    series = list(dict.fromkeys(run.engine for run in runs if not run.error))
    rows = max((run.rows for run in runs), default=0)
    title = f"Kafka to Kafka, exactly once, {rows:,} JSON rows"
    return bar_chart(title, "rows a second between 20 and 90 percent of the rows", bars, series)
