"""`make bench`: every case on every engine, one after another, over the same topics of one local broker."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import latency, state_cost
from bench.cases import CASES
from bench.engines import ENGINES, can_run
from bench.measure import Run, measure
from bench.report import save, table
from service.kafka.embedded import EmbeddedKafka
from service.machine import MachineError

RESULTS = Path(__file__).with_name("results")
BROKER = {"log.segment.bytes": "268435456", "num.io.threads": "4", "transaction.max.timeout.ms": "900000"}


def arguments(given: Sequence[str]) -> argparse.Namespace:
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of each case (default: 10 million)")
    parser.add_argument("--cases", type=_several(names), default=names, help=f"some of {','.join(names)}")
    parser.add_argument("--engines", type=_several(list(ENGINES)), default=list(ENGINES), help=f"{','.join(ENGINES)}")
    parser.add_argument("--only", choices=("rates", "latency", "state"), help="one of the three parts; default: all")
    parser.add_argument("--patience", type=float, default=1800, help="seconds after which a run is given up")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV files and the plot")
    return parser.parse_args(given)


def _several(known: list[str]):  # type: ignore[no-untyped-def]
    def parse(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(known)}")
        return names

    return parse


def main(given: Sequence[str]) -> int:
    wanted = arguments(given)
    with tempfile.TemporaryDirectory(prefix="bench-kafka-") as folder:
        try:
            with EmbeddedKafka(folder=Path(folder), heap="1g", properties=BROKER) as kafka:
                if wanted.only in (None, "rates"):
                    _rates(kafka.bootstrap, wanted)
                if wanted.only in (None, "latency"):
                    latency.report(kafka.bootstrap, wanted.engines, wanted.out)
                if wanted.only in (None, "state"):
                    state_cost.report(kafka.bootstrap, wanted.out)
        except MachineError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    return 0


def _rates(bootstrap: str, wanted: argparse.Namespace) -> None:
    runs: list[Run] = []
    for case in (case for case in CASES if case.name in wanted.cases):
        for engine in (engine for engine in wanted.engines if can_run(engine, case)):
            run = measure(bootstrap, case, engine, wanted.rows, wanted.patience)
            runs.append(run)
            print(f"{case.name} on {engine}: " + (run.error or f"{run.whole:,.0f} rows/s"), flush=True)
            save(runs, wanted.out)
    print(f"\n{wanted.rows:,} rows, {os.cpu_count()} cores\n\n{table(runs)}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
