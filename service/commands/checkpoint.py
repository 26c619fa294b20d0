"""`tailrace checkpoint`: what a checkpoint has, copies of it, and what can be done about a batch that does not fit."""

from __future__ import annotations

import argparse

from service.commands.pipelines import add_file, read
from service.commands.state import add_place
from service.exit_codes import WRONG

_SAVE = (
    "Copy what a checkpoint is after the last batch that is done, of a job that runs or is stopped. A job goes on with"
    " such a copy, however old: what it has written since stays, and the batches since are done again as they were cut."
)
_LIST = (
    "Print the batches that can still be gone back to: when they were planned, where they end, the size of the state."
)
_INSPECT = (
    "Print what each operator keeps: tables, rows, bytes, the keys with most rows, and how evenly rows are spread. All"
    " rows are read for that, unless --quick is said."
)
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
        help="save a checkpoint, look into it; plan a batch that does not fit anew, or skip it",
        description="Save and look into a checkpoint by its place, while its job runs or is stopped: `save`, `list`,"
        " `inspect`. Or work on the checkpoint of a job that is stopped, with the pipeline and the settings that it"
        " runs with, TAILRACE_CHECKPOINT first of all: `show`, `replan`, `skip`. These are refused while a driver works"
        " on it, where it is in a folder; nobody can tell where it is in an object store.",
    )
    doing = parser.add_subparsers(title="what to do", required=True, metavar="DO")
    for name, brief, description in (
        ("save", "copy a checkpoint", _SAVE),
        ("list", "print the batches that can still be gone back to", _LIST),
        ("inspect", "print what each operator keeps", _INSPECT),
    ):
        each = doing.add_parser(name, help=brief, description=description)
        add_place(each)
        if name == "save":
            each.add_argument("target", metavar="TARGET", help="where to: an empty or new folder, or URL")
        if name == "inspect":
            each.add_argument("--quick", action="store_true", help="only rows and bytes: no row is read")
        each.set_defaults(run=look, do=name)
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


def look(arguments: argparse.Namespace) -> int:
    """Look; the answer is the exit code."""
    from service.commands.look import run

    return run(arguments)


def run(arguments: argparse.Namespace) -> int:
    """Do it; the answer is the exit code."""
    pipeline = read(arguments.file)
    if pipeline is None:
        return WRONG
    from service.commands.stopped_job import work_on

    return work_on(pipeline, arguments)
