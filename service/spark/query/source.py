"""Level 0 on Spark: a `mapInArrow` over the Kafka source, in a few tasks that read several Kafka partitions each.

The rows that reach Python are as narrow as can be, since Spark's hand-over costs by the column: the value, and one
BIGINT that holds partition and offset. Key, timestamp and headers come along only where a column needs them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from service.runtime.envelope import Envelope, blocks_of
from service.runtime.ingest import Ingest
from service.spark.query.attempts import limit_attempts
from service.spark.query.job_spec import WorkerJob, worker_sql
from service.spark.query.payload_files import outgoing
from service.spark.query.task_batch import TaskBatch
from service.spark.query.task_output import write_output

POSITION = "position"
"""The column that holds the place of a record: its partition and its offset in one number."""

OFFSET_BITS = 44
"""Bits of a position that hold the offset: 17 * 10^12 records a partition; the bits above hold the partition. As in
`java/tailrace/kafka/KafkaReader.java`."""


class IngestTask:
    """The function that Spark calls in each task; picklable by name."""

    def __init__(self, blob: bytes, source: int) -> None:
        self._blob = blob
        self._source = source

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Records in, envelopes out; of a plan without levels, which is done here, the report of the task."""
        job, at = WorkerJob.load(self._blob), TaskBatch.current()
        with limit_attempts(job.folder):
            envelopes = self._read(job, batches, at)
            if job.spec.program.levels:
                yield from blocks_of(outgoing(job, envelopes, at))
                return
            report = write_output(job, envelopes, at)
            if report is not None:
                yield report.to_batch()

    def _read(self, job: WorkerJob, batches: Iterator[pa.RecordBatch], at: TaskBatch) -> Iterator[Envelope]:
        source = job.topology.sources[self._source]
        task = Ingest(
            job.topology,
            source,
            job.spec.decoders[self._source],
            job.layout,
            worker_sql(job.spec.scratch),
            job.spec.limits,
            job.spec.block_rows,
        )
        topics = source.table.connector.topics or (source.table.name,)
        blocks = (self._records(batch, topics) for batch in batches if batch.num_rows)
        return task.run(blocks, at.now)

    @staticmethod
    def _records(batch: pa.RecordBatch, topics: tuple[str, ...]) -> pa.Table:
        """The columns of a record, from what Spark handed over."""
        columns = {_OURS.get(name, name): batch.column(name) for name in batch.schema.names if name != POSITION}
        position = batch.column(POSITION)
        columns["partition"] = pc.shift_right(position, OFFSET_BITS).cast(pa.int32())
        columns["offset"] = pc.bit_wise_and(position, 2**OFFSET_BITS - 1)
        if "topic" not in columns:
            columns["topic"] = pa.repeat(pa.scalar(topics[0], pa.string()), batch.num_rows)
        return pa.table(columns)


_OURS = {"timestampType": "timestamp_type"}
"""The columns of a record whose names in Spark are others."""
