"""Sizes as tables on the terminal, which docs/sizing.md takes as they are, and as CSV."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.processes import Held
from bench.report import aligned
from bench.sizing import Sizes, measure, planned

Column = tuple[str, Callable[[Sizes], str]]

KINDS = ("driver", "JVM", "executor JVM", "workers", "writer", "helpers")


def _mib(size: float) -> str:
    return f"{size / 2**20:,.1f}" if size < 10 * 2**20 else f"{size / 2**20:,.0f}"


def _own(held: Mapping[str, Held]) -> int:
    return sum(each.own for each in held.values())


def _held(kind: str) -> Column:
    return kind, lambda sizes: _mib(sizes.steady[kind].own) if kind in sizes.steady else "-"


STATE: Sequence[Column] = (
    ("rows of state", lambda sizes: f"{sizes.rows:,}"),
    ("bytes a row", lambda sizes: f"{sizes.state / sizes.rows:,.0f}"),
    ("state MiB", lambda sizes: _mib(sizes.state)),
    ("checkpoint MiB", lambda sizes: _mib(sizes.checkpoint)),
    ("scratch MiB", lambda sizes: _mib(sizes.copies)),
    ("Spark's folder MiB", lambda sizes: _mib(sizes.spark)),
    ("written bytes a row", lambda sizes: f"{sizes.written_a_row:,.0f}"),
    ("written KiB a tick", lambda sizes: f"{sizes.written_a_tick / 1024:,.0f}"),
)
MEMORY: Sequence[Column] = (
    *map(_held, KINDS),
    ("together", lambda sizes: _mib(_own(sizes.steady))),
    ("mapped files", lambda sizes: _mib(sum(each.mapped for each in sizes.steady.values()))),
    ("together, loading", lambda sizes: _mib(_own(sizes.loading))),
)
TIME: Sequence[Column] = (
    ("batch s", lambda sizes: f"{sizes.batch_seconds:.2f}"),
    ("restart s", lambda sizes: f"{sizes.restart_seconds:.1f}"),
)
TABLES: Mapping[str, Sequence[Column]] = {
    "Bytes": STATE,
    "Memory in MiB": MEMORY,
    "Seconds": TIME,
}


def report(bootstrap: str, names: Sequence[str], keys: Sequence[int], out: Path) -> None:
    """Run, print and save what is asked for."""
    done: list[Sizes] = []
    for setup, number in planned(names, keys):
        try:
            done.append(measure(bootstrap, setup, number))
        except RuntimeError as error:
            print(f"{setup.title}, {number:,} keys: {error}", flush=True)
            continue
        print(f"{setup.title}, {number:,} keys: measured", flush=True)
        save(done, out)
    print(tables(done), flush=True)


def tables(sizes: Sequence[Sizes]) -> str:
    """A table of bytes, one of memory, one of seconds."""
    return "".join(f"\n{title}\n\n{_table(columns, sizes)}\n" for title, columns in TABLES.items())


def _table(columns: Sequence[Column], sizes: Sequence[Sizes]) -> str:
    head = ("setup", "keys", *(title for title, _ in columns))
    return aligned(
        [head, *((each.setup.title, f"{each.keys:,}", *(cell(each) for _, cell in columns)) for each in sizes)], texts=1
    )


def save(sizes: Sequence[Sizes], folder: Path) -> None:
    """Write sizing.csv into `folder`: all figures as they were measured, memory by kind of process."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ("rows", "state", "checkpoint", "copies", "spark", "written_a_row", "written_a_tick")
    seconds = ("batch_seconds", "restart_seconds")
    held = [(phase, kind, part) for phase in ("loading", "steady") for kind in KINDS for part in ("own", "mapped")]
    with (folder / "sizing.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("setup", "keys", *names, *seconds, *("_".join(each).replace(" ", "_") for each in held)))
        for each in sizes:
            memory = [getattr(getattr(each, phase).get(kind, Held()), part) for phase, kind, part in held]
            figures = [round(getattr(each, name)) for name in names] + [round(getattr(each, n), 3) for n in seconds]
            writer.writerow((each.setup.name, each.keys, *figures, *memory))
