"""The windows that rows are grouped by; a start is inside, an end is not. All lengths are milliseconds.

Which of them a row is in, `slices.py` says.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hop:
    """Windows of length `size`, one starting every `slide`, aligned to the epoch plus `offset`.

    A slide above the size leaves gaps; it need not divide the size.

    >>> from operators.windows.slices import np, windows_of
    >>> found = windows_of(Hop(size=10, slide=5), np.array([5]))  # those that a row at 5 ms is in
    >>> list(zip(found.starts.tolist(), found.ends.tolist()))
    [(0, 10), (5, 15)]
    """

    size: int
    slide: int
    offset: int = 0


def tumble(size: int, offset: int = 0) -> Hop:
    """Return windows of length `size` that touch and do not overlap.

    >>> tumble(10_000)
    Hop(size=10000, slide=10000, offset=0)
    """
    return Hop(size=size, slide=size, offset=offset)


@dataclass(frozen=True, slots=True)
class Cumulate:
    """Windows that start every `size` and end after each `step` of it; `size` is a multiple of `step`.

    >>> from operators.windows.slices import np, windows_of
    >>> found = windows_of(Cumulate(size=60, step=20), np.array([20]))  # those that a row at 20 ms is in
    >>> list(zip(found.starts.tolist(), found.ends.tolist()))
    [(0, 40), (0, 60)]
    """

    size: int
    step: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Attached:
    """The windows that rows already carry: the positions of their start and end (wall clock of the zone)."""

    start: int
    end: int


SlicedWindow = Hop | Cumulate | Attached
"""Windows that are made of slices, or come with the rows: those of which no row moves a bound."""
