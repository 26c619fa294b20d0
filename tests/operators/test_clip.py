"""State in clips: every operator that keeps any, spread over another number of states from batch to batch.

`test_kernels.py` does the same with the cases of `kernels.py`; here are those of `growth.py`, which has every operator,
and keys of two columns of which one chooses the slot.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from operators.kernel import Kernel
from operators.time import END_OF_TIME
from operators.windows.shapes import Hop
from operators.windows.stream.session_window import SessionWindow
from operators.windows.stream.sliding_window import SlidingWindow
from operators.windows.stream.state_window import StateWindow
from operators.windows.stream.time_window import TimeWindow
from tests.operators import test_count_window as count_window
from tests.operators import test_group_by as group_by
from tests.operators.growth import GROWTH, ROWS_OUT, Growth, event
from tests.operators.kernels import key_columns
from tests.operators.properties import Batch, Change, holds_clip

SHARDS = [2, 3, 1, 4, 2]


@pytest.mark.parametrize("case", GROWTH.values(), ids=GROWTH)
def test_over_how_many_states_keys_are_spread_does_not_change_the_answer(case: Growth):
    batches = [*case.filled(60), case.small, Batch([]), Batch([], watermark=END_OF_TIME)]
    holds_clip(case.kernels, batches, key_columns(case.kernels[-1]), None, SHARDS)


BOTH = (0, 1)
WIDE: dict[str, Kernel] = {
    "count window": count_window.rows_out(BOTH, 3, 2),
    "sliding window": SlidingWindow(result=ROWS_OUT, partition=BOTH, time=4, size=20, delay=5, fires=2),
    "session window": SessionWindow(result=ROWS_OUT, partition=BOTH, time=4, longest=40, timeout=9),
    "state window": StateWindow(result=ROWS_OUT, partition=BOTH, time=4, begin=2, emit=3),
    "time window": TimeWindow(result=ROWS_OUT, partition=BOTH, time=4, window=Hop(size=20, slide=10)),
}


def events(columns: int) -> Sequence[Batch]:
    """Events of twelve keys, in order, of which the watermark is a little behind."""
    rows = [event(f"k{i * 7 % 4}", i, i % 3 == 0, i % 5 == 0) for i in range(90)]
    rows = [(row[0], i * 5 % 3, *row[2:]) for i, row in enumerate(rows)]
    batches = [
        Batch([Change(row[:columns]) for row in rows[at : at + 6]], now=at, watermark=at) for at in range(0, 90, 6)
    ]
    return [*batches, Batch([], now=1000, watermark=END_OF_TIME)]


@pytest.mark.parametrize("order", [(0,), (1,), (1, 0)])
@pytest.mark.parametrize("kernel", WIDE.values(), ids=WIDE)
def test_one_column_of_the_partition_may_choose_the_slot_of_a_window(kernel: Kernel, order: tuple[int, ...]):
    holds_clip((kernel,), events(len(kernel.inputs[0])), [BOTH], order, SHARDS)


@pytest.mark.parametrize("order", [(0,), (1,), (1, 0)])
def test_one_column_of_the_key_may_choose_the_slot_of_a_group(order: tuple[int, ...]):
    kernels = group_by.grouping((0, 4), group_by.AGGREGATES)
    holds_clip(kernels, group_by.generated(5, 15, append=False), [(0, 1)], order, SHARDS)
