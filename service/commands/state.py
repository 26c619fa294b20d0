"""`tailrace state`: the rows of an operator's state, as a table."""

from __future__ import annotations

import argparse

from service.exit_codes import WRONG


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "state",
        help="show the state of an operator",
        description="Show the state of an operator after the last complete batch; the job may run or be stopped."
        " Without an operator, list the operators with their tables and columns.",
    )
    add_place(parser)
    parser.add_argument(
        "operator",
        nargs="?",
        default="",
        metavar="OPERATOR",
        help="its name in `tailrace explain`, group_by_1, or the id after it, group_by-3f2a91, which does not change",
    )
    parser.add_argument(
        "key",
        nargs="?",
        default="",
        metavar="KEY",
        help="only the rows of this key: values in order, or column=value, separated by commas",
    )
    parser.add_argument("--table", default="", metavar="NAME", help="only this table of the operator")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="number of rows to print (default: 100)")
    parser.add_argument("--format", choices=("arrow", "parquet", "json"), default="", help="the output format")
    parser.add_argument(
        "--out", default="", metavar="FILE", help="write all rows to this file; DuckDB reads all formats"
    )
    parser.set_defaults(run=run, do="state")


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a checkpoint and a batch of it."""
    parser.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        help="a folder, or a URL of s3a:// or gs://, of one job or with a checkpoint for each job",
    )
    parser.add_argument("--batch", type=int, default=None, metavar="N", help="after this batch, one that `list` shows")


def run(arguments: argparse.Namespace) -> int:
    """Show the state. Return the exit code."""
    if arguments.out and not arguments.format:
        arguments.format = {"parquet": "parquet", "json": "json"}.get(arguments.out.rpartition(".")[2], "arrow")
    if arguments.format in ("arrow", "parquet") and not arguments.out:
        print(f"--format {arguments.format} needs --out")
        return WRONG
    from service.commands.look import run as look

    return look(arguments)
