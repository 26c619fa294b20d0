"""The sink on Spark: each task encodes what its shard answered and commits it to Kafka exactly once."""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from service.checkpoint.batch_plan import BatchPlan
from service.checkpoint.version import ShardState, Version
from service.formats.samples import Sample
from service.kafka.writer import abort_counter
from service.kafka.writer.client import TransactionClient
from service.runtime.envelope import EGRESS, Kind, from_batch
from service.runtime.source_digest import digest
from service.runtime.task_metrics import TaskMetrics
from service.spark.internals.failures import noted
from service.spark.query.attempts import limit_attempts
from service.spark.query.egress import Egress
from service.spark.query.executor_memory import measure_executor
from service.spark.query.job_spec import WorkerJob, worker_sql
from service.spark.query.payload_files import PayloadFiles

DRIVER_PATIENCE = 5
"""Seconds that a batch waits for a driver that does not listen; what it misses are metrics."""


@dataclass
class TaskReport(WriterCommitMessage):
    """The report of one task to the driver: its metrics, lines for 'print' tables, samples of what went its own way,
    and where the state is that came with its rows (JSON of `ShardState`)."""

    metrics: bytes
    lines: tuple[str, ...]
    samples: tuple[Sample, ...]
    state: tuple[bytes, ...]


class TailraceSink(DataSource):
    """Option `job`: the job's blob in base64."""

    @classmethod
    def name(cls) -> str:
        """Return the name by which queries find this sink."""
        return "tailrace"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        """Return the writer of all batches of a query."""
        return SinkWriter(base64.b64decode(self.options["job"]))


class SinkWriter(DataSourceStreamArrowWriter):
    """Runs in the tasks (`write`) and once a batch on the driver's host (`commit`)."""

    def __init__(self, blob: bytes) -> None:
        self._blob = blob

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write all that one task was given, in one transaction a Kafka cluster."""
        job = WorkerJob.load(self._blob)
        with limit_attempts(job.folder):
            return self._write(job, iterator)

    def _write(self, job: WorkerJob, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        batch = int(context.getLocalProperty("streaming.sql.batchId") or -1)
        envelopes = sorted(
            (e for block in iterator for e in from_batch(block) if e.level == EGRESS),
            key=lambda e: (e.channel, e.sequence),
        )
        metrics = TaskMetrics()
        for envelope in envelopes:
            if envelope.kind == Kind.METRICS:
                metrics.absorb(envelope.payload)
        if not envelopes:
            return TaskReport(metrics.to_json(), (), (), ())
        # The task has the same rows in a replay, or else is of one Kafka partition.
        same = job.spec.program.levels or job.spec.readers
        partition = context.partitionId() if same else crc32(envelopes[0].channel.encode())
        with metrics.timed("encode"):
            egress = Egress(job, worker_sql(job.spec.scratch), metrics)
            by_writer, lines = egress.records(envelopes)
            samples = egress.samples(envelopes)
        planned = max(e.now for e in envelopes)
        source_ranges = digest(planned, (e.payload for e in envelopes if e.kind == Kind.OFFSETS))
        with metrics.timed("write"):
            plan = _plan(job, batch, source_ranges) if by_writer else b""
            for number, records in by_writer.items():
                self._commit_to_kafka(job, number, partition, batch, source_ranges, records, plan, metrics)
        measure_executor(metrics, job.spec.scratch)
        state = tuple(e.payload for e in envelopes if e.kind == Kind.STATE)
        return TaskReport(metrics.to_json(), tuple(lines), tuple(samples), state)

    def _commit_to_kafka(
        self,
        job: WorkerJob,
        number: int,
        partition: int,
        batch: int,
        source_ranges: bytes,
        records: Sequence[pa.RecordBatch],
        plan: bytes,
        metrics: TaskMetrics,
    ) -> None:
        # Beside the folder of this run: a query that is started again after a failure still hears of it.
        aborts = Path(job.spec.scratch) / f"{crc32(job.spec.program.name.encode()):08x}.aborts"
        settings = replace(
            job.spec.writers[number],
            parent_pid=os.getppid(),
            socket_folder=str(job.folder / "writer"),
            aborts=str(aborts),
        )
        redone = job.spec.redone
        earlier = None if redone is None else bytes.fromhex(redone.get(partition, ""))
        with TransactionClient(settings, partition, batch, source_ranges, earlier) as client:
            if client.begin():
                for block in records:
                    client.send(block)
            report = client.commit(plan=plan)
        metrics.count("transactions_total", outcome=report.outcome)
        metrics.count("transactions_total", abort_counter.take(aborts), outcome="aborted")

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Note the state that the batch leaves behind, before Spark notes the batch as done; then tell the driver
        process what the batch was: one that does not listen misses metrics, not rows."""
        with noted():
            self._commit(messages, batchId)

    def _commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        job = WorkerJob.load(self._blob)
        total = TaskMetrics()
        written = [message for message in messages if isinstance(message, TaskReport)]
        if job.spec.program.levels:
            told = (ShardState.from_json(payload) for message in written for payload in message.state)
            version = Version.of(told, job.spec.program.levels, job.layout.shards)
            version.write(job.spec.state.open(), batchId)
        if job.spec.one_host:
            PayloadFiles(job.folder, batchId).remove()
        for each in written:
            total.absorb(each.metrics)
        news: dict[str, Any] = {
            "batch": batchId,
            "metrics": asdict(total),
            "lines": [line for each in written for line in each.lines],
            "samples": [sample for each in written for sample in each.samples],
        }
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                # Not `settimeout`, with which a queue that is full for a moment is an error at once.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", DRIVER_PATIENCE, 0))
                connection.connect(job.spec.driver_socket)
                connection.sendall(json.dumps(news).encode())
        except OSError:
            return

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing: a failed batch needs no undoing, as what is committed is found by its marker when the batch runs
        again."""


def _plan(job: WorkerJob, batch: int, source_ranges: bytes) -> bytes:
    """How the batch was cut, for a checkpoint that is an older copy than this one."""
    spec = job.spec
    plan = BatchPlan.planned(
        spec.state.open(),
        batch,
        shards=spec.layout.shards,
        readers=spec.readers,
        plan=spec.writers[0].plan,
        growing=[n for n, source in enumerate(spec.program.sources) if source.table.connector.topic_pattern],
    )
    return replace(plan, digest=source_ranges.hex()).to_bytes()
