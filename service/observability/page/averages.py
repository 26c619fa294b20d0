"""Averages and trends of the recent batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median, variance
from typing import TypeVar

from service.observability.page.batch import BatchRecord, Place, passed, place_of
from service.observability.page.counted import Counted
from service.observability.page.document import Batches, BatchSizingStatus, Phase
from service.settings import BatchSettings

Key = TypeVar("Key")

FEWEST = 6
"""The batches that a trend needs, three in each half."""

SHORTEST = 10.0
"""The seconds that these must span."""

FULL = 0.95
"""The share of the record limit at which a batch counts as full: Spark divides the limit among partitions and rounds
down."""


def batches(recent: Sequence[BatchRecord], counted: Counted, settings: BatchSettings, now: float) -> Batches:
    """Return the averages of the recent batches. Those without rows only carry the time, so they count only if there
    are no others."""
    working = [batch for batch in recent if batch.rows] or list(recent)
    lengths = [batch.progress.seconds for batch in working]
    last = recent[-1] if recent else None
    return Batches(
        completed=counted.total("batches_total"),
        failed=counted.total("batch_failures_total"),
        recent=len(recent),
        number=last.progress.batch if last else None,
        ended=last.ended if last else None,
        last_seconds=last.progress.seconds if last else None,
        last_rows=last.rows if last else None,
        median_seconds=median(lengths) if lengths else None,
        slowest_seconds=max(lengths, default=None),
        busy=min(1.0, sum(batch.progress.seconds for batch in recent) / span(recent, now)) if recent else None,
        trigger_seconds=settings.trigger / 1000,
        tick_seconds=settings.tick / 1000,
        most_rows=settings.rows,
        full=last is not None and max(last.progress.rows, default=0) >= FULL * settings.rows,
        phases=_driver_phases(working),
        tasks=_phases([batch.tasks for batch in working], sum(sum(batch.tasks.values()) for batch in working)),
    )


def _driver_phases(working: Sequence[BatchRecord]) -> tuple[Phase, ...]:
    """The phases of the driver; what is in none of them is 'other'."""
    reports = [batch.progress for batch in working]
    whole = [{**each.phases, "other": max(0.0, each.seconds - sum(each.phases.values()))} for each in reports]
    return _phases(whole, sum(sum(phases.values()) for phases in whole))


def _phases(each: Sequence[Mapping[str, float]], whole: float) -> tuple[Phase, ...]:
    """Mean seconds by phase, the longest first."""
    sums: dict[str, float] = {}
    for phases in each:
        for phase, seconds in phases.items():
            sums[phase] = sums.get(phase, 0.0) + seconds
    return tuple(
        Phase(phase, round(seconds / len(each), 6), round(seconds / whole, 4) if whole else 0.0)
        for phase, seconds in sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    )


def pace(recent: Sequence[BatchRecord], lag: int, now: float) -> BatchSizingStatus:
    """Return the rates at which rows are read and written."""
    length = span(recent, now)
    return BatchSizingStatus(
        rows_in=round(sum(batch.rows for batch in recent) / length, 3),
        rows_out=round(sum(batch.written for batch in recent) / length, 3),
        waiting=recent[-1].waiting if recent else 0,
        left=recent[-1].left if recent else 0,
        lag=lag,
        trend=trend([(batch.began, batch.waiting) for batch in recent]),
    )


def span(recent: Sequence[BatchRecord], now: float) -> float:
    """Return seconds since the first of these batches began."""
    return max(1.0, now - recent[0].began) if recent else 1.0


def trend(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the growth of a value per second, from (time, value): the difference of the means of both halves. 0 if
    they differ by no more than chance; None if there are too few values."""
    if len(points) < FEWEST or points[-1][0] - points[0][0] < SHORTEST:
        return None
    half = len(points) // 2
    (early, before), (late, after) = (list(zip(*part, strict=True)) for part in (points[:half], points[half:]))
    difference = fmean(after) - fmean(before)
    chance = 2 * (variance(before) / len(before) + variance(after) / len(after)) ** 0.5
    return 0.0 if abs(difference) <= chance else round(difference / (fmean(late) - fmean(early)), 3)


def table_rates(recent: Sequence[BatchRecord], now: float) -> Mapping[str, float]:
    """Return the records read per second, by table."""
    return _rates([batch.by_table for batch in recent], span(recent, now))


def partition_rates(recent: Sequence[BatchRecord], now: float) -> Mapping[Place, float]:
    """Return the offsets read per second, by partition."""
    each = [{place_of(read): passed(read) for read in batch.progress.reads} for batch in recent]
    return _rates(each, span(recent, now))


def _rates(each: Sequence[Mapping[Key, int]], length: float) -> Mapping[Key, float]:
    sums: dict[Key, int] = {}
    for rows in each:
        for key, number in rows.items():
            sums[key] = sums.get(key, 0) + number
    return {key: round(total / length, 3) for key, total in sums.items()}
