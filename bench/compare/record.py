"""`python -m bench.compare.record WHAT...`: ask Flink again and write its answers where the tests read them."""

from __future__ import annotations

import argparse

from bench.compare import questions, streams

RECORDERS = {"expressions": questions.record, "changelogs": streams.record}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.compare.record", description=__doc__)
    parser.add_argument("what", nargs="+", choices=sorted(RECORDERS))
    for what in parser.parse_args().what:
        RECORDERS[what]()


if __name__ == "__main__":
    main()
