"""`tailrace upgrade`: whether a changed pipeline goes on with the checkpoint of the one before; filling what is new."""

from __future__ import annotations

import argparse

from service.commands.pipelines import add_file, read
from service.deployment.filling import BEGINNING, EARLIEST, FillingStart
from service.exit_codes import WRONG

_DESCRIPTION = (
    "Compare a pipeline with the one that wrote the checkpoint: of each operator that keeps state, --check says whether"
    " that state is kept, new, gone, or cannot be kept and why. Nothing is changed and no broker is asked; `tailrace"
    " run` does what is said here. Exit code 0 where it would go on, 2 where it would refuse. With --from, what is new"
    " reads its sources again, beside the query that runs meanwhile; when all is read and that query is stopped, the"
    " changed one takes over, and `tailrace run` goes on with it. Whenever it is killed, the same command goes on;"
    " where nothing is to be filled it ends with 0."
    " --check --from says what would be read, and why it would not do."
)


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "upgrade",
        help="say whether a changed pipeline goes on with its checkpoint, and fill what is new in it",
        description=_DESCRIPTION,
    )
    parser.add_argument("--check", action="store_true", help="only say what would become of the checkpoint")
    parser.add_argument(
        "--from",
        dest="start",
        type=_start,
        metavar="PLACE",
        help=f"fill what is new from here on: {EARLIEST}, {BEGINNING} (where the query before began), or a time, as"
        " 2024-05-01T00:00:00Z or in ms since 1970",
    )
    parser.add_argument(
        "--discard",
        action="store_true",
        help="throw away a filling that was begun; what it has written to tables that are new stays there",
    )
    parser.add_argument(
        "--stopped",
        action="store_true",
        help="the job does not run: said of a checkpoint in an object store, where no lock tells",
    )
    add_file(parser)
    parser.add_argument(
        "checkpoint",
        nargs="?",
        default="",
        metavar="CHECKPOINT",
        help="a folder or URL with a checkpoint for each job, as TAILRACE_CHECKPOINT, which is meant otherwise",
    )
    parser.add_argument("--job", default="", metavar="NAME", help="only the job of this name")
    parser.set_defaults(run=run, parser=parser)


def _start(text: str) -> FillingStart:
    try:
        return FillingStart.of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text} is no place to read from: {error}") from None


def run(arguments: argparse.Namespace) -> int:
    """Check or fill; the answer is the exit code."""
    if not (arguments.check or arguments.start or arguments.discard):
        arguments.parser.error("say --check, --from or --discard")
    pipeline = read(arguments.file)
    if pipeline is None:
        return WRONG
    if arguments.start or arguments.discard:
        from service.commands.upgrade_fill import fill

        return fill(pipeline, arguments)
    from service.commands.upgrade_check import check

    return check(pipeline, arguments)
