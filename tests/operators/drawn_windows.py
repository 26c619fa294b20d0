"""The windows of a stream, as the examples in docstrings show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import pyarrow as pa

from operators.columns import positional
from operators.kernel import Kernel
from operators.time import END_OF_TIME
from operators.windows.stream.window_output import WindowOutput
from tests.operators.properties import Batch, Change, Run

_EPOCH = datetime(1970, 1, 1)
_INPUT = positional([pa.timestamp("us"), pa.bool_(), pa.bool_()])
_RESULT = WindowOutput(input=_INPUT, output=positional([*_INPUT.types, *[pa.int64()] * 3]))


def windows_of(
    kernel: Callable[[WindowOutput], Kernel], times: Sequence[int], begin: Sequence[int] = (), end: Sequence[int] = ()
) -> Mapping[tuple[int, int], list[int]]:
    """Return the windows over rows at these `times` (ms), from start to end, each with the times of its rows.

    The rows have their time in column 0; columns 1 and 2 are true for those at the times in `begin` and `end`.
    """
    rows = [(_EPOCH + timedelta(milliseconds=time), time in begin, time in end) for time in times]
    run = Run([kernel(_RESULT)])
    run(Batch([Change(row) for row in rows], watermark=END_OF_TIME))
    found: dict[tuple[int, int], list[int]] = {}
    for row, _ in run.log:
        found.setdefault((row[3], row[4]), []).append((row[0] - _EPOCH) // timedelta(milliseconds=1))
    return {bounds: sorted(inside) for bounds, inside in sorted(found.items())}
