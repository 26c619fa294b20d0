"""The lines of the JVM's error stream that say nothing new: how it was started."""

from __future__ import annotations

_AT_THE_START = (
    "WARNING: Using incubator modules",
    "Setting default log level to",
    "To adjust logging level use",
)


def is_noise(line: str) -> bool:
    """Return whether nobody needs this line."""
    return line.startswith(_AT_THE_START)
