"""The rows that a table has for a key."""

from __future__ import annotations

from typing import Any, NamedTuple

Key = tuple[Any, ...]
"""The values of the columns by which a table is looked up."""


class FoundRow(NamedTuple):
    """A row of the table by the values of its columns; where it cannot be read, only those of its key, and why."""

    values: tuple[Any, ...]
    unreadable: str | None = None
