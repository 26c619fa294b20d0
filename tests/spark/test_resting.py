"""A worker gives memory back once its tasks are small."""

from __future__ import annotations

from itertools import accumulate

import pytest

from service.spark.query.resting import AGAIN, RESTS, SMALL, Rest

BUSY, QUIET = 2 * SMALL, SMALL / 2


@pytest.mark.parametrize(
    ("tasks", "trimmed"),
    [
        ([QUIET] * (RESTS - 1), 0),
        ([QUIET] * RESTS, 1),
        ([QUIET] * (RESTS - 1) + [BUSY] + [QUIET] * (RESTS - 1), 0),
        ([BUSY] * (2 * RESTS), 0),
        ([QUIET] * (AGAIN - 1), 1),
        ([QUIET] * AGAIN, 2),
        ([QUIET] * RESTS + [BUSY] + [QUIET] * RESTS, 2),
    ],
)
def test_memory_is_given_back_after_some_small_tasks_in_a_row(tasks: list[float], trimmed: int) -> None:
    counted: list[None] = []
    readings = iter([x for end, took in zip(accumulate(tasks), tasks, strict=True) for x in (end - took, end)])
    rest = Rest(lambda: counted.append(None), lambda: next(readings))
    for _ in tasks:
        with rest.task():
            pass
    assert len(counted) == trimmed
