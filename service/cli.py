"""The command line: `tailrace run | check | explain | test | demo | checkpoint | state | upgrade`.

Exit codes: 0 done, 1 a failure on the way, 2 wrong configuration, SQL or arguments.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from service import __version__
from service.commands import check, checkpoint, demo, explain, run, state, test, upgrade

COMMANDS = (run, check, explain, test, demo, checkpoint, state, upgrade)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(
        prog="tailrace",
        description="Streaming SQL from Kafka to Kafka, exactly once.",
        epilog="`tailrace COMMAND --help` says more about a command.",
    )
    top.add_argument("--version", action="version", version=f"tailrace {__version__}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Return its exit code."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except BrokenPipeError:
        # The reader of our output has ended, as in `tailrace explain ... | head`.
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    sys.exit(main())
