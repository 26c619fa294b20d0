"""The last hour of a job in slots of ten seconds: enough for a line, in constant memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

SLOT = 10.0
"""Seconds of a slot."""

SLOTS = 360
"""Slots that are kept: those of the last hour."""

SHORTEST = 0.001
"""Seconds that a batch takes at least."""


class Level(NamedTuple):
    """The level of a job at the end of a batch: rows that waited when it began, rows of state."""

    waiting: int
    state_rows: int


@dataclass(slots=True)
class Slot:
    """Ten seconds: rows read and written in them, the time of the slowest batch that ended in them, and the last levels
    that were known."""

    number: int
    rows_in: float = 0.0
    rows_out: float = 0.0
    batch_seconds: float = 0.0
    waiting: int = 0
    state_rows: int = 0


@dataclass(frozen=True, slots=True)
class Series:
    """One hour as columns, oldest first, a value a slot; None where no batch ran. `until` is the end of the last slot,
    in seconds since the epoch. Rows are rows a second."""

    until: float
    slot_seconds: float
    rows_in: tuple[float | None, ...]
    rows_out: tuple[float | None, ...]
    batch_seconds: tuple[float | None, ...]
    waiting: tuple[float | None, ...]
    state_rows: tuple[float | None, ...]


class History:
    """A ring of slots. Times are seconds since the epoch and do not go back by more than a slot."""

    def __init__(self) -> None:
        self._slots: deque[Slot] = deque(maxlen=SLOTS + 1)

    def add(self, since: float, ended: float, seconds: float, rows_in: int, rows_out: int, level: Level) -> None:
        """Add a batch that took `seconds`. Its rows are distributed over the time `since` the previous one, so that
        there are no peaks where batches end."""
        since = min(since, ended - SHORTEST)
        for slot in self._between(since, ended):
            start = slot.number * SLOT
            share = max(0.0, min(ended, start + SLOT) - max(since, start)) / (ended - since)
            slot.rows_in += rows_in * share
            slot.rows_out += rows_out * share
            slot.batch_seconds = max(slot.batch_seconds, seconds)
            slot.waiting, slot.state_rows = level

    def _between(self, since: float, ended: float) -> Iterator[Slot]:
        last = int(ended // SLOT)
        for number in range(max(int(since // SLOT), last - SLOTS), last + 1):
            yield self._slot(number)

    def _slot(self, number: int) -> Slot:
        for slot in reversed(self._slots):
            if slot.number == number:
                return slot
            if slot.number < number:
                break
        self._slots.append(Slot(number))
        return self._slots[-1]

    def series(self, now: float) -> Series:
        """Return the hour up to the last slot that is over."""
        last = int(now // SLOT)
        known = {slot.number: slot for slot in self._slots}
        slots = [known.get(number) for number in range(last - SLOTS, last)]

        def column(value: str, divided_by: float = 1.0) -> tuple[float | None, ...]:
            return tuple(None if slot is None else round(getattr(slot, value) / divided_by, 3) for slot in slots)

        return Series(
            until=last * SLOT,
            slot_seconds=SLOT,
            rows_in=column("rows_in", SLOT),
            rows_out=column("rows_out", SLOT),
            batch_seconds=column("batch_seconds"),
            waiting=column("waiting"),
            state_rows=column("state_rows"),
        )
