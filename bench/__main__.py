"""`make bench`: every case on every engine, one after another, over the same topics of one local broker."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import fetched, latency, partitions, restart, sizing, sizing_report, state_cost
from bench.cases import CASES, MORE, NEXMARK
from bench.engines import COMPARED, ENGINES, SCALED, can_run
from bench.measure import Run, measure
from bench.report import OF_FLINK, OF_ONE_EXECUTOR, Yardstick, geometric_means, save, table
from service.host.machine import MachineError
from service.kafka.local_broker.broker import EmbeddedKafka

RESULTS = Path(__file__).with_name("results")
BROKER = {"log.segment.bytes": "268435456", "num.io.threads": "4", "transaction.max.timeout.ms": "900000"}

PARTS = ("rates", "latency", "state")
ASKED_FOR = ("executors", "fetched", "nexmark", "partitions", "restart", "sizing")
"""Parts that run only where they are named."""

SCALED_CASES = ["tumble-100k", "group-100k", "join"]


def arguments(given: Sequence[str]) -> argparse.Namespace:
    names, setups = [case.name for case in (*CASES, *MORE, *NEXMARK)], [setup.name for setup in sizing.SETUPS]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of each case (default: 10 million)")
    parser.add_argument("--cases", type=_several(names), help=f"some of {','.join(names)}")
    parser.add_argument("--engines", type=_several(list(ENGINES)), help=f"some of {','.join(ENGINES)}")
    parser.add_argument(
        "--only", choices=(*PARTS, *ASKED_FOR), help=f"one part; default: {', '.join(PARTS[:-1])} and {PARTS[-1]}"
    )
    parser.add_argument("--keys", type=_numbers, help="numbers of keys, for the parts state and sizing")
    parser.add_argument(
        "--setups", type=_several(setups), default=setups, help=f"for the part sizing, some of {','.join(setups)}"
    )
    parser.add_argument(
        "--partitions", type=_numbers, default=partitions.PARTITIONS, help="Kafka partitions, for the part partitions"
    )
    parser.add_argument(
        "--tasks",
        type=_numbers,
        default=partitions.TASKS,
        help="tasks that a level is asked to have, for the part partitions, over 2 Kafka partitions",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=partitions.SECONDS,
        help="for the part partitions, how long each stream is followed",
    )
    parser.add_argument(
        "--gigabytes", type=_numbers, default=restart.GIGABYTES, help="sizes of the state, for the part restart"
    )
    parser.add_argument("--starts", type=int, default=restart.STARTS, help="starts of each size, for the part restart")
    parser.add_argument("--patience", type=float, default=1800, help="seconds after which a run is given up")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV files and the plot")
    return parser.parse_args(given)


def _several(known: list[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(known)}")
        return names

    return parse


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def main(given: Sequence[str]) -> int:
    wanted = arguments(given)
    parts = PARTS if wanted.only is None else (wanted.only,)
    with tempfile.TemporaryDirectory(prefix="bench-kafka-") as folder:
        try:
            with EmbeddedKafka(folder=Path(folder), heap="1g", properties=BROKER) as kafka:
                for part in parts:
                    _run(part, kafka.bootstrap, wanted)
        except MachineError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    return 0


def _run(part: str, bootstrap: str, wanted: argparse.Namespace) -> None:
    match part:
        case "rates":
            _rates(bootstrap, wanted, [case.name for case in CASES], COMPARED, OF_FLINK, wanted.out)
        case "executors":
            _rates(bootstrap, wanted, SCALED_CASES, SCALED, OF_ONE_EXECUTOR, wanted.out / "executors")
        case "fetched":
            fetched.report(bootstrap, wanted.out)
        case "nexmark":
            engines = ("flink", "flink-row-by-row", "tailrace")
            runs = _rates(bootstrap, wanted, [case.name for case in NEXMARK], engines, OF_FLINK, wanted.out / "nexmark")
            print(geometric_means(runs, "tailrace", engines[:2]), flush=True)
        case "latency":
            latency.report(bootstrap, wanted.engines or COMPARED, wanted.out)
        case "partitions":
            asked = partitions.Asked(
                wanted.partitions, wanted.tasks, wanted.engines or partitions.ENGINES, seconds=wanted.seconds
            )
            partitions.report(bootstrap, asked, wanted.rows, wanted.patience, wanted.out)
        case "restart":
            restart.report(bootstrap, wanted.out, wanted.gigabytes, wanted.starts)
        case "state":
            state_cost.report(bootstrap, wanted.out, wanted.keys or state_cost.KEYS)
        case "sizing":
            sizing_report.report(bootstrap, wanted.setups, wanted.keys or sizing.KEYS, wanted.out)


def _rates(
    bootstrap: str,
    wanted: argparse.Namespace,
    cases: Sequence[str],
    engines: Sequence[str],
    yardstick: Yardstick,
    out: Path,
) -> Sequence[Run]:
    """Run `cases` on `engines`, or those that are wanted instead."""
    runs: list[Run] = []
    for case in (case for case in (*CASES, *MORE, *NEXMARK) if case.name in (wanted.cases or cases)):
        for engine in (engine for engine in wanted.engines or engines if can_run(engine, case)):
            run = measure(bootstrap, case, engine, wanted.rows, wanted.patience)
            runs.append(run)
            print(f"{case.name} on {engine}: " + (run.error or f"{run.whole:,.0f} rows/s"), flush=True)
            save(runs, out)
    print(f"\n{wanted.rows:,} rows, {os.cpu_count()} cores\n\n{table(runs, yardstick)}", flush=True)
    return runs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
