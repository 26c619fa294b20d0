"""Spark's reports are read once each, and none is missed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from service.spark.supervision.reports import Reports


@dataclass
class _Query:
    """What a query in the JVM answers, and the batches whose reports were made into JSON."""

    batches: list[tuple[int, str]] = field(default_factory=list)
    read: list[int] = field(default_factory=list)

    def reports(self) -> Reports:
        return Reports(cast(StreamingQuery, SimpleNamespace(_jsq=self)))

    def lastProgress(self) -> Any:
        return self._progress(*self.batches[-1]) if self.batches else None

    def recentProgress(self) -> list[Any]:
        return [self._progress(*each) for each in self.batches]

    def _progress(self, batch: int, timestamp: str) -> Any:
        def as_json() -> str:
            self.read.append(batch)
            return json.dumps({"batchId": batch, "timestamp": timestamp})

        return SimpleNamespace(batchId=lambda: batch, timestamp=lambda: timestamp, json=as_json)


def test_before_the_first_batch_there_is_nothing():
    reports = _Query().reports()
    assert (reports.last_batch(), reports.last(), reports.since(None)) == (-1, None, [])


@pytest.mark.parametrize(
    ("after", "found"),
    [(None, [3, 4, 5]), (2, [3, 4, 5]), (3, [4, 5]), (4, [5]), (5, []), (9, [])],
)
def test_the_reports_after_a_batch_come_oldest_first(after: int | None, found: list[int]):
    query = _Query([(3, "a"), (4, "b"), (5, "c")])
    assert [report["batchId"] for report in query.reports().since(after)] == found


def test_looking_again_reads_nothing_again():
    query = _Query([(3, "a"), (4, "b")])
    reports = query.reports()
    for _ in range(3):
        assert reports.last_batch() == 4
        assert reports.last() == {"batchId": 4, "timestamp": "b"}
        assert reports.since(4) == []
    query.batches.append((5, "c"))
    assert [report["batchId"] for report in reports.since(4)] == [5]
    assert query.read == [4, 5]


def test_a_new_report_of_the_same_batch_is_read():
    query = _Query([(4, "b")])
    reports = query.reports()
    reports.last()
    query.batches.append((4, "c"))
    assert reports.last() == {"batchId": 4, "timestamp": "c"}
