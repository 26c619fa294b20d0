"""`tailrace state`: the rows that an operator keeps, as a table."""

from __future__ import annotations

import argparse

from service.exit_codes import WRONG


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "state",
        help="show the rows that an operator keeps",
        description="Show what an operator keeps after the last batch that is done, of a job that runs or is stopped."
        " Without an operator, list them, with their tables and columns.",
    )
    add_place(parser)
    parser.add_argument(
        "operator",
        nargs="?",
        default="",
        metavar="OPERATOR",
        help="as `tailrace explain` calls it: group_by_1, or by the id behind it, group_by-3f2a91, which stays",
    )
    parser.add_argument(
        "key",
        nargs="?",
        default="",
        metavar="KEY",
        help="only the rows of this key: values in their order, or column=value, between commas",
    )
    parser.add_argument("--table", default="", metavar="NAME", help="only this table of the operator")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="rows that are printed (default: 100)")
    parser.add_argument("--format", choices=("arrow", "parquet", "json"), default="", help="the form of the rows")
    parser.add_argument("--out", default="", metavar="FILE", help="write all rows there; DuckDB reads each form")
    parser.set_defaults(run=run, do="state")


def add_place(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a checkpoint and a batch of it."""
    parser.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        help="a folder, or URL of s3a:// or gs://: of a job, or with one for each job, as TAILRACE_CHECKPOINT",
    )
    parser.add_argument("--batch", type=int, default=None, metavar="N", help="after this batch, of those still there")


def run(arguments: argparse.Namespace) -> int:
    """Show it; the answer is the exit code."""
    if arguments.out and not arguments.format:
        arguments.format = {"parquet": "parquet", "json": "json"}.get(arguments.out.rpartition(".")[2], "arrow")
    if arguments.format in ("arrow", "parquet") and not arguments.out:
        print(f"--format {arguments.format} needs --out")
        return WRONG
    from service.commands.look import run as look

    return look(arguments)
