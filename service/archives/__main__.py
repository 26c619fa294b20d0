"""`python -m service.archives LIST...`: put the archives of each list into the cache folder."""

from __future__ import annotations

import argparse
import sys

from service.archives.cache import ensure
from service.archives.listing import load
from service.host.machine import MachineError


def main() -> int:
    """Fetch the archives of the lists that the command line names; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m service.archives", description="Fetch and check Java archives.")
    parser.add_argument("lists", nargs="+", metavar="LIST", help="spark, kafka, s3a, gs, or the path of a .toml list")
    try:
        for name in parser.parse_args().lists:
            ensure(load(name))
    except MachineError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
