"""The lines of the JVM's error stream that are always the same: how it was started."""

from __future__ import annotations

_AT_THE_START = (
    "WARNING: Using incubator modules",
    "Setting default log level to",
    "To adjust logging level use",
)


def is_noise(line: str) -> bool:
    """Return whether this line says nothing new."""
    return line.startswith(_AT_THE_START)
