"""The number of records in the next batch of a backlog, fitted to the target duration of the settings.

A batch has a price of its own, some tenths of a second, whatever it holds: cheap rows should come in large batches.
Dear rows (many keys, rows that fan out) would make the same batch long, late and large in memory: they should come in
smaller ones. What a record costs is not known before it was seen, so the pace is found while the job runs. It decides
only where a batch ends, which no answer depends on; the offsets of a batch stand in the checkpoint before it begins.

Memory has priority: the bytes of records of a batch are bounded, and after one that did not fit no more
records than half of its own, until batches of that size have been done for a while.
"""

from __future__ import annotations

from typing import NamedTuple

FIRST_ROWS = 200_000
"""The records of the first batch after a start, which mostly warms the JVM up: its results should not wait for a
million rows."""

LEAST_ROWS = 50_000
"""The least records of a batch, however much its rows fan out: for fewer, the fixed cost of the batch would be most of
it. A batch that does not fit into memory is halved further."""

GROWTH = 4.0
SHRINKAGE = 0.5
"""The largest factors by which one batch changes the number: a single batch may be slow for a reason of its own."""

PRICE = 0.4
"""Seconds of a batch that do not depend on its rows, as they are where batches are long enough for this to matter."""

LIMITED = 0.5
"""The part of the number that a batch must have read to be measured; a smaller one has read all that there was."""


PATIENCE = 8
"""The number of batches after which a number that fitted into memory may be doubled."""

SMALLER = 0.5
"""The part of a fall in the size of records that is believed after one batch; a rise is believed at once."""


class MemoryBound(NamedTuple):
    """The memory for records: `total` bytes in a batch, and `sent` bytes that go to one level (0 = any number). A
    record of the largest table stands for `record` bytes of the batch (0 = not known yet), and for `share` bytes of
    what is sent. Batch `failed_batch` did not fit (-1 = none); its limit was `rows` records of a table."""

    total: int
    record: float = 0.0
    failed_batch: int = -1
    rows: int = 0
    sent: int = 0
    share: float = 0.0

    def measured(self, record: float, share: float = 0.0) -> MemoryBound:
        """Note the size of a batch's records, and the `share` bytes of each that went to one level."""
        return self._replace(record=_risen(self.record, record), share=_risen(self.share, share))

    def most(self, batch: int) -> float:
        """Return the most records of a table in `batch`."""
        by_size = max(1, self.total // self.record) if self.record else float("inf")
        if self.sent and self.share:
            by_size = min(by_size, max(LEAST_ROWS, self.sent // self.share))
        if self.failed_batch < 0:
            return by_size
        return min(by_size, self.rows * 2.0 ** max(0, (batch - self.failed_batch) // PATIENCE))


def _risen(known: float, seen: float) -> float:
    """The new value of a size that rises at once, and falls gradually."""
    return max(seen, known + (seen - known) * SMALLER)


class BatchSizing:
    """The number of records, at most `most`, with which a batch takes about `seconds` and fits into memory;
    `next_batch` is the first that is planned."""

    def __init__(self, most: int, seconds: float, bound: MemoryBound | None = None, next_batch: int = 0) -> None:
        self._most = most
        self._least = min(most, FIRST_ROWS)
        self._seconds = seconds
        self._warm = False
        self._bound = bound
        self._paced = self._least
        self.rows = self._fitted(next_batch)

    def measured(self, record: float, share: float = 0.0) -> None:
        """Note the size of a batch's records: its bytes per record of its largest table, and the `share` of each in
        what was sent to the level that received most."""
        if self._bound is not None:
            self._bound = self._bound.measured(record, share)

    def batch(self, records: int, seconds: float, number: int = 0) -> bool:
        """Note that batch `number` took `records` of the largest table, and `seconds`. Return whether the number of
        records has changed."""
        before = self.rows
        self._pace(records, seconds)
        self.rows = self._fitted(number + 1)
        return self.rows != before

    def _fitted(self, batch: int) -> int:
        return self._paced if self._bound is None else max(1, int(min(self._paced, self._bound.most(batch))))

    def _pace(self, records: int, seconds: float) -> None:
        if records < LIMITED * self.rows:
            return
        wanted = _of_rows(self._seconds) / _of_rows(max(seconds, 0.001))
        if not self._warm:
            self._warm, wanted = True, GROWTH
        changed = round(records * min(max(wanted, SHRINKAGE), GROWTH))
        self._paced = min(max(changed, self._least), self._most)


def _of_rows(seconds: float) -> float:
    """The part of a batch's time that its rows take; at least half of a short batch."""
    return max(seconds - PRICE, seconds / 2)
