"""`tailrace check`: check a pipeline file. Nothing is started and no broker is contacted."""

from __future__ import annotations

import argparse
from pathlib import Path

from service.commands.pipelines import mistake, read, redaction_of
from service.exit_codes import OK, WRONG
from service.plan.passes import normalize
from service.plan.validate.cautions import warnings


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "check",
        help="check pipeline files without running them",
        description="Resolve names and types, infer changelog modes and keys, and list every mistake with its place."
        " Warnings (unbounded state, for example) do not make a file invalid. Exit code 2 if a file is invalid.",
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="file", help="a pipeline, a file of SQL statements")
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check every file."""
    wrong = 0
    for path in arguments.files:
        pipeline = read(path)
        if pipeline is None:
            wrong += 1
            continue
        if arguments.quiet:
            continue
        names = ", ".join(j.name for j in pipeline.jobs) or "none"
        print(f"{path}: valid; {len(pipeline.tables)} tables, jobs: {names}")
        redaction = redaction_of(path, pipeline)
        for note in pipeline.notes:
            print(f"note: {redaction.text(str(note))}")
        for job in pipeline.jobs:
            for warning in warnings(normalize(job)):
                print(f"warning: {redaction.text(str(mistake(pipeline.name, warning)))}")
    return WRONG if wrong else OK
