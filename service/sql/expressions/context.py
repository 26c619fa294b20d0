"""What the compilation of one expression needs to know beside the expression."""

from __future__ import annotations

from dataclasses import dataclass

from service.sql.errors import Mistakes


@dataclass(frozen=True, slots=True)
class Context:
    """`mistakes` collects all mistakes of the file; `zone` is the session's time zone ('table.local-time-zone')."""

    mistakes: Mistakes
    zone: str = "UTC"
