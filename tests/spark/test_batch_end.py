"""The driver notes the state of a batch when its tasks are done, and receives the counts of every batch."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame

from service.checkpoint.address import CheckpointAddress
from service.checkpoint.batch_log import planned_at
from service.checkpoint.batch_plan import BatchPlan
from service.checkpoint.files import FolderFiles, StateMissing, StoredAt
from service.checkpoint.version import BatchAlreadyDone, ShardState, Version
from service.plan.lowering.lower import compile_job
from service.runtime.task_metrics import TaskMetrics
from service.spark.query.attempts import is_first_attempt
from service.spark.query.batch_end import PROJECTIONS, BatchEnd, records_between
from service.spark.query.job_spec import JobSpec, WorkerJob
from service.spark.query.task_batch import NOW, PLAN, TaskBatch
from service.spark.query.task_output import TaskReport
from service.sql.pipeline import read
from tests.spark.fake_s3 import fake_s3
from tests.spark.test_job import job_spec

COUNTS = """
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1');
CREATE TABLE counts (n BIGINT, c BIGINT) WITH ('connector' = 'print');
INSERT INTO counts SELECT n, COUNT(*) FROM numbers GROUP BY n;
"""
PLANNED = 1_700_000_000_000
BATCH = 7


class Batch:
    """What Spark hands over: the reports, and the properties that were set for the tasks before they were asked for."""

    def __init__(self, *reports: TaskReport | Exception) -> None:
        self.properties: dict[str, str] = {}
        self._reports = reports
        self.sparkSession = SimpleNamespace(
            sparkContext=SimpleNamespace(setLocalProperty=lambda key, value: self.properties.__setitem__(key, value))
        )

    def collected(self) -> list[bytes]:
        assert NOW in self.properties, "the tasks run now"
        failed = [each for each in self._reports if isinstance(each, Exception)]
        if failed:
            raise failed[0]
        reports = [each for each in self._reports if isinstance(each, TaskReport)]
        return [each.to_batch()["report"][0].as_py() for each in reports]

    def given_to(self, end: BatchEnd) -> Batch:
        end(cast(DataFrame, self), BATCH)
        return self


def batch_end(spec: JobSpec, receive: Callable[[Mapping[str, Any]], None] = lambda counts: None) -> BatchEnd:
    return BatchEnd(spec, receive, lambda batch, query: cast(Batch, batch).collected())


@pytest.fixture
def spec(tmp_path: Path) -> JobSpec:
    """A job of one level with two shards, whose batch is planned."""
    log = tmp_path / "checkpoint" / "offsets" / str(BATCH)
    log.parent.mkdir(parents=True)
    log.write_text(f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":{PLANNED},"conf":{{}}}}\n{{}}')
    program = compile_job(read(COUNTS).jobs[0])
    state = CheckpointAddress(str(tmp_path / "checkpoint"))
    return replace(job_spec(program), state=state, scratch=str(tmp_path / "scratch"), run="r1")


def report(shard: int, **more: Any) -> TaskReport:
    """That of a shard."""
    metrics = TaskMetrics()
    metrics.count("rows", 1)
    state = ShardState(1, shard, {} if shard == 0 else None, StoredAt(f"tailrace/state/{shard}", 0, 1)).to_json()
    return TaskReport(
        **{"metrics": metrics.to_json(), "lines": (f"line {shard}",), "samples": (), "state": (state,)} | more
    )


@pytest.mark.parametrize(
    ("tick", "seen"),
    [
        (PLANNED - 3_600_000, PLANNED),
        (PLANNED - 3_600_001, PLANNED - 3_600_001),
        (PLANNED - 365 * 86_400_000, PLANNED - 365 * 86_400_000),
        (PLANNED + 86_400_000, PLANNED),  # the clock was set back
        (0, PLANNED),  # no tick has come yet
    ],
)
def test_the_time_of_a_batch_is_that_of_its_tick_if_the_clock_has_jumped_ahead_since(
    spec: JobSpec, tmp_path: Path, tick: int, seen: int
):
    log = tmp_path / "checkpoint" / "offsets" / str(BATCH)
    log.write_text(f"{log.read_text()}\n{json.dumps({'now': tick, 'channels': {}, 'ended': []})}")
    batch = Batch(report(0), report(1)).given_to(batch_end(spec))
    assert batch.properties[NOW] == str(seen)
    assert planned_at(spec.state.open(), BATCH) == seen


def test_the_state_is_noted_and_the_driver_receives_the_counts(spec: JobSpec):
    received: list[Mapping[str, Any]] = []
    Batch(report(0), report(1)).given_to(batch_end(spec, received.append))
    version = Version.before(FolderFiles(spec.state.url), BATCH + 1)
    assert [place.file for place in version.levels[1].manifests] == ["tailrace/state/0", "tailrace/state/1"]
    [noted] = received
    assert (noted["batch"], noted["metrics"]["counts"], noted["lines"]) == (BATCH, {"rows": 2}, ["line 0", "line 1"])


def test_the_tasks_receive_when_and_how_the_batch_was_planned(spec: JobSpec):
    properties = Batch(report(0), report(1)).given_to(batch_end(spec)).properties
    assert properties[NOW] == str(PLANNED)
    assert properties[PROJECTIONS] == "FALLBACK", "nothing is known of the size of the batch"
    plan = BatchPlan.from_bytes(b64decode(properties[PLAN]))
    assert plan is not None
    assert (plan.number, plan.times["batchTimestampMs"], plan.shards) == (BATCH, PLANNED, 2)


@pytest.mark.parametrize(
    ("before", "ends", "records"),
    [
        ([], ['{"t":{"0":5}}'], None),
        (["-"], ['{"t":{"0":5}}'], None),
        (['{"t":{"0":5}}', "7"], ['{"t":{"0":6}}', "8"], None),
        (['{"t":{"0":5}}'], ['{"t":{"0":6,"1":3}}'], None),
        (['{"t":{"0":5}}'], ['{"t":{"0":6},"u":{"0":1}}'], None),
        (['{"t":{"0":5}}'], ['{"t":{"0":5}}'], 0),
        (['{"t":{"0":5,"1":2}}', '{"u":{"0":0}}'], ['{"t":{"0":6,"1":2}}', '{"u":{"0":9}}'], 10),
    ],
)
def test_the_records_of_a_batch_are_known_from_its_offsets(before: list[str], ends: list[str], records: int | None):
    assert records_between(before, ends) == records


def test_a_batch_is_not_noted_where_a_shard_has_reported_nothing(spec: JobSpec):
    end = batch_end(spec)
    with pytest.raises(ValueError, match="level 1 has reports of 1 of its 2 shards"):
        Batch(report(0)).given_to(end)
    assert isinstance(end.failure, ValueError)
    with pytest.raises(StateMissing):
        Version.before(FolderFiles(spec.state.url), BATCH + 1)


def test_a_driver_that_wakes_up_after_another_has_done_its_batch_leaves_the_state_alone(spec: JobSpec, tmp_path: Path):
    with fake_s3() as (address, _):
        settings = {
            "fs.s3a.endpoint": address,
            "fs.s3a.endpoint.region": "nowhere-1",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.access.key": "key",
            "fs.s3a.secret.key": "secret",
        }
        store = CheckpointAddress("s3a://bucket/job", settings, str(tmp_path / "copies"), 1 << 20)
        files, local = store.open(), FolderFiles(spec.state.url)
        files.put(f"offsets/{BATCH}", [local.get(f"offsets/{BATCH}") or b""])
        end = batch_end(replace(spec, state=store))
        Batch(report(0), report(1)).given_to(end)
        settled = Version.before(files, BATCH + 1)
        files.put(f"commits/{BATCH}", [b"v1\n{}"])
        moved = ShardState(1, 0, {}, StoredAt("tailrace/state/late", 0, 1)).to_json()
        with pytest.raises(BatchAlreadyDone, match=f"has completed batch {BATCH} already"):
            Batch(report(0, state=(moved,)), report(1)).given_to(end)
        assert Version.before(files, BATCH + 1) == settled


def test_what_the_tasks_failed_of_is_kept_as_it_is_and_nothing_is_noted(spec: JobSpec):
    end, failed = batch_end(spec), MemoryError("of a task")
    with pytest.raises(MemoryError):
        Batch(report(0), failed).given_to(end)
    assert end.failure is failed
    with pytest.raises(StateMissing):
        Version.before(FolderFiles(spec.state.url), BATCH + 1)


def test_a_driver_that_cannot_handle_what_it_receives_does_not_fail_the_batch(
    spec: JobSpec, capsys: pytest.CaptureFixture[str]
):
    def receive(counts: Mapping[str, Any]) -> None:
        raise BrokenPipeError("nobody reads")

    end = batch_end(spec, receive)
    Batch(report(0), report(1)).given_to(end)
    assert end.failure is None
    assert "nobody reads" in capsys.readouterr().err


def test_an_attempt_is_known_as_the_first_once_and_never_in_a_batch_that_may_have_begun_before(spec: JobSpec):
    job = WorkerJob(replace(spec, replayed=BATCH - 1))
    at = TaskBatch(BATCH, PLANNED, identifier=30, task=1, attempt=0)
    assert [is_first_attempt(job, at), is_first_attempt(job, at)] == [True, False]
    assert is_first_attempt(job, at._replace(task=2))
    assert not is_first_attempt(job, at._replace(number=BATCH - 1))
    assert not is_first_attempt(WorkerJob(replace(spec, one_host=False)), at._replace(task=3))
    Batch(report(0), report(1)).given_to(batch_end(spec))
    assert not list((Path(spec.scratch) / spec.run / "begun").iterdir()), "nothing is left of a batch that is done"


def test_a_report_is_one_row():
    one = report(1, samples=({"late": True},))
    written = one.to_batch()
    assert written.num_rows == 1
    assert TaskReport.from_row(written["report"][0].as_py()) == one
    assert json.loads(one.metrics)["counts"] == {"rows": 1}
