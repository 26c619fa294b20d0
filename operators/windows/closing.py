"""When a window is closed, and so which rows come too late for it.

All times and watermarks are in milliseconds.
"""

from __future__ import annotations

import pyarrow as pa

from operators.arrays import Mask, Times
from operators.lateness import has_passed
from operators.time import MIN_TIME
from operators.windows.slices import instants


def closed_at(watermark: int, ends: Times, zone: str | None) -> Mask:
    """Return which windows are closed once the watermark is `watermark`, by their ends (wall clock of `zone`; not
    inside)."""
    return has_passed(instants(ends, zone) - 1, watermark)


def split_closed(rows: pa.Table, ends: Times, watermark: int, zone: str | None) -> tuple[pa.Table, pa.Table]:
    """Split `rows` by the end of the last window that each is in: those on time, and those all of whose windows have
    closed."""
    if watermark == MIN_TIME or rows.num_rows == 0:
        return rows, rows.slice(0, 0)
    late = closed_at(watermark, ends, zone)
    if not late.any():
        return rows, rows.slice(0, 0)
    return rows.filter(pa.array(~late)), rows.filter(pa.array(late))
