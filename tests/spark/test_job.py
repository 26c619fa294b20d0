"""A worker unpickles a job once, also where several jobs take turns in it."""

from __future__ import annotations

from service.checkpoint.address import CheckpointAddress
from service.plan.lowering.lower import compile_job
from service.plan.program import Program
from service.runtime.layout import Layout
from service.spark.query.job_spec import JobSpec, WorkerJob, packed
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
