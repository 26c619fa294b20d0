"""How many records the next batch of a backlog takes, so that it lasts about as long as the settings want.

A batch has a price of its own, some tenths of a second, whatever it holds: cheap rows should come in large batches.
Dear rows (many keys, rows that fan out) would make the same batch long, late and large in memory: they should come in
smaller ones. What a record costs is not known before it was seen, so the pace is found while the job runs. It decides
only where a batch ends, which no answer depends on; the offsets of a batch stand in the checkpoint before it begins.
"""

from __future__ import annotations

FIRST_ROWS = 200_000
"""Of the first batch after a start, which mostly warms the JVM up: its results should not wait for a million rows."""

GROWTH = 4.0
SHRINKAGE = 0.5
"""The most that one batch changes the number: a single batch may have been slow for a reason of its own."""

PRICE = 0.4
"""Seconds of a batch that do not depend on its rows, as they are where batches are long enough for this to matter."""

LIMITED = 0.5
"""Part of the number that a batch must have taken to tell something of it; less was all there was."""


class BatchSizing:
    """The number of records, at most `most`, with which a batch takes about `seconds`."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._least = min(most, FIRST_ROWS)
        self._seconds = seconds
        self._warm = False
        self.rows = self._least

    def batch(self, records: int, seconds: float) -> bool:
        """A batch took `records` of the table that gave most, and `seconds`. Whether the number is another now."""
        if records < LIMITED * self.rows:
            return False
        wanted = _of_rows(self._seconds) / _of_rows(max(seconds, 0.001))
        if not self._warm:
            self._warm, wanted = True, GROWTH
        changed = round(records * min(max(wanted, SHRINKAGE), GROWTH))
        before, self.rows = self.rows, min(max(changed, self._least), self._most)
        return self.rows != before


def _of_rows(seconds: float) -> float:
    """The part of a batch's time that its rows take; of a batch that is short itself, half."""
    return max(seconds - PRICE, seconds / 2)
