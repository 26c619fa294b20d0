"""The table of long test files is of files that are there."""

from __future__ import annotations

from pathlib import Path

from tests.order import SECONDS

ROOT = Path(__file__).parents[1]


def test_every_file_of_the_table_is_there():
    assert [file for file in SECONDS if not (ROOT / file).is_file()] == []
