"""A worker unpickles a job once, also where several jobs take turns in it, and computes in its share of the memory."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from service.checkpoint.address import CheckpointAddress
from service.plan.lowering.lower import compile_job
from service.plan.program import Program
from service.runtime.layout import Layout
from service.spark.query import job_spec as specs
from service.spark.query.job_spec import JobSpec, WorkerJob, packed, worker_sql
from service.sql.pipeline import read

PIPELINE = """
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1');
CREATE TABLE low (n BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE high (n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO low SELECT n FROM numbers WHERE n < 5;
INSERT INTO high SELECT n FROM numbers WHERE n >= 5;
"""


def test_jobs_that_take_turns_are_each_loaded_once() -> None:
    blobs = [packed(job_spec(compile_job(read(PIPELINE).jobs[number]))) for number in range(2)]
    first = [WorkerJob.load(blob) for blob in blobs]
    again = [WorkerJob.load(bytes(bytearray(blob))) for blob in blobs * 2]
    assert [job.spec.program.name for job in first] == ["low", "high"]
    assert all(job is kept for job, kept in zip(again, first * 2, strict=True))


def test_duckdb_has_a_share_of_the_memory_in_each_worker_and_spills_into_the_scratch_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(specs, "_SQL", [])
    monkeypatch.setattr(specs, "gc", SimpleNamespace(freeze=lambda: None))
    monkeypatch.setattr(specs, "memory", lambda: 8 << 30)
    monkeypatch.setattr(specs, "cores", lambda: 4)
    sql = worker_sql(str(tmp_path / "scratch"))
    assert worker_sql("another") is sql
    setting = "SELECT current_setting('{}') AS v"
    number, unit = str(sql(setting.format("memory_limit"), {})["v"][0]).split()
    assert float(number) == pytest.approx(8 * 0.6 / 4, abs=0.1)
    assert unit == "GiB"
    assert sql(setting.format("temp_directory"), {})["v"].to_pylist() == [
        str(tmp_path / "scratch" / f"duckdb-{os.getpid()}")
    ]
    assert (tmp_path / "scratch").stat().st_mode & 0o777 == 0o700


def job_spec(program: Program) -> JobSpec:
    """A job that reads and writes nothing."""
    return JobSpec(
        program=program,
        decoders={},
        encoders={},
        layout=Layout(2),
        readers=2,
        block_rows=1000,
        state=CheckpointAddress("/checkpoint"),
        limits={},
        scratch="",
        run="",
        writers=(),
        writer_of={},
        side_writer=None,
        side_bytes=1_000_000,
        dead_letter_topic="",
        late_topic="",
        samples=0,
        one_host=True,
    )
