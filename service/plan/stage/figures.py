"""What a task counted in one batch; it travels in band with the rows, keyed by the batch that commits it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter


@dataclass(slots=True)
class Figures:
    """Counts of one task, by metric name with labels but without prefix: 'late_records_total{operator="agg"}'.

    `counts` are added over tasks, `levels` (gauges of a bucket) are added over buckets, `lows` take the minimum.
    """

    counts: dict[str, float] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    lows: dict[str, float] = field(default_factory=dict)

    def count(self, name: str, by: float = 1) -> None:
        """Add to a counter; a zero leaves no trace."""
        if by:
            self.counts[name] = self.counts.get(name, 0) + by

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the seconds spent inside to the phase of that name. Never part of an answer."""
        began = perf_counter()
        try:
            yield
        finally:
            self.count(f'phase_seconds{{phase="{phase}"}}', perf_counter() - began)

    def to_json(self) -> bytes:
        """The figures as the payload of an envelope."""
        return json.dumps([self.counts, self.levels, self.lows]).encode()

    def absorb(self, payload: bytes | Figures) -> None:
        """Add what another task counted."""
        counts, levels, lows = (
            (payload.counts, payload.levels, payload.lows) if isinstance(payload, Figures) else json.loads(payload)
        )
        for name, value in counts.items():
            self.count(name, value)
        for name, value in levels.items():
            self.levels[name] = self.levels.get(name, 0) + value
        for name, value in lows.items():
            self.lows[name] = min(value, self.lows.get(name, value))
