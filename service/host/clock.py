"""The time of batches, from a clock that may be wrong for a while, as that of a machine is before it is synchronized.

Rows that time has passed by are lost permanently, so one batch in the wrong year costs state. Whether a clock has
jumped is checked with a monotonic clock. A jump ahead is not believed until it has lasted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

JUMP = 3600.0
"""Seconds by which the clock may gain on the elapsed time, and still count as corrected."""

BELIEVED_AFTER = 600.0
"""Seconds after which a clock that has jumped is trusted."""


class ClockJumped(Exception):
    """The clock of this machine has advanced by more than the elapsed time."""


def believed_time(file: Path, now: Callable[[], float] = time.time, running: Callable[[], float] | None = None) -> int:
    """Return the time in milliseconds since the epoch. Raises ClockJumped.

    `file` stores both clocks for the life of a run. `running` counts the elapsed seconds, those of a sleep of the
    machine too.
    """
    seconds, passed = now(), (running or elapsed)()
    known = json.loads(file.read_text()) if file.exists() else None
    if known is not None:
        ahead = (seconds - known["now"]) - (passed - known["running"])
        since = known["jumped"] if known["jumped"] is not None else passed
        if ahead > JUMP and passed - since < BELIEVED_AFTER:
            _write(file, {**known, "jumped": since})
            raise ClockJumped(
                f"the clock of this machine went ahead by {in_words(ahead)} at once; no batch is made with such a"
                f" time\n  hint:   set the clock right; one that is right now is believed in"
                f" {in_words(BELIEVED_AFTER)}, or when the service is started again"
            )
    _write(file, {"now": seconds, "running": passed, "jumped": None})
    return int(seconds * 1000)


def elapsed() -> float:
    """Return the seconds since the machine was booted. A sleep of it counts; setting its clock does not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _write(file: Path, value: dict[str, float | None]) -> None:
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(value))
    temporary.rename(file)


def in_words(seconds: float) -> str:
    """Return a duration as people say it."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
