"""The side input of Nexmark's q13: a name for each key, in the form that each engine reads.

Nexmark keeps it in a file, which a table of Flink 1 reads into memory. Flink 2 has no such table, so it gets one of
ours.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

KEYS = 10_000
"""As many as there are remainders of an auction's id in q13."""


def rows() -> Iterator[tuple[int, str]]:
    """Each key with its name."""
    return ((key, f"value {key}") for key in range(KEYS))


def write_database(folder: Path) -> Path:
    """Write them as a table of SQLite, and return the path of its database."""
    path = folder / "side_input.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE side_input (key BIGINT PRIMARY KEY, value VARCHAR)")
        database.executemany("INSERT INTO side_input VALUES (?, ?)", rows())
    database.close()
    return path


def write_text(folder: Path) -> Path:
    """Write them as lines of text, and return the path of the file."""
    path = folder / "side_input.txt"
    path.write_text("".join(f"{key},{value}\n" for key, value in rows()))
    return path
