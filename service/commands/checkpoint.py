"""`tailrace checkpoint`: what a checkpoint has, copies of it, and what can be done about a batch that does not fit."""

from __future__ import annotations

import argparse

from service.commands.pipelines import add_file, read
from service.commands.state import add_place
from service.exit_codes import WRONG

_SAVE = (
    "Copy a checkpoint as of its last finished batch; the job may be running or stopped. A job continues with"
    " such a copy, however old: its later output stays, and the later batches are repeated as they were planned."
)
_LIST = (
    "Print the batches that can still be restored: when they were planned, their end offsets, the size of the state."
)
_INSPECT = (
    "Print the state of each operator: tables, rows, bytes, the keys with the most rows, and how evenly rows are"
    " spread. This reads all rows, unless --quick is given."
)
_SHOW = "Print the incomplete batch, the records that it reads, and the records skipped so far."
_REPLAN = (
    "Plan the incomplete batch again with half of its records. This is possible as long as nothing of it is committed"
    " to Kafka, and refused otherwise; it changes no result. The service does this itself after a memory failure; by"
    " hand, run it again for a quarter, an eighth, and so on."
)
_SKIP = (
    "Skip the records of the incomplete batch permanently: no result includes them. Make it as small as possible with"
    " `replan` first. The skipped records are printed and listed in the checkpoint (tailrace/skipped.json), in the log"
    " and in the metric tailrace_skipped_records. Refused if part of the batch is committed to Kafka."
)


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "checkpoint",
        help="save or inspect a checkpoint; plan a batch that does not fit again, or skip it",
        description="`save`, `list` and `inspect` take the place of a checkpoint, whose job may run or be stopped."
        " `show`, `replan` and `skip` change the checkpoint of a stopped job; they need its pipeline and its settings,"
        " above all TAILRACE_CHECKPOINT. They are refused while a driver uses the checkpoint, if it is in a folder; an"
        " object store has no such check.",
    )
    doing = parser.add_subparsers(title="what to do", required=True, metavar="DO")
    for name, brief, description in (
        ("save", "copy a checkpoint", _SAVE),
        ("list", "print the batches that can still be restored", _LIST),
        ("inspect", "print the state of each operator", _INSPECT),
    ):
        each = doing.add_parser(name, help=brief, description=description)
        add_place(each)
        if name == "save":
            each.add_argument("target", metavar="TARGET", help="an empty or new folder, or URL")
        if name == "inspect":
            each.add_argument("--quick", action="store_true", help="only rows and bytes, without reading rows")
        each.set_defaults(run=look, do=name)
    for name, brief, description in (
        ("show", "print the planned batch that is not complete", _SHOW),
        ("replan", "plan that batch again with half of its records", _REPLAN),
        ("skip", "skip the records of that batch", _SKIP),
    ):
        each = doing.add_parser(name, help=brief, description=description)
        add_file(each)
        each.add_argument("--job", default="", metavar="NAME", help="the job, if the file has several")
        if name == "skip":
            each.add_argument("--why", required=True, metavar="TEXT", help="the reason, which is recorded")
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
