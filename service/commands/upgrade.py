"""`tailrace upgrade --check`: would a changed pipeline go on with the checkpoint of the one before?"""

from __future__ import annotations

import argparse

from service.commands.pipelines import add_file, read
from service.exit_codes import WRONG


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "upgrade",
        help="say whether a changed pipeline goes on with its checkpoint, operator by operator",
        description="Compare a pipeline with the one that wrote the checkpoint: of each operator that keeps state, say"
        " whether that state is kept, new, gone, or cannot be kept and why. Nothing is changed and no broker is asked;"
        " `tailrace run` does what is said here. Exit code 0 where it would go on, 2 where it would refuse.",
    )
    parser.add_argument("--check", action="store_true", required=True, help="say it; there is nothing else to do")
    add_file(parser)
    parser.add_argument(
        "checkpoint",
        nargs="?",
        default="",
        metavar="CHECKPOINT",
        help="a folder or URL with a checkpoint for each job, as TAILRACE_CHECKPOINT, which is meant otherwise",
    )
    parser.add_argument("--job", default="", metavar="NAME", help="check only the job of this name")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check; the answer is the exit code."""
    pipeline = read(arguments.file)
    if pipeline is None:
        return WRONG
    from service.commands.upgrade_check import check

    return check(pipeline, arguments)
