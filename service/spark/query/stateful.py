"""A level on Spark: a `mapInArrow` after a shuffle that brings each shard its envelopes.

Spark stores no state for it. A task reads its shard where the previous batch left it (`shard_state`), writes the
changes into the checkpoint, and reports their place to the driver: they are valid once the driver has stored that.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from operators.time import MIN_TIME
from service.checkpoint.answers import Answers
from service.checkpoint.blocks import BlockWriter
from service.checkpoint.version import LevelState, ShardState
from service.databases.lookups import found_now
from service.plan.program import Operator
from service.runtime.envelope import EGRESS, Envelope, Kind, blocks_of, from_batch
from service.runtime.shard import Shard
from service.runtime.shard_operators import ShardOperators
from service.runtime.task_metrics import TaskMetrics
from service.spark.query.attempts import limit_attempts
from service.spark.query.job_spec import WorkerJob
from service.spark.query.payload_files import outgoing
from service.spark.query.resting import REST
from service.spark.query.shard_state import KeptShard, shard_cache, version_before
from service.spark.query.store_metrics import count_traffic
from service.spark.query.task_batch import TaskBatch
from service.spark.query.task_output import write_output


class LevelTask:
    """The function that Spark calls in each task of a level; picklable by name."""

    def __init__(self, blob: bytes, level: int) -> None:
        self._blob = blob
        self._level = level

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the envelopes of one shard and yield those for later levels, or at the last level the report of the
        task."""
        job, at = WorkerJob.load(self._blob), TaskBatch.current()
        with REST.task(), limit_attempts(job.folder):
            envelopes = self._advance(job, batches, at)
            if self._level < job.spec.program.levels:
                yield from blocks_of(outgoing(job, envelopes, at))
                return
            report = write_output(job, envelopes, at)
            if report is not None:
                yield report.to_batch()

    def _advance(self, job: WorkerJob, batches: Iterator[pa.RecordBatch], at: TaskBatch) -> Iterator[Envelope]:
        number, batch = at.task, at.number
        here: list[Envelope] = []
        passing: list[Envelope] = []
        last = self._level == job.spec.program.levels
        for envelope in (e for block in batches for e in from_batch(block)):
            if envelope.kind == Kind.TICK:
                envelope = envelope._replace(now=at.now)
            if envelope.level == self._level:
                here.append(envelope)
            elif last:
                passing.append(envelope)
            else:
                yield envelope
        yield from sorted(passing, key=lambda e: (e.channel, e.sequence))
        files = job.spec.state.open()
        before = version_before(job, files, batch).levels.get(self._level, LevelState(None, ()))
        cache = shard_cache(job)
        cache.begin(batch)
        writer = BlockWriter(files, batch, self._level, number, repeats=batch == job.spec.replayed)
        kept = KeptShard(job, self._level, number, before, writer, cache)
        answers = Answers(files, batch, self._level, number)

        def ask(operator: Operator, keys: pa.Table, now: int) -> pa.Table:
            lookup = operator.lookup
            assert lookup is not None
            return answers.of(operator.identity, keys, lambda: found_now(lookup, keys, now))

        def take() -> ShardOperators:
            operators = kept.take()
            operators.ask_with(ask)
            return operators

        shard = Shard(job.topology, self._level, number, job.layout, before.clocks)
        with kept:
            yield from shard.advance(here, take)
            place = kept.close()
        shard_state = ShardState(self._level, number, shard.save() if number == 0 else None, place)
        channel = f"l{self._level:03d}/s{number:05d}/state"
        yield Envelope(number, EGRESS, Kind.STATE, self._level, channel, 0, 0, MIN_TIME, True, shard_state.to_json())
        if not job.spec.state.is_folder:
            metrics = TaskMetrics()
            count_traffic(metrics, files)
            yield Envelope(number, EGRESS, Kind.METRICS, self._level, channel, 1, 0, MIN_TIME, True, metrics.to_json())
