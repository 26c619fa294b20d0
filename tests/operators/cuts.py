"""Logs that are cut into batches of drawn sizes, whose watermark follows the times of the rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from operators.time import END_OF_TIME
from tests.operators.properties import Batch, Change

EPOCH = datetime(1970, 1, 1)


def behind(column: int, delay: int) -> Callable[[Sequence[Change]], int]:
    """Return what gives the watermark after some changes: `delay` ms behind the newest time in a column."""

    def watermark(changes: Sequence[Change]) -> int:
        newest: datetime = max(change.row[column] for change in changes)
        return (newest - EPOCH) // timedelta(milliseconds=1) - delay

    return watermark


def in_batches(
    changes: Sequence[Change],
    sizes: Iterator[int],
    watermark: Callable[[Sequence[Change]], int],
    *,
    apart: int = 0,
) -> list[Batch]:
    """Return `changes` in batches of these `sizes`, each with the `watermark` of all rows so far, and a last one that
    ends time; they are `apart` ms of processing time from each other."""
    batches: list[Batch] = []
    start = 0
    while start < len(changes):
        size = next(sizes)
        batches.append(Batch(changes[start : start + size], apart * len(batches), watermark(changes[: start + size])))
        start += size
    return [*batches, Batch([], apart * len(batches), END_OF_TIME)]


def steps(seed: int, sizes: Sequence[int] = (1, 3, 20)) -> Iterator[int]:
    """Yield sizes of batches, drawn from `sizes`."""
    rng = random.Random(seed)
    while True:
        yield rng.choice(sizes)
