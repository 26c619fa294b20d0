"""One batch as the page keeps it: what Spark reports of it, and what its tasks counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from service.observability.progress import Progress, Read
from service.runtime.task_metrics import parsed

Place = tuple[str, str, int]
"""A table, a topic of it, and a partition of that."""

STATE_COMMIT = "state_commit"
"""The phase of tasks that Spark reports and our own metrics do not."""


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One batch. `tasks` is the time that tasks spent by phase, added over tasks that ran side by side, in seconds;
    `by_table` are the records of each table, `written` those of all sinks."""

    progress: Progress
    tasks: Mapping[str, float]
    by_table: Mapping[str, int]
    written: int

    @property
    def rows(self) -> int:
        """Records that were read."""
        return sum(self.progress.rows)

    @property
    def ended(self) -> float:
        """When it ended, in seconds since the epoch."""
        return self.progress.ended

    @property
    def began(self) -> float:
        """When it began, in seconds since the epoch."""
        return self.progress.ended - self.progress.seconds

    @property
    def waiting(self) -> int:
        """Offsets of all tables that were to be read when it began."""
        return sum(max(0, read.end - read.first) for read in self.progress.reads)

    @property
    def left(self) -> int:
        """Those of them that it did not read."""
        return sum(max(0, read.end - read.last) for read in self.progress.reads)


def batch_of(progress: Progress, counts: Mapping[str, float]) -> BatchRecord:
    """Return the batch of a report and of what its tasks counted, by samples such as
    'task_seconds_total{phase="decode"}'."""
    known = [(*parsed(sample), value) for sample, value in counts.items()]
    by_table: dict[str, int] = {}
    for name, labels, value in known:
        if name == "input_records_total":
            by_table[labels["source"]] = by_table.get(labels["source"], 0) + int(value)
    tasks = {labels["phase"]: value for name, labels, value in known if name == "task_seconds_total"}
    if progress.state_commit:
        tasks[STATE_COMMIT] = progress.state_commit
    written = sum(value for name, _, value in known if name == "output_records_total")
    return BatchRecord(progress, tasks, by_table, int(written))


def place_of(read: Read) -> Place:
    """Return which partition was read."""
    return read.source, read.topic, read.partition


def passed(read: Read) -> int:
    """Return offsets that were passed, those of transaction markers included."""
    return max(0, read.last - read.first)
