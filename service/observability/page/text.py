"""Numbers as people read them."""

from __future__ import annotations

import math
from datetime import UTC, datetime


def count(number: float) -> str:
    """Return a whole number: '12,345'; from ten million on '12.3 M', then G and T."""
    for large, unit in ((1e12, "T"), (1e9, "G"), (1e7, "M")):
        if abs(number) >= large:
            return f"{number / (1e6 if unit == 'M' else large):,.1f} {unit}"
    return f"{round(number):,}"


def many(number: int, one: str, more: str) -> str:
    """Return a number with its noun: '1 row', '12 rows'."""
    return f"{count(number)} {one if number == 1 else more}"


def rate(number: float) -> str:
    """Return how many a second: '0.4', '12', '3,400'."""
    return f"{number:.1f}" if 0 < number < 9.95 else count(number)


def seconds(length: float) -> str:
    """Return a length of time: '120 ms', '2.3 s', '4 min 10 s', '3 h 5 min', '2 d 4 h'."""
    if length < 0:
        return f"-{seconds(-length)}"
    if length < 0.9995:
        return f"{round(length * 1000)} ms"
    if length < 59.95:
        return f"{length:.1f} s" if length < 9.95 else f"{round(length)} s"
    whole = round(length)
    for large, big, small, little in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= large:
            rest = whole % large // small
            return f"{whole // large} {big}" + (f" {rest} {little}" if rest else "")
    return f"{whole} s"


def ago(length: float) -> str:
    """Return how long ago something was: 'just now', '2.3 s ago'."""
    return "just now" if length < 0.9995 else f"{seconds(length)} ago"


def size(octets: float) -> str:
    """Return a number of bytes: '512 B', '1.5 MiB'."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(octets) < 1024:
            return f"{round(octets)} B" if unit == "B" else f"{octets:.1f} {unit}"
        octets /= 1024
    return f"{octets:.1f} TiB"


def share(part: float) -> str:
    """Return a share of a whole: '81 %'."""
    return "under 1 %" if 0 < part < 0.005 else f"{round(part * 100)} %"


def instant(at: float) -> str:
    """Return a point in time, in UTC: '2026-11-21 13:04:05'."""
    if not math.isfinite(at) or not -62_135_596_800 <= at < 253_402_300_800:
        return "the end of time" if at > 0 else "the beginning of time"
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def among(names: list[str]) -> str:
    """Return names as a sentence lists them: 'a', 'a and b', 'a, b and c'."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
