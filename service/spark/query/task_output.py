"""The output of a program in a task of the last level, or of level 0 if there is no other: written and committed here.

Spark gets only what the driver needs: one small row a task, with its metrics and the place of its state. Exactly-once
relies on the markers, not on Spark: whichever attempt of a task finishes, the batch is committed once.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from zlib import crc32

import pyarrow as pa

from service.checkpoint.batch_plan import BatchPlan
from service.formats.samples import Sample
from service.runtime.envelope import Envelope, Kind
from service.runtime.source_digest import digest
from service.runtime.task_metrics import TaskMetrics
from service.spark.query.attempts import is_first_attempt
from service.spark.query.egress import Egress
from service.spark.query.executor_memory import measure_executor
from service.spark.query.job_spec import WorkerJob, worker_sql
from service.spark.query.task_batch import TaskBatch
from service.spark.query.transactions import HELD, TaskTransactions

REPORTS = pa.schema([("report", pa.binary())])
SPARK_REPORTS = "report BINARY"


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The report of one task to the driver: its metrics, lines for 'print' tables, samples of dead letters and late
    rows, and the place of the state that came with its rows (JSON of `ShardState`)."""

    metrics: bytes
    lines: tuple[str, ...]
    samples: tuple[Sample, ...]
    state: tuple[bytes, ...]

    def to_batch(self) -> pa.RecordBatch:
        """Return one row of REPORTS."""
        return pa.record_batch([pa.array([pickle.dumps(self)], pa.binary())], schema=REPORTS)

    @staticmethod
    def from_row(written: bytes) -> TaskReport:
        """Read what `to_batch` wrote, in a worker of this job."""
        report: TaskReport = pickle.loads(written)
        return report


def write_output(job: WorkerJob, envelopes: Iterable[Envelope], at: TaskBatch) -> TaskReport | None:
    """Write all envelopes of a task in one transaction per Kafka cluster. Return None if there are none.

    The envelopes are read as they come: those of one channel are in their order. The first task of a plan without
    levels writes its marker even without rows: if its range holds nothing but control records, and the other tasks
    write none of their rows, nothing else would record the batch.
    """
    incoming = iter(envelopes)
    first = next(incoming, None)
    levels, readers = job.spec.program.levels, job.spec.readers
    if first is None and (levels or not readers or at.task > 0):
        return None
    metrics = TaskMetrics()
    # A task has the same rows in a replay, or it reads a single Kafka partition.
    partition = at.task if first is None or levels or readers else crc32(first.channel.encode())
    egress = Egress(job, worker_sql(job.spec.scratch), metrics)
    planned = at.now if first is None else first.now
    ranges: list[bytes] = []
    state: list[bytes] = []
    again = at.attempt > 0 or at.number == job.spec.replayed
    # The first task always writes its marker, from which an older copy of the checkpoint learns how far the job is.
    only = is_first_attempt(job, at) and at.task > 0
    redone = job.spec.redone is not None and partition not in job.spec.redone  # the batch was done without
    with TaskTransactions(job, partition, at.number, metrics, again=again, held=HELD) as transactions:
        for envelope in chain([] if first is None else [first], incoming):
            planned = max(planned, envelope.now)
            match envelope.kind:
                case Kind.METRICS:
                    metrics.absorb(envelope.payload)
                case Kind.OFFSETS:
                    ranges.append(envelope.payload)
                case Kind.STATE:
                    state.append(envelope.payload)
                case _:
                    for written in egress.take(envelope):
                        transactions.write(written)
        for written in egress.finish():
            transactions.write(written)
        mark = digest(planned, ranges)
        transactions.commit(mark, _plan(at, mark), may_skip=only or redone)
    measure_executor(metrics, job.spec.scratch)
    return TaskReport(metrics.to_json(), tuple(egress.lines), tuple(egress.samples), tuple(state))


def _plan(at: TaskBatch, mark: bytes) -> bytes:
    """The plan of the batch, with the digest of what this task read: for an older copy of the checkpoint."""
    plan = BatchPlan.from_bytes(at.plan)
    assert plan is not None
    return replace(plan, digest=mark.hex()).to_bytes()
