"""A query that is held before a stop plans no further batch, whatever is reported of the batches before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from service.spark.query.run_folder import RunFolder
from service.spark.supervision import source_flow
from service.spark.supervision.batch_pace import BatchPace
from service.spark.supervision.batch_sizing import BatchSizing
from service.spark.supervision.runner import JobRunner
from service.spark.supervision.running_query import RunningQuery
from service.spark.supervision.source_flow import SourceFlow


class _Query:
    isActive = True

    def __init__(self, message: str = "Processing new data") -> None:
        self.status = {"message": message, "isTriggerActive": True}

    def stop(self) -> None:
        """It has ended."""


def running(folder: Path, query: _Query) -> JobRunner:
    """A job with one Kafka table, without a JVM."""
    made: Any = object.__new__(JobRunner)
    pace: Any = BatchPace(0)
    pace._sizing = BatchSizing(10_000_000, 1.0)
    session: Any = None
    spark: Any = query
    reports: Any = None
    awaited: Any = SimpleNamespace(waiting={})
    deployment: Any = SimpleNamespace(
        program=SimpleNamespace(sources=[SimpleNamespace(id=0)]), source_addresses={0: None}
    )
    made._folder = RunFolder(folder)
    made._flow = SourceFlow(session, deployment, pace=pace, awaited=awaited, folder=made._folder)
    made._query = RunningQuery(session, spark, reports)
    made._checkpoint = SimpleNamespace(url=str(folder))
    job: JobRunner = made
    return job


def test_the_report_of_a_batch_does_not_let_a_held_query_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    monkeypatch.setattr(source_flow, "limit_reads", lambda session, query, records: limits.extend(records.values()))
    job = running(tmp_path, _Query())
    job.keep_pace(1, 200_000, 0.5)
    assert limits == [800_000], "while it is not held, the next batch is fitted to the last one"
    assert job.hold()
    assert RunFolder(tmp_path).held()
    job.keep_pace(2, 800_000, 30.0)
    assert limits == [800_000, 0]


@pytest.mark.parametrize(
    ("message", "planning"),
    [
        ("Getting offsets from KafkaV2[Subscribe[t]]", True),
        ("Writing offsets to log", True),
        ("Waiting for data to arrive", False),
        ("Processing new data", False),
    ],
)
def test_a_query_that_asks_for_the_ends_of_its_topics_may_still_plan_a_batch(
    tmp_path: Path, message: str, planning: bool
) -> None:
    assert running(tmp_path, _Query(message)).planning() is planning


@pytest.mark.parametrize(("url", "seconds"), [("/c", 0.02), ("file:///c", 0.02), ("s3a://b/c", 0.5), ("gs://b/c", 0.5)])
def test_an_object_store_is_not_asked_all_the_time(tmp_path: Path, url: str, seconds: float) -> None:
    job: Any = running(tmp_path, _Query())
    job._checkpoint.url = url
    assert job.look_every == seconds


def test_a_query_that_is_stopped_leaves_no_folder_behind(tmp_path: Path) -> None:
    folder = RunFolder.made(tmp_path)
    job = running(folder.path, _Query())
    (folder.path / "payloads").mkdir()
    job.stop()
    assert list(tmp_path.iterdir()) == []
