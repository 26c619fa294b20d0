"""What the JVM says on its error stream that is no news: how it was started."""

from __future__ import annotations

_AT_THE_START = (
    "WARNING: Using incubator modules",
    "Setting default log level to",
    "To adjust logging level use",
)


def is_noise(line: str) -> bool:
    """Return whether nobody needs this line."""
    return line.startswith(_AT_THE_START)
