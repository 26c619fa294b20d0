"""`tailrace checkpoint`: what a stopped job's checkpoint has planned, and what can be done about a batch that does not
fit."""

from __future__ import annotations

import argparse

from service.commands.pipelines import add_file, read
from service.exit_codes import WRONG

_SHOW = "Print the batch that is planned and not done, what it reads, and what was skipped before."
_REPLAN = (
    "Have the batch that is planned and not done planned anew, with half of its records. That is possible as long as"
    " nothing of it is committed to Kafka, and refused otherwise; no answer depends on it. The service does this by"
    " itself after a failure for memory; by hand, run it again for a quarter, an eighth, and so on."
)
_SKIP = (
    "Pass the records of the batch that is planned and not done by, for good: no answer has them. Cut it as small as it"
    " goes with `replan` first. What is skipped is printed and kept in the checkpoint (tailrace/skipped.json); the log"
    " and the metric tailrace_skipped_records tell of it. Refused where part of the batch is committed to Kafka."
)


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "checkpoint",
        help="look at a stopped job's checkpoint; plan a batch that does not fit anew, or skip it",
        description="Work on the checkpoint of a job that is stopped: with the pipeline and the settings that it runs"
        " with, TAILRACE_CHECKPOINT first of all. Refused while a driver works on it, where it is in a folder; nobody"
        " can tell where it is in an object store.",
    )
    doing = parser.add_subparsers(title="what to do", required=True, metavar="DO")
    for name, brief, description in (
        ("show", "print the batch that is planned and not done", _SHOW),
        ("replan", "have that batch planned anew, with half of its records", _REPLAN),
        ("skip", "pass the records of that batch by", _SKIP),
    ):
        each = doing.add_parser(name, help=brief, description=description)
        add_file(each)
        each.add_argument("--job", default="", metavar="NAME", help="the job, where the file has several")
        if name == "skip":
            each.add_argument("--why", required=True, metavar="TEXT", help="the reason, which is kept")
        each.set_defaults(run=run, do=name)


def run(arguments: argparse.Namespace) -> int:
    """Do it; the answer is the exit code."""
    pipeline = read(arguments.file)
    if pipeline is None:
        return WRONG
    from service.commands.stopped_job import work_on

    return work_on(pipeline, arguments)
