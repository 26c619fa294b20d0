"""A start of a query that fails leaves no folder behind, however often it is repeated."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from service.kafka.errors import KafkaFailure
from service.spark.supervision import runner
from service.spark.supervision.runner import JobRunner

STAND_INS = (
    *("BatchEnd", "BatchPace", "BatchTerms", "Checkpoint", "QueryBuilder", "RunningQuery", "SourceEnds", "SourceFlow"),
    *("Takeover", "agree_on_bounds", "await_tables", "job_spec", "source_options", "starting_offsets"),
    "topics_of_ticks",
)
"""What a start asks of Kafka, of the checkpoint and of Spark, beside its folder."""

NO_KAFKA = KafkaFailure("Kafka does not answer")


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobRunner:
    """A job whose folders are in that of the test, without Kafka and without a JVM."""
    for name in STAND_INS:
        monkeypatch.setattr(runner, name, MagicMock())
    monkeypatch.setattr(JobRunner, "_with_topics", lambda self: self._deployment)
    monkeypatch.setattr(JobRunner, "_files", lambda self: None)
    deployment: Any = MagicMock(ends=None)
    deployment.program.levels = 0
    session: Any = None
    return JobRunner(session, deployment, tmp_path, lambda report: None)


def fails(step: str, error: Exception | None) -> None:
    """Let a step of the starts fail from now on."""
    attrgetter(step)(runner).side_effect = error


def folders(scratch: Path) -> list[str]:
    return [path.name for path in scratch.iterdir()]


@pytest.mark.parametrize(
    "step", ["starting_offsets", "await_tables", "Takeover.return_value.take", "QueryBuilder.return_value.start"]
)
def test_starts_that_fail_leave_no_folder_behind(tmp_path: Path, job: JobRunner, step: str):
    fails(step, NO_KAFKA)
    for _ in range(3):
        with pytest.raises(KafkaFailure):
            job.start()
        job.stop()
        assert folders(tmp_path) == []
    fails(step, None)
    job.start()
    assert len(folders(tmp_path)) == 1
    job.stop()
    assert folders(tmp_path) == []


def test_a_start_that_fails_behind_a_repeated_batch_leaves_no_folder_behind(tmp_path: Path, job: JobRunner):
    query = attrgetter("RunningQuery.of.return_value")(runner)
    query.query.exception.return_value, query.active.return_value = None, False
    job.start()
    assert not job.finished(), "the report of the batch is read first"
    fails("starting_offsets", NO_KAFKA)
    with pytest.raises(KafkaFailure):
        job.finished()
    assert len(folders(tmp_path)) == 1, "the next batch would use the writers of the one before"
    job.stop()
    assert folders(tmp_path) == []


def test_a_stop_before_the_first_start_removes_nothing_of_other_jobs(tmp_path: Path, job: JobRunner):
    (tmp_path / "r1").mkdir()
    job.stop()
    assert folders(tmp_path) == ["r1"]
