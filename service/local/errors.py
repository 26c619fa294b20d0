"""Errors in the files of a golden case."""

from __future__ import annotations

from pathlib import Path


class CaseError(Exception):
    """A case that cannot be run as it is written; the message begins with file:line where there is one, and ends with
    the hint, if there is one."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}\n  hint:   {hint}" if hint else message)

    @staticmethod
    def at(path: Path, line: int, message: str, hint: str = "") -> CaseError:
        """Return a mistake in one line of a file."""
        return CaseError(f"{path}:{line}: {message}", hint)
