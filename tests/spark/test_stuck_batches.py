"""A batch that Spark reports as unchanged for too long makes the service not alive, one that advances does not."""

from __future__ import annotations

import io
from collections.abc import Iterator
from http.client import HTTPConnection
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from service.observability.health import Health
from service.observability.http_server import HttpServer
from service.observability.metrics import Metrics
from service.observability.observer import Observer
from service.spark.supervision.jobs import Jobs
from service.spark.supervision.reports import Reports
from service.spark.supervision.runner import JobRunner
from service.spark.supervision.running_query import RunningQuery


class _Spark:
    """What Spark says of a query: its status, its last batch, and the finished tasks of its active stages."""

    def __init__(self) -> None:
        self.status = {"isTriggerActive": True, "message": "Processing new data"}
        self.batch: int | None = 6
        self.tasks: dict[int, int | None] = {3: 0}
        self.sparkContext = SimpleNamespace(statusTracker=lambda: self)
        self._jsq = self

    def exception(self) -> None:
        """It has not failed."""

    def lastProgress(self) -> Any:
        return None if self.batch is None else SimpleNamespace(batchId=lambda: self.batch)

    def getActiveStageIds(self) -> list[int]:
        return list(self.tasks)

    def getStageInfo(self, stage: int) -> Any:
        done = self.tasks[stage]
        return None if done is None else SimpleNamespace(stageId=stage, numCompletedTasks=done)

    def running(self) -> RunningQuery:
        this: Any = self
        return RunningQuery(this, this, Reports(this))


def test_between_two_batches_there_is_no_phase():
    spark = _Spark()
    spark.status["isTriggerActive"] = False
    assert spark.running().phase() is None


def test_a_phase_is_the_same_while_nothing_has_changed():
    spark = _Spark()
    assert spark.running().phase() == spark.running().phase() == ("Processing new data", 6, ((3, 0),))


@pytest.mark.parametrize(
    "change",
    [
        {"tasks": {3: 1}},
        {"tasks": {3: 0, 4: 0}},
        {"tasks": {4: 0}},
        {"tasks": {}},
        {"batch": 7},
        {"batch": None},
        {"status": {"isTriggerActive": True, "message": "Writing offsets to log"}},
    ],
    ids=str,
)
def test_a_task_a_stage_a_batch_and_a_step_that_ends_each_change_the_phase(change: dict[str, Any]):
    spark = _Spark()
    before = spark.running().phase()
    vars(spark).update(change)
    assert spark.running().phase() != before


def test_a_stage_that_ends_while_it_is_asked_for_is_passed_over():
    spark = _Spark()
    spark.tasks = {3: None, 4: 2}
    assert spark.running().phase() == ("Processing new data", 6, ((4, 2),))


class _Service:
    """One job `q` without a JVM, of which a batch is done; it is not alive after 600 seconds without a change."""

    def __init__(self) -> None:
        self.now = 0.0
        self.spark = _Spark()
        self.spark.batch = None
        health = Health(600, clock=lambda: self.now)
        observer = Observer(health, Metrics(), "json", io.StringIO())
        observer.starting(["q"])
        observer.started("q")
        health.completed("q")
        runner: Any = object.__new__(JobRunner)
        runner._query, runner._flow = self.spark.running(), None
        runner._reports = runner._query.reports
        runner._alone, runner._deployment = False, SimpleNamespace(ends=None)
        self._jobs: Any = object.__new__(Jobs)
        self._jobs._observer = observer
        self._job = SimpleNamespace(name="q", runner=runner, done=False, start_at=None, last_batch=None, waiting={})
        self.http = HttpServer("127.0.0.1", 0, health, CollectorRegistry())

    def livez(self, *, after: float) -> tuple[int, str]:
        """The answer of /livez when the job is looked at some seconds later."""
        self.now += after
        self._job.look_at = 0.0
        self._jobs._attend(self._job)
        connection = HTTPConnection("127.0.0.1", self.http.port, timeout=10)
        try:
            connection.request("GET", "/livez")
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


@pytest.fixture
def service() -> Iterator[_Service]:
    made = _Service()
    yield made
    made.http.close()


def test_livez_fails_when_a_batch_has_not_changed_for_too_long(service: _Service):
    assert service.livez(after=0)[0] == 200
    assert service.livez(after=599)[0] == 200
    status, text = service.livez(after=2)
    assert status == 503
    assert "the batch has not moved for 601 s" in text
    service.spark.tasks = {3: 1}
    assert service.livez(after=0)[0] == 200, "it moves again"


def test_livez_answers_as_long_as_tasks_of_a_batch_end(service: _Service):
    for done in range(10):
        service.spark.tasks = {3: done}
        assert service.livez(after=500)[0] == 200


def test_livez_answers_however_long_no_batch_runs(service: _Service):
    assert service.livez(after=0)[0] == 200
    service.spark.status = {"isTriggerActive": False, "message": "Waiting for data to arrive"}
    assert [service.livez(after=3600)[0] for _ in range(3)] == [200] * 3
