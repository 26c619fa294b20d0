"""A running query as Spark reports it: its status, its batches and their tasks."""

from __future__ import annotations

from collections.abc import Hashable

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from service.spark.supervision.reports import Reports

PLANNING = ("Getting offsets from ", "Writing offsets to log")
"""The status of a query while it plans a batch begins with one of these: it asks each source for its end, and writes
the ends down."""


class RunningQuery:
    """The query that Spark knows as `query`, with the `reports` of its batches."""

    def __init__(self, session: SparkSession, query: StreamingQuery, reports: Reports) -> None:
        self._session = session
        self.query = query
        self.reports = reports

    @classmethod
    def of(cls, session: SparkSession, query: StreamingQuery) -> RunningQuery:
        """Return a query that has been started."""
        return cls(session, query, Reports(query))

    def active(self) -> bool:
        """Return whether the query runs."""
        return self.query.isActive

    def in_batch(self) -> bool:
        """Return whether a batch is being computed."""
        return bool(self.query.status["isTriggerActive"])

    def planning(self) -> bool:
        """Return whether a batch may be planned now."""
        return str(self.query.status["message"]).startswith(PLANNING)

    def phase(self) -> Hashable | None:
        """Return the phase of the running batch and the number of its finished tasks, None between batches."""
        status = self.query.status
        if not status["isTriggerActive"]:
            return None
        tracker = self._session.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        tasks = tuple((each.stageId, each.numCompletedTasks) for each in stages if each is not None)
        return status["message"], self.reports.last_batch(), tasks
