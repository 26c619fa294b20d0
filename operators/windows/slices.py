"""Assignment of windows: slices, the stretches of time that no window cuts, and which windows a slice is in.

A slice is named by its start. Windows and slices are wall-clock times (ms) of the zone they are aligned to; they close
by the instant that their end is, since a clock gives instants.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from operators.arrays import Times, distinct
from operators.sql import Sql
from operators.sql_text import select
from operators.windows.shapes import Attached, Cumulate, Hop, SlicedWindow

_FAR = 2**53
"""Times beyond this (in ms) are no dates: they stand for before and after everything."""

_DAY = 86_400_000
"""Milliseconds of a day: clocks are never further apart than that."""

_EPOCH = datetime(1970, 1, 1)


class Windows(NamedTuple):
    """Windows by slice: row i says that the slice `slices[i]` is in the window from `starts[i]` to `ends[i]`."""

    slices: Times
    starts: Times
    ends: Times


def slice_length(window: Hop | Cumulate) -> int:
    """Return the length of a slice in ms; windows that do not overlap are their own slices.

    >>> slice_length(Hop(size=10, slide=4))
    2
    >>> slice_length(Cumulate(size=60, step=20))
    20
    """
    if isinstance(window, Cumulate):
        return window.step
    return window.size if window.slide >= window.size else math.gcd(window.size, window.slide)


def period(window: Hop | Cumulate) -> int:
    """Return the distance between the starts of windows, in ms."""
    return window.size if isinstance(window, Cumulate) else window.slide


_BEFORE_ALL_TIMES = 10**16
"""More milliseconds than there are before the epoch in DuckDB's range of TIMESTAMP, which is 290 thousand years."""


def local(column: str, zone: str | None) -> str:
    """Return DuckDB text for the wall-clock time in `zone` of a TIMESTAMP in UTC; without a zone it is that already."""
    # Through the table of time zones a row takes three times what the rest of its aggregation does.
    return column if zone in (None, "UTC") else f"timezone('{zone}', timezone('UTC', {column}))"


def floor_text(time: str, step: int, offset: int) -> str:
    """Return DuckDB text for the last multiple of `step` ms (plus `offset`) at or before the TIMESTAMP `time`,
    in ms."""
    ms = f"epoch_ms({time})" if offset % step == 0 else f"(epoch_ms({time}) - {offset % step})"
    # DuckDB's % takes the sign of the time: a multiple of the step is added that makes all times positive.
    floored = f"({ms} - ({ms} + {step * (_BEFORE_ALL_TIMES // step + 1)}) % {step})"
    return floored if offset % step == 0 else f"({floored} + {offset % step})"


def slice_text(window: Hop | Cumulate, time: str) -> tuple[str, str | None]:
    """Return DuckDB text for the start of the slice of a TIMESTAMP `time`, and the condition that it is in a window at
    all."""
    if isinstance(window, Hop) and window.slide > window.size:
        start = floor_text(time, window.slide, window.offset)
        return start, f"epoch_ms({time}) < {start} + {window.size}"
    return floor_text(time, slice_length(window), window.offset), None


def last_ends(window: Hop | Cumulate, slices: Times) -> Times:
    """Return the end of the last window that each slice is in.

    >>> last_ends(Hop(size=10, slide=5), np.array([0, 5, 10])).tolist()
    [10, 15, 20]
    """
    step = period(window)
    return slices - (slices - window.offset) % step + window.size


def windows_of(window: Hop | Cumulate, slices: Times) -> Windows:
    """Return all windows that each of the distinct `slices` is in, each slice's from the first to the last to end.

    >>> hopping = windows_of(Hop(size=10, slide=5), np.array([5]))
    >>> [(int(s), int(e)) for s, e in zip(hopping.starts, hopping.ends)]
    [(0, 10), (5, 15)]
    >>> growing = windows_of(Cumulate(size=60, step=20), np.array([20]))
    >>> [(int(s), int(e)) for s, e in zip(growing.starts, growing.ends)]
    [(0, 40), (0, 60)]
    """
    if isinstance(window, Cumulate):
        bases = slices - (slices - window.offset) % window.size
        count = window.size // window.step
        ends = bases[:, None] + window.step * np.arange(1, count + 1)
        inside = ends > slices[:, None]
        starts = np.broadcast_to(bases[:, None], ends.shape)
    else:
        count = -(-window.size // window.slide)
        starts = last_ends(window, slices)[:, None] - window.size - window.slide * np.arange(count)[::-1]
        ends = starts + window.size
        inside = ends > slices[:, None]
    owners = np.broadcast_to(slices[:, None], ends.shape)
    return Windows(owners[inside], starts[inside], ends[inside])


class InWindows(NamedTuple):
    """Rows by window: the row at position `rows[i]` is in the window from `starts[i]` to `ends[i]`."""

    rows: Times
    starts: Times
    ends: Times


def rows_in_windows(window: Hop | Cumulate, slices: Times) -> InWindows:
    """Return the windows of rows that are in `slices`, a row's from the first to the last to end, in the order of the
    rows.

    >>> found = rows_in_windows(Hop(size=10, slide=5), np.array([5, 0]))
    >>> [(int(r), int(s), int(e)) for r, s, e in zip(*found)]
    [(0, 0, 10), (0, 5, 15), (1, -5, 5), (1, 0, 10)]
    """
    different = distinct(slices)
    owner = np.searchsorted(different, slices)
    windows = windows_of(window, different)
    counts = np.bincount(np.searchsorted(different, windows.slices), minlength=len(different))
    firsts = np.cumsum(counts) - counts
    repeats = counts[owner]
    rows = np.repeat(np.arange(len(owner)), repeats)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    chosen = np.repeat(firsts[owner], repeats) + nth
    return InWindows(rows, windows.starts[chosen], windows.ends[chosen])


def instants(walls: Times, zone: str | None) -> Times:
    """Return the instant (ms since the epoch) of each wall-clock time; of two the later; a skipped one as if it were
    not."""
    if zone is None or zone == "UTC":
        return walls
    different = distinct(walls)
    there = ZoneInfo(zone)
    mapped = np.array([_instant(int(wall), there) for wall in different], dtype=np.int64)
    return mapped[np.searchsorted(different, walls)]


def _instant(wall: int, zone: ZoneInfo) -> int:
    if abs(wall) > _FAR:
        return wall
    naive = _EPOCH + timedelta(milliseconds=wall)
    both = (naive.replace(tzinfo=zone, fold=fold).astimezone(UTC).replace(tzinfo=None) for fold in (0, 1))
    return max((instant - _EPOCH) // timedelta(milliseconds=1) for instant in both)


def wall_clock(instant: int, zone: str | None) -> int:
    """Return the wall-clock time in `zone` at `instant`, both in ms."""
    if zone is None or zone == "UTC" or abs(instant) > _FAR:
        return instant
    there = (_EPOCH + timedelta(milliseconds=instant)).replace(tzinfo=UTC).astimezone(ZoneInfo(zone))
    return (there.replace(tzinfo=None) - _EPOCH) // timedelta(milliseconds=1)


def walls(times: Times, zone: str | None, sql: Sql) -> Times:
    """Return the wall-clock time in `zone` at each instant, all in ms."""
    if zone is None or zone == "UTC" or len(times) == 0:
        return times
    statement = select([f"epoch_ms({local('make_timestamp(t * 1000)', zone)}) AS wall"], "times")
    answer: Times = sql(statement, {"times": pa.table({"t": times})}).column("wall").to_numpy()
    return answer


def reach(window: SlicedWindow, previous: int, watermark: int, zone: str | None) -> tuple[int, int]:
    """Return which slices (after, up to) are in the windows that close once `previous` becomes `watermark`.

    Slices of windows that stay open are not among them, so what is read does not grow with what is open. Close to where
    the clocks of `zone` change the guess is wide.
    """
    slack = 0 if _steady(zone, previous, watermark) else _DAY
    low, high = wall_clock(previous, zone) + 1 - slack, wall_clock(watermark, zone) + 1 + slack
    if isinstance(window, Attached):
        return low, high
    if isinstance(window, Cumulate):
        apart, phase = window.step, window.offset
    else:
        apart, phase = window.slide, window.offset + window.size
    first, last = low + apart - (low - phase) % apart, high - (high - phase) % apart
    return (low, low) if last < first else (first - window.size - 1, last - slice_length(window))


_HOUR = 3_600_000
"""Milliseconds of an hour."""

_WATCHED = 10 * _DAY
"""The longest stretch of which each hour is asked for its clock: more would cost a batch more than the slack does."""

_SET_BACK = 3 * _HOUR
"""The most by which clocks have been set back at once since 1970, in Antarctica/Casey: so far may time that has passed
come again. (The seven hours of Antarctica/Vostok in 1994 are those of a station that nobody manned.)"""


def _steady(zone: str | None, previous: int, watermark: int) -> bool:
    """Whether the clocks of `zone` do not change from a day before `previous` to a day after `watermark`, as far as
    that is cheap to know."""
    if zone is None or zone == "UTC":
        return True
    if abs(previous) > _FAR or abs(watermark) > _FAR or watermark - previous > _WATCHED:
        return False
    moments = range(previous - _DAY, watermark + _DAY + _HOUR, _HOUR)
    return len({wall_clock(each, zone) - each for each in moments}) == 1


def closed_upto(watermark: int, zone: str | None) -> int:
    """Return the last end (wall clock of `zone`) up to which all windows are closed at `watermark`, or one a bit before
    it."""
    slack = 0 if zone is None or zone == "UTC" else _SET_BACK
    return wall_clock(watermark, zone) + 1 - slack


def horizon(window: SlicedWindow, watermark: int, zone: str | None) -> int:
    """Return the last slice that is in no window still open at `watermark`."""
    closed = closed_upto(watermark, zone)
    if isinstance(window, Attached):
        return closed
    first = closed - window.size
    return first - (first - window.offset) % period(window) + period(window) - 1
