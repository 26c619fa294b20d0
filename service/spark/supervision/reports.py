"""Spark's reports of finished batches, each read once.

The JVM writes a report as JSON, with all figures of the state store, and it is parsed here: some milliseconds.
PySpark's `recentProgress` does so at every call for all of the last fifty batches.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from service.spark.internals.jvm import java_query

Report = Mapping[str, Any]


class Reports:
    """The reports of one query, by the names of Spark's `StreamingQueryProgress` as JSON."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = java_query(query)
        self._key: tuple[int, str] | None = None
        self._last: Report = {}

    def last_batch(self) -> int:
        """Return the last finished batch, -1 if there is none."""
        progress = self._query.lastProgress()
        return -1 if progress is None else int(progress.batchId())

    def last(self) -> Report | None:
        """Return the newest report, None before the first."""
        progress = self._query.lastProgress()
        if progress is None:
            return None
        key = (int(progress.batchId()), str(progress.timestamp()))
        if key != self._key:
            self._key, self._last = key, _read(progress)
        return self._last

    def since(self, batch: int | None) -> list[Report]:
        """Return the reports of the batches after `batch` that Spark still has, oldest first."""
        newest = self.last()
        if newest is None or newest["batchId"] == batch:
            return []
        if batch is not None and newest["batchId"] == batch + 1:
            return [newest]
        found: list[Report] = []
        for progress in reversed(list(self._query.recentProgress())):
            if batch is not None and progress.batchId() <= batch:
                break
            found.append(_read(progress))
        return found[::-1]


def _read(progress: Any) -> Report:
    report: Report = json.loads(progress.json())
    return report


def end_offsets(report: Report) -> list[Any]:
    """Return the end of a report's batch in each source, in the order of the query; the last one is the tick."""
    offsets = (source["endOffset"] for source in report["sources"])
    return [json.loads(each) if isinstance(each, str) else each for each in offsets]
