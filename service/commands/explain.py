"""`tailrace explain`: the plan of a pipeline."""

from __future__ import annotations

import argparse
import json
import os

from service.commands.pipelines import add_file, read, redaction_of
from service.exit_codes import OK, WRONG
from service.plan.explain import as_text, explain

LATE_TOPIC = "TAILRACE_TOPICS__LATE"
"""The setting that names the topic of late rows; if it is set, windows are planned for it."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "explain",
        help="show the plan of a pipeline",
        description="Show the plan of every job and every EXPLAIN of the file: each step with its changelog mode, its"
        " unique keys, its state and how long that is kept; the levels and exchanges; and warnings.",
    )
    add_file(parser)
    parser.add_argument("--json", action="store_true", help="for programs: a list of jobs as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Explain every job."""
    pipeline = read(arguments.file)
    if pipeline is None:
        return WRONG
    late_rows = bool(os.environ.get(LATE_TOPIC))
    hide = redaction_of(arguments.file, pipeline).all
    explained = [hide(explain(job, late_rows=late_rows)) for job in (*pipeline.jobs, *pipeline.explains)]
    if arguments.json:
        print(json.dumps([each.to_json() for each in explained], indent=2))
    else:
        print("\n\n".join(as_text(each, pipeline.name) for each in explained))
    return OK
