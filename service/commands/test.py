"""`tailrace test`: golden pipelines, run in this process and compared with their expected results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from traceback import format_exc

from operators.slots import SLOTS
from operators.sql import Sql
from service.commands.pipelines import read
from service.exit_codes import FAILED, OK, WRONG
from service.local.case import run_case
from service.local.changelog import NotThere
from service.local.errors import CaseError
from service.local.files import check_expectations, check_inputs
from service.local.verdict import compare, update

PIPELINE = "pipeline.sql"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "test",
        help="run golden pipelines in process, without Kafka or a JVM",
        description="A case is a folder with pipeline.sql, a file of rows (orders.rows) or of Kafka records"
        " (orders.records) for each table it reads, and the changelog expected of each table it writes"
        " (revenue.changes). docs/testing.md describes the files. Exit code 1 if a result differs.",
    )
    parser.add_argument("folders", type=Path, nargs="+", metavar="folder", help="a case, or a folder of cases")
    parser.add_argument("--update", action="store_true", help="write the results as the new expected files")
    parser.add_argument("--shards", type=_count, default=2, metavar="N", help="most shards to distribute keys over")
    parser.set_defaults(run=run)


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= SLOTS:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and {SLOTS}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Run all cases and print the result of each. Return the exit code."""
    began = perf_counter()
    sql = Sql()
    cases = [case for folder in arguments.folders for case in cases_in(folder)]
    if not cases:
        print(
            f"there is no {PIPELINE} in {', '.join(map(str, arguments.folders))}, nor one level below", file=sys.stderr
        )
        return WRONG
    worst = OK
    wrong = 0
    for case in cases:
        code = _run(case, arguments.update, arguments.shards, sql)
        worst = max(worst, code)
        wrong += code != OK
    print(f"{len(cases) - wrong} of {len(cases)} cases passed, {perf_counter() - began:.1f} s")
    return worst


def cases_in(folder: Path) -> Iterator[Path]:
    """Yield the folder itself if it is a case, else the cases in it."""
    if (folder / PIPELINE).exists():
        yield folder
    elif folder.is_dir():
        yield from sorted(p for p in folder.iterdir() if (p / PIPELINE).exists())


def _run(case: Path, write: bool, shards: int, sql: Sql) -> int:
    pipeline = read(case / PIPELINE)
    if pipeline is None:
        print(f"invalid  {case}")
        return WRONG
    try:
        check_inputs(case, pipeline.jobs)
        if not write:
            check_expectations(case, pipeline.jobs)
        outcome = run_case(case, pipeline.jobs, sql, shards)
        changed = update(case, outcome) if write else []
        lines = [] if write else compare(case, outcome, sql)
    except (CaseError, NotThere) as error:
        print(f"invalid  {case}\n{error}")
        return WRONG if isinstance(error, CaseError) else FAILED
    except Exception:
        # An error in one case must not keep the others from running.
        print(f"failed {case}\n{format_exc()}")
        return FAILED
    if write:
        print(f"{'wrote' if changed else 'passed'}  {case}" + (f": {', '.join(changed)}" if changed else ""))
        return OK
    print(f"{'differs' if lines else 'passed'}  {case}")
    for line in lines:
        print(f"  {line}")
    return FAILED if lines else OK
