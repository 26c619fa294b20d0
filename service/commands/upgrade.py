"""`tailrace upgrade`: check whether a changed pipeline can use its checkpoint, and backfill its new operators."""

from __future__ import annotations

import argparse

from service.commands.pipelines import add_file, read
from service.deployment.backfill import BEGINNING, EARLIEST, BackfillStart
from service.exit_codes import WRONG

_DESCRIPTION = (
    "Compare a pipeline with the one that wrote the checkpoint. For each operator with state, --check says whether the"
    " state is kept, new or dropped, or why it cannot be kept. It changes nothing and contacts no broker. Exit code 0"
    " if `tailrace run` would continue, 2 if it would refuse. With --from, new operators read their sources again while"
    " the old query runs; when they have caught up and the old query is stopped, the changed one takes over, and"
    " `tailrace run` continues with it. If it is killed, run the same command again. If nothing needs to be"
    " backfilled, it ends with 0. --check --from says what would be read, or why it would be refused."
)


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "upgrade",
        help="check whether a changed pipeline can use its checkpoint, and backfill its new operators",
        description=_DESCRIPTION,
    )
    parser.add_argument("--check", action="store_true", help="only say what would happen to the state")
    parser.add_argument(
        "--from",
        dest="start",
        type=_start,
        metavar="PLACE",
        help=f"backfill new operators from here on: {EARLIEST}, {BEGINNING} (where the old query began), or a time, as"
        " 2024-05-01T00:00:00Z or in ms since 1970",
    )
    parser.add_argument(
        "--discard",
        action="store_true",
        help="delete a backfill that was begun; rows that it has written to new tables remain",
    )
    parser.add_argument(
        "--stopped",
        action="store_true",
        help="confirm that the job does not run; needed for an object store, which has no lock",
    )
    add_file(parser)
    parser.add_argument(
        "checkpoint",
        nargs="?",
        default="",
        metavar="CHECKPOINT",
        help="a folder or URL with a checkpoint for each job; default TAILRACE_CHECKPOINT",
    )
    parser.add_argument("--job", default="", metavar="NAME", help="only the job of this name")
    parser.set_defaults(run=run, parser=parser)


def _start(text: str) -> BackfillStart:
    try:
        return BackfillStart.of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text} is not a position to read from: {error}") from None


def run(arguments: argparse.Namespace) -> int:
    """Check or backfill; the answer is the exit code."""
    if not (arguments.check or arguments.start or arguments.discard):
        arguments.parser.error("pass --check, --from or --discard")
    pipeline = read(arguments.file)
    if pipeline is None:
        return WRONG
    if arguments.start or arguments.discard:
        from service.commands.upgrade_backfill import backfill

        return backfill(pipeline, arguments)
    from service.commands.upgrade_check import check

    return check(pipeline, arguments)
