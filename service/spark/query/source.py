"""Level 0 on Spark: a `mapInArrow` over the Kafka source, in a few tasks that read several Kafka partitions each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pyarrow as pa

from service.runtime.envelope import Envelope, blocks_of
from service.runtime.ingest import Ingest
from service.spark.query.attempts import limit_attempts
from service.spark.query.job_spec import WorkerJob, worker_sql
from service.spark.query.payload_files import outgoing
from service.spark.query.record_blocks import records_of
from service.spark.query.resting import REST
from service.spark.query.task_batch import TaskBatch
from service.spark.query.task_output import write_output
from service.spark.query.value_files import ValueFiles

_FILES = ValueFiles()
"""The value files of this worker, which runs one task at a time."""


class IngestTask:
    """The function that Spark calls in each task; picklable by name."""

    def __init__(self, blob: bytes, source: int) -> None:
        self._blob = blob
        self._source = source

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read records and yield envelopes; in a plan without levels, whose output is written here, yield the report of
        the task."""
        job, at = WorkerJob.load(self._blob), TaskBatch.current()
        with REST.task(), limit_attempts(job.folder):
            envelopes = self._read(job, batches, at)
            if job.spec.program.levels:
                yield from _FILES.handing_on(blocks_of(outgoing(job, envelopes, at)))
                return
            report = write_output(job, envelopes, at)
            if report is not None:
                yield report.to_batch()

    def _read(self, job: WorkerJob, batches: Iterator[pa.RecordBatch], at: TaskBatch) -> Iterator[Envelope]:
        source, decoder = job.topology.sources[self._source], job.spec.decoders[self._source]
        task = Ingest(
            job.topology,
            source,
            decoder,
            job.layout,
            worker_sql(job.spec.scratch),
            job.spec.limits,
            job.spec.block_rows,
        )
        if source.table.connector.kind == "datagen":
            return task.run((_made(batch, source.table.name) for batch in batches if batch.num_rows), at.now)
        _FILES.begin()
        needs = [name for name in decoder.needs() if name != "value"]
        blocks = chain.from_iterable(records_of(batch, _FILES, needs) for batch in batches)
        return task.run(_FILES.computing(blocks), at.now)


def _made(numbers: pa.RecordBatch, table: str) -> pa.Table:
    """The records of a 'datagen' table, of one partition, from their numbers and times."""
    count = numbers.num_rows
    return pa.table(
        {
            "timestamp": numbers["timestamp"],
            "partition": pa.repeat(pa.scalar(0, pa.int32()), count),
            "offset": numbers["number"],
            "topic": pa.repeat(table, count),
        }
    )
