"""The number of records that each source yields in a batch, and its changes while the query runs.

A source yields as many as the pace of the job allows (`batch_pace.py`), and none while it waits for a table
(`service/deployment/awaited_tables.py`) or while the job is held, as it is before a stop.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from service.deployment.awaited_tables import AwaitedTables
from service.deployment.deployment import Deployment
from service.spark.query.read_limits import limit_reads
from service.spark.query.run_folder import RunFolder
from service.spark.supervision.batch_pace import BatchPace
from service.spark.supervision.reports import Report, end_offsets


class SourceFlow:
    """The flow of the sources of one start of a query, whose run has this `folder`. `deployment` has the program that
    runs, `awaited` the tables that sources wait for."""

    def __init__(
        self,
        session: SparkSession,
        deployment: Deployment,
        *,
        pace: BatchPace,
        awaited: AwaitedTables,
        folder: RunFolder,
    ) -> None:
        self._session = session
        self._deployment = deployment
        self._pace = pace
        self._awaited = awaited
        self._folder = folder
        self._held = False

    def limits(self) -> Mapping[int, int]:
        """Return the most records of each source in the next batch; 0 reads none."""
        rows, waiting = 0 if self._held else self._pace.rows, self._awaited.waiting
        return {source: 0 if source in waiting else rows for source in self._deployment.source_addresses}

    def waiting(self) -> Mapping[str, tuple[str, ...]]:
        """Return the tables that are not read yet, each with the tables that it waits for."""
        return self._awaited.names

    def fit(self, query: StreamingQuery, batch: int, records: int, seconds: float) -> None:
        """Fit the next batches to one that took `records` of the largest table, and `seconds`."""
        if self._pace.fit(batch, records, seconds) and not self._held:
            limit_reads(self._session, query, self.limits())

    def release(self, query: StreamingQuery, progress: Report) -> None:
        """Release the sources whose awaited tables the last batch has read to their fixed offsets."""
        before = self._awaited.waiting
        if not before:
            return
        for source, offsets in zip(self._deployment.program.sources, end_offsets(progress), strict=False):
            if offsets and source.id in self._deployment.source_addresses:
                self._awaited.read(source.id, offsets)
        if self._awaited.waiting != before:
            self._folder.write_waiting(self._awaited.waiting)
            limit_reads(self._session, query, self.limits())

    def hold(self, query: StreamingQuery) -> bool:
        """Let no source yield records, and send no tick, until the next start. Return whether every source can be
        held."""
        if any(s.id not in self._deployment.source_addresses for s in self._deployment.program.sources):
            return False
        self._held = True
        self._folder.hold()
        limit_reads(self._session, query, self.limits())
        return True
