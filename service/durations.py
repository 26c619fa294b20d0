"""Durations as people write them in settings: "500ms", "30s", "5m", "1h", "7d"; a bare number is milliseconds."""

from __future__ import annotations

import re

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "": 1}
_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def milliseconds(text: str | int | float) -> int:
    """Return the duration in milliseconds. Raises ValueError, with what is allowed.

    >>> milliseconds("1.5 s")
    1500
    """
    match = _FORM.fullmatch(str(text))
    if match is None or match[2].lower() not in _UNITS:
        raise ValueError(f'"{text}" is no duration; write a number with ms, s, m, h or d, such as "30s"')
    return round(float(match[1]) * _UNITS[match[2].lower()])


def text(milliseconds: int) -> str:
    """Return a duration as `milliseconds` reads it back, in the largest unit that leaves a whole number."""
    for unit in ("d", "h", "m", "s"):
        if milliseconds and milliseconds % _UNITS[unit] == 0:
            return f"{milliseconds // _UNITS[unit]}{unit}"
    return f"{milliseconds}ms" if milliseconds else "0"
