"""Skewed partitions: one with most of the rows, one that holds the watermark back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from service.observability.page.document import Finding, JobStatus, Partition, TableStatus
from service.observability.page.text import count, instant, rate, seconds, share

FEW_ROWS = 1_000
"""The number of unread rows below which their distribution says nothing."""

SLOW = 10.0
"""The rows per second of a whole table below which the same holds."""

BEHIND = 30.0
"""Seconds by which the slowest partition must lag behind the next one to be named."""


def hot_partitions(job: JobStatus, now: float) -> Iterator[Finding]:
    """Yield a partition with most of the unread rows, if batches leave some, or else with most of those that come."""
    hint = "one task reads one partition: choose a record key that spreads the rows, or spread the hot key"
    for table in job.tables:
        unread = _hottest(table.partitions, lambda p: p.lag, FEW_ROWS) if job.pace.left else None
        if unread is not None:
            partition, part = unread
            text = f"{_named(partition)} has {share(part)} of the {count(table.lag)} unread rows of {table.table}"
            yield Finding("watch", "hot partition", text + _of(table), hint)
            continue
        coming = _hottest(table.partitions, lambda p: p.rows_per_second, SLOW)
        if coming is not None:
            partition, part = coming
            rows = f"{rate(table.rows_per_second)} rows a second"
            text = f"{_named(partition)} has {share(part)} of the {rows} of {table.table}"
            yield Finding("note", "hot partition", text + _of(table), hint)


def watermark_holders(job: JobStatus, now: float) -> Iterator[Finding]:
    """Yield a partition that holds back the watermark of its table."""
    stands = {operator.watermark for operator in job.operators}
    for table in job.tables:
        holding = [p for p in table.partitions if not p.idle]
        if not table.has_watermark or len(holding) < 2:
            continue
        silent = [p for p in holding if p.watermark is None]
        if silent and len(silent) < len(holding) and stands == {None}:
            text = (
                f"No watermark yet for {table.table}: it waits for every partition, and {_listed(silent)} had no rows"
            )
            hint = "set 'scan.watermark.idle-timeout' in the table, if partitions may be silent"
            yield Finding("watch", "watermark", text, "" if table.idle_timeout_seconds else hint)
            continue
        known = sorted((p.watermark, p.topic, p.partition) for p in holding if p.watermark is not None)
        if len(known) > 1 and known[1][0] - known[0][0] > BEHIND:
            last = next(p for p in holding if (p.watermark, p.topic, p.partition) == known[0])
            text = (
                f"{_named(last)} holds the watermark of {table.table} at {instant(known[0][0])} UTC,"
                f" {seconds(known[1][0] - known[0][0])} behind the next partition"
            )
            yield Finding("watch", "watermark", text, _why_behind(table, last, now))


def _why_behind(table: TableStatus, partition: Partition, now: float) -> str:
    quiet = partition.moved is None or now - partition.moved > BEHIND
    if partition.lag == 0 and quiet:
        if table.idle_timeout_seconds:
            return f"it is silent; after {seconds(table.idle_timeout_seconds)} it holds time back no longer"
        return "it is silent: set 'scan.watermark.idle-timeout' in the table, if partitions may be silent"
    return "its rows are older than those of the others; it has to catch up"


def _hottest(
    partitions: Sequence[Partition], weight: Callable[[Partition], float], least: float
) -> tuple[Partition, float] | None:
    """The partition with the largest weight and its share; None if no partition stands out, or there are too few
    rows."""
    whole = sum(map(weight, partitions))
    if len(partitions) < 2 or whole < least:
        return None
    hottest = max(partitions, key=weight)
    part = weight(hottest) / whole
    return (hottest, part) if part > 0.5 + 0.5 / len(partitions) else None


def _named(partition: Partition) -> str:
    return f"Partition {partition.partition} of {partition.topic}"


def _of(table: TableStatus) -> str:
    return f" ({len(table.partitions)} partitions)"


def _listed(partitions: Sequence[Partition]) -> str:
    names = [f"{p.topic}/{p.partition}" for p in partitions[:5]]
    return ", ".join(names) + (f" and {len(partitions) - 5} more" if len(partitions) > 5 else "")
