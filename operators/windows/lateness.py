"""When a row is late: what it could still change has been emitted, as of the watermark of the batch before.

A row whose time the watermark has passed is not late by that alone. A window takes it until the window closes, an
interval join until its last possible partner has passed, an OVER window until a newer row of its key has been emitted.
All times and watermarks are in milliseconds.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.time import MIN_TIME
from operators.windows.slices import Times, instants

Mask = npt.NDArray[np.bool_]


def has_passed(times: Times, watermark: int) -> Mask:
    """Return which `times` the watermark has reached."""
    passed: Mask = times <= watermark
    return passed


def out_of_reach(times: Times, reach: int, watermark: int) -> Mask:
    """Return which rows nothing can meet any more: the watermark has passed their `times` by `reach`."""
    return has_passed(times + reach, watermark)


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
