"""Runs as a table on the terminal, as CSV and as a plot."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean

from bench.cases import CASES, MORE, NEXMARK
from bench.measure import Run
from bench.plot import bar_chart

_TITLES = {case.name: case.title for case in (*CASES, *MORE, *NEXMARK)}


@dataclass(frozen=True, slots=True)
class Yardstick:
    """The rate that the others are given relative to: the best of these engines on the same case."""

    title: str
    engines: tuple[str, ...]

    def rate(self, run: Run, runs: Iterable[Run]) -> float:
        """The rate that it had on the case of `run`; 0 if it had none."""
        rates = (other.compared for other in runs if other.case == run.case and other.engine in self.engines)
        return max(rates, default=0.0)


OF_FLINK = Yardstick("of Flink", ("flink", "flink-row-by-row"))
OF_ONE_EXECUTOR = Yardstick("of 1 executor", ("tailrace-1-executor",))


def table(runs: Sequence[Run], yardstick: Yardstick = OF_FLINK) -> str:
    """All runs, a line each, as far as they have come."""
    head = (
        "case",
        "engine",
        "rows/s whole",
        "rows/s 20-90 %",
        yardstick.title,
        "memory MiB",
        "first commit s",
        "run s",
        "CPU s/M rows",
    )
    return aligned([head, *(_cells(run, yardstick.rate(run, runs)) for run in runs)], texts=2) + "".join(
        f"\n{run.case} on {run.engine} {run.error}" for run in runs if run.error
    )


def aligned(lines: Sequence[Sequence[str]], texts: int) -> str:
    """A table for the terminal, which is a table of Markdown too: the head, then lines whose first `texts` cells are
    text and whose others are numbers."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    ruled = [lines[0], tuple("-" * width for width in widths), *lines[1:]]
    return "\n".join(
        " | ".join(
            cell.ljust(width) if column < texts else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in ruled
    )


def _cells(run: Run, reference: float) -> tuple[str, ...]:
    title = _TITLES[run.case]
    if run.error:
        return (title, run.engine, *["failed"] * 7)
    ratio = f"{run.middle / reference:.2f}" if reference and run.middle else "-"
    memory = f"{run.peak_memory / 2**20:,.0f}"
    rates = (f"{run.whole:,.0f}", f"{run.middle:,.0f}" if run.middle else "-")
    return (title, run.engine, *rates, ratio, memory, f"{run.first_commit:.1f}", f"{run.seconds:.1f}", _cpu(run))


def _cpu(run: Run) -> str:
    """CPU seconds a million rows, and those of each kind of process where there are several."""
    each = {kind: seconds / run.rows * 1e6 for kind, seconds in run.cpu.items() if seconds / run.rows * 1e6 >= 0.05}
    parts = ", ".join(f"{kind} {seconds:.1f}" for kind, seconds in sorted(each.items(), key=lambda item: -item[1]))
    return f"{sum(each.values()):.1f}" + (f" ({parts})" if len(each) > 1 else "")


def geometric_means(runs: Sequence[Run], engine: str, others: Sequence[str]) -> str:
    """For each of the `others` the geometric mean of the ratios of rates, over the cases that `engine` has done. Where
    the other was given up, its rate is what it had read by then."""
    lines = []
    for other in others:
        theirs = {run.case: run for run in runs if run.engine == other and run.compared}
        mine = [run for run in runs if run.engine == engine and run.middle and run.case in theirs]
        if mine:
            mean = geometric_mean(run.middle / theirs[run.case].compared for run in mine)
            left = sum(theirs[run.case].given_up > 0 for run in mine)
            more = f", {left} of which {other} did not end" if left else ""
            lines.append(f"{engine} of {other}: {mean:.2f} (geometric mean over {len(mine)} queries{more})")
    return "\n".join(lines)


def save(runs: Sequence[Run], folder: Path) -> None:
    """Write runs.csv, samples.csv (what was committed when) and rates.svg into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "runs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            (
                "case",
                "engine",
                "rows",
                "seconds",
                "rate_whole",
                "rate_20_90",
                "peak_bytes",
                "first_commit",
                "cpu_seconds",
                "error",
            )
        )
        for run in runs:
            figures = (round(run.seconds, 2), round(run.whole), round(run.middle), run.peak_memory)
            writer.writerow(
                (
                    run.case,
                    run.engine,
                    run.rows,
                    *figures,
                    round(run.first_commit, 2),
                    round(sum(run.cpu.values()), 1),
                    run.error,
                )
            )
    with (folder / "samples.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("case", "engine", "seconds", "rows_committed"))
        for run in runs:
            writer.writerows((run.case, run.engine, round(s.seconds, 2), s.rows) for s in run.samples)
    (folder / "rates.svg").write_text(_plot(runs))


def _plot(runs: Sequence[Run]) -> str:
    bars: dict[str, dict[str, float]] = {}
    for run in runs:
        if not run.error:
            bars.setdefault(_TITLES[run.case], {})[run.engine] = run.middle or run.whole
    series = list(dict.fromkeys(run.engine for run in runs if not run.error))
    rows = max((run.rows for run in runs), default=0)
    title = f"Kafka to Kafka, exactly once, {rows:,} JSON rows"
    return bar_chart(title, "rows a second between 20 and 90 percent of the rows", bars, series)
