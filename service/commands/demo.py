"""`tailrace demo`: an example pipeline against a local Kafka, until Ctrl-C."""

from __future__ import annotations

import argparse


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "demo",
        help="run an example pipeline over a live stream",
        description="Start a local Kafka in a folder of its own, feed it a stream of orders, run"
        " examples/quickstart.sql and show its changelog as it comes. Ctrl-C ends it and leaves nothing behind.",
    )
    parser.add_argument("--rate", type=int, default=200, metavar="N", help="orders a second (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0, metavar="S", help="end after S seconds")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run until Ctrl-C, or for as long as was asked for."""
    from service.demo import demo

    return demo(rate=arguments.rate, seconds=arguments.seconds)
