"""The size of a job's next batch, estimated from earlier batches: their durations, and the sizes of records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from service.deployment.deployment import Deployment
from service.deployment.replanning import CUT
from service.runtime.task_metrics import parsed
from service.spark.supervision.batch_sizing import BatchSizing, MemoryBound
from service.spark.supervision.checkpoint import Checkpoint

SENT_TO_TASK = 64 << 20
"""The bytes of rows that a task of a level gets in a batch, about: wide rows are as fast as without this bound, and
take a sixth less memory (`docs/design/measurements.md`)."""

REPORTS_KEPT = 50
"""The number of batches whose reports Spark keeps."""


class BatchPace:
    """The batch sizes of one job. `record` is the bytes of a batch per record of its largest table: at first the given
    number, then the measured one."""

    def __init__(self, record: float) -> None:
        self.record = record
        self._sizing: BatchSizing | None = None
        self._bytes: dict[int, tuple[float, float]] = {}
        self._records: dict[int, Mapping[str, float]] = {}

    def begin(self, deployment: Deployment, checkpoint: Checkpoint) -> None:
        """Begin a start of the query: its first batch is short, or fits after one that did not."""
        batch, cut = deployment.settings.batch, checkpoint.read(CUT)
        bound = MemoryBound(deployment.batch_bytes, self.record, sent=SENT_TO_TASK * deployment.partitions)
        if cut is not None:
            bound = bound._replace(failed_batch=cut["batch"], rows=cut["rows"])
        self._sizing = BatchSizing(batch.rows, batch.duration / 1000, bound, checkpoint.last_done() + 1)

    @property
    def rows(self) -> int:
        """The most records of a table in the next batch, once the query has begun."""
        assert self._sizing is not None
        return self._sizing.rows

    def note(self, report: Mapping[str, Any]) -> None:
        """Note the counts of a batch: the bytes that it read, and those sent to the level that received most."""
        counts = [(*parsed(name), n) for name, n in report["metrics"]["counts"].items()]
        read = sum(n for name, _, n in counts if name == "input_bytes_total")
        sent = max((n for name, _, n in counts if name == "exchanged_bytes_total"), default=0.0)
        records: dict[str, float] = defaultdict(float)
        for name, labels, n in counts:
            if name == "input_records_total":
                records[labels["source"]] += n
        newest = sorted(self._records)[1 - REPORTS_KEPT :]
        self._records = {batch: self._records[batch] for batch in newest} | {report["batch"]: records}
        # Of a batch that Spark never reports, having been done before, it is forgotten with the next.
        self._bytes = {report["batch"]: (read, sent)}

    def records_of(self, batch: int) -> Mapping[str, float]:
        """Return the number of records that a batch has read, by table; empty for a batch without a report."""
        return self._records.get(batch, {})

    def fit(self, batch: int, records: int, seconds: float) -> bool:
        """Fit the next batches to one that took `records` of the largest table, and `seconds`. Return whether the
        number of records has changed."""
        size, sent = self._bytes.pop(batch, (0.0, 0.0))
        if self._sizing is None:
            return False
        if records and size:
            self.record = size / records
            self._sizing.measured(self.record, sent / records)
        return self._sizing.batch(records, seconds, batch)
