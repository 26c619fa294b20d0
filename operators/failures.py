"""The error text of a row, as its dead letter shows it."""

from __future__ import annotations

UNKNOWN = "the row cannot be computed"


def reason_of(error: Exception) -> str:
    """Return the text of an error in one line, without DuckDB's own advice and the column names of a block."""
    lines = str(error).splitlines()
    text = lines[0].split(" Error: ", 1)[-1] if lines else type(error).__name__
    return text.split(" in expression (")[0].split(". Use TRY")[0].split(". You might want")[0]
