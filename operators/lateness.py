"""When a row is late: what it could still change has been emitted, as of the watermark of the batch before.

A row whose time the watermark has passed is not late by that alone. A window takes it until the window closes, an
interval join until its last possible partner has passed, an OVER window until a newer row of its key has been emitted.
All times and watermarks are in milliseconds.

Each family of operators makes its decision of this: windows in `windows/closing.py` (`split_closed`), OVER windows in
`over/over.py` (`_late`), interval joins in `joins/interval_join.py`, others where they call the functions here. What
they find late leaves a step beside its changes, as `Step.late`.
"""

from __future__ import annotations

from operators.arrays import Mask, Times


def has_passed(times: Times, watermark: int) -> Mask:
    """Return which `times` the watermark has reached."""
    passed: Mask = times <= watermark
    return passed


def out_of_reach(times: Times, reach: int, watermark: int) -> Mask:
    """Return which rows can match nothing any more: the watermark has passed their `times` by `reach`."""
    return has_passed(times + reach, watermark)
