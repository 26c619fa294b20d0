"""When a row is late: what it could still change has been emitted, as of the watermark of the batch before.

A row whose time the watermark has passed is not late by that alone. A window takes it until the window closes, an
interval join until its last possible partner has passed, an OVER window until a newer row of its key has been emitted.
All times and watermarks are in milliseconds.

Each family of operators makes its decision of this: windows in `windows/closing.py` (`split_closed`), OVER windows in
`over/over.py` (`_late`), interval joins in `joins/interval_join.py`, others where they call the functions here: of rows
that are answered at their own time, `split_late`. What they find late leaves a step beside its changes, as `Step.late`.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from operators.arrays import Mask, Times
from operators.changes import weigh


def has_passed(times: Times, watermark: int) -> Mask:
    """Return which `times` the watermark has reached."""
    passed: Mask = times <= watermark
    return passed


def out_of_reach(times: Times, reach: int, watermark: int) -> Mask:
    """Return which rows can match nothing any more: the watermark has passed their `times` by `reach`."""
    return has_passed(times + reach, watermark)


class OnTime(NamedTuple):
    """The rows that are on time, and their times; the late ones, with weight 1, by port (0; none if none is late)."""

    rows: pa.Table
    times: Times
    late: dict[int, pa.Table]


def split_late(rows: pa.Table, times: Times, watermark: int) -> OnTime:
    """Split `rows`, which have no weights, of the only port: those whose `times` the watermark had reached are late.

    >>> import numpy as np
    >>> found = split_late(pa.table({"c0": ["a", "b"]}), np.array([5, 9]), watermark=5)
    >>> found.rows.to_pylist(), found.times.tolist(), found.late[0].to_pylist()
    ([{'c0': 'b'}], [9], [{'c0': 'a', '_weight': 1}])
    """
    behind = has_passed(times, watermark)
    if not behind.any():
        return OnTime(rows, times, {})
    return OnTime(rows.filter(pa.array(~behind)), times[~behind], {0: weigh(rows.filter(pa.array(behind)), 1)})
