"""The time of a batch, and the two ends of time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

MIN_TIME = -(2**62)
"""The watermark before anything is known, in milliseconds since the epoch."""

END_OF_TIME = 2**62
"""The watermark of an input that has ended, in milliseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of one batch at one operator; every value is in milliseconds since the epoch.

    `now` is the processing time of the batch, the same on a replay. `watermark` is the watermark of the operator's
    inputs (the minimum over them) once this batch is in; `previous` is that watermark as it stood at the end of the
    batch before: a row is late when it is behind `previous`, and windows close when `watermark` passes them.
    """

    now: int
    watermark: int
    previous: int


_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_EPOCH = datetime(1970, 1, 1)


def asks_time(text: str) -> bool:
    """Return whether DuckDB text has the parameter `$now`; inside of quotes it is a text like any other."""
    return "$now" in text and "$now" in _QUOTED.sub("", text)


def time_parameter(text: str, now: int) -> dict[str, datetime] | None:
    """Return the parameters of a statement: `$now` as a TIMESTAMP in UTC where it asks for it. `now` is in
    milliseconds."""
    return {"now": _EPOCH + timedelta(milliseconds=now)} if asks_time(text) else None
