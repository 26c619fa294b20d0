"""The report of a finished attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

Outcome = Literal["committed", "settled", "replayed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteReport:
    """`outcome`: "committed" by this attempt; "settled", committed by this attempt, which only the marker could show;
    "replayed", committed by an earlier attempt, so that this one wrote nothing. `rows`, `bytes` (keys and values) and
    `topics` (rows by topic) count what this attempt wrote; `milliseconds` is the time the commit took."""

    outcome: Outcome
    rows: int = 0
    bytes: int = 0
    topics: Mapping[str, int] = field(default_factory=dict)
    milliseconds: float = 0.0

    def plus(self, topic: str, rows: int, size: int) -> WriteReport:
        """Return the report with this many more rows of a topic."""
        topics = {**self.topics, topic: self.topics.get(topic, 0) + rows}
        return replace(self, rows=self.rows + rows, bytes=self.bytes + size, topics=topics)
