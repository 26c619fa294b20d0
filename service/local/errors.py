"""Errors in the files of a golden case."""

from __future__ import annotations

from pathlib import Path


class CaseError(Exception):
    """A case that cannot be run as it is written; the message begins with file:line where there is one."""

    @staticmethod
    def at(path: Path, line: int, message: str) -> CaseError:
        """Return a mistake in one line of a file."""
        return CaseError(f"{path}:{line}: {message}")
