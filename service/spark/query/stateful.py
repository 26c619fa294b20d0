"""A level on Spark: a `mapInArrow` behind a shuffle that brings each shard its envelopes.

Spark keeps no state for it. A task reads where the batch before left its buckets, writes what changed into the
checkpoint, and tells the sink where: only when the sink's driver part has noted that does it count.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark import TaskContext

from operators.time import MIN_TIME
from service.checkpoint.blocks import BlockWriter, Manifest
from service.checkpoint.files import StoredAt
from service.checkpoint.version import LevelState, ShardState, Version
from service.runtime.bucket import Bucket, SealedBucket
from service.runtime.envelope import EGRESS, Envelope, Kind, blocks_of, from_batch
from service.runtime.shard import Shard
from service.spark.query.attempts import tried
from service.spark.query.bucket_cache import Resident, Residents
from service.spark.query.job_spec import Job, worker_sql

_RESIDENTS: dict[str, tuple[str, Residents]] = {}
"""By pipeline, the run and its buckets: those of the run before it are of no use."""


class LevelTask:
    """The function that Spark calls in each task of a level; picklable by name."""

    def __init__(self, blob: bytes, level: int) -> None:
        self._blob = blob
        self._level = level

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The envelopes of one shard in; those for later levels and the sink out."""
        job = Job.load(self._blob)
        with tried(job.folder):
            yield from blocks_of(self._advance(job, batches))

    def _advance(self, job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[Envelope]:
        context = TaskContext.get()
        assert context is not None
        number, batch = context.partitionId(), int(context.getLocalProperty("streaming.sql.batchId") or 0)
        here: list[Envelope] = []
        for envelope in (e for block in batches for e in from_batch(block)):
            if envelope.level == self._level:
                here.append(envelope)
            else:
                yield envelope
        files = job.ship.state.open()
        before = Version.before(files, batch).levels.get(self._level, LevelState(None, {}))
        residents = _residents(job)
        residents.begin(batch)
        buckets = _Buckets(job, self._level, before, BlockWriter(files, batch, self._level, number), residents)
        shard = Shard(job.topology, self._level, number, job.layout, before.clocks)
        yield from shard.advance(here, buckets)
        manifests = buckets.close(job.layout.buckets_of(number))
        told = ShardState(self._level, shard.save() if number == 0 else None, manifests)
        head, channel = job.layout.first_of(number), f"l{self._level:03d}/s{number:05d}/state"
        yield Envelope(head, EGRESS, Kind.STATE, self._level, channel, 0, 0, MIN_TIME, True, told.to_json())


class _Buckets:
    """The keeper of the buckets of one task."""

    def __init__(self, job: Job, level: int, before: LevelState, writer: BlockWriter, residents: Residents) -> None:
        self._job = job
        self._level = level
        self._before = before.manifests
        self._writer = writer
        self._residents = residents
        self._files = job.ship.state.open()
        self._manifests: dict[int, Manifest] = {}
        self._done: dict[int, Resident] = {}

    def take(self, number: int) -> Bucket:
        """The bucket from this worker, or opened from its manifest."""
        resident = self._residents.take((self._level, number), self._before.get(number))
        if resident is not None:
            self._manifests[number] = resident.manifest
            resident.bucket.fetch_with(partial(self._fetch, number))
            return resident.bucket
        text = None
        if number in self._before:
            manifest = Manifest.from_bytes(self._files.block(self._before[number]).to_pybytes())
            self._manifests[number], text = manifest, manifest.text
        job = self._job
        fetch = partial(self._fetch, number)
        return Bucket(job.topology, self._level, number, job.layout.buckets, worker_sql(job.ship.scratch), text, fetch)

    def keep(self, number: int, bucket: Bucket, saved: SealedBucket) -> None:
        """Write what has changed; a bucket that has not keeps its manifest."""
        known = self._manifests.get(number)
        if known is not None and saved.manifest == known.text:
            self._done[number] = Resident(bucket, known, self._before[number])
            return
        blocks = dict(known.blocks) if known is not None else {}
        for block in saved.removed:
            del blocks[block]
        blocks.update({block: self._writer.add(data) for block, data in saved.added.items()})
        manifest = self._manifests[number] = Manifest(saved.manifest, blocks)
        self._done[number] = Resident(bucket, manifest, self._writer.add(pa.py_buffer(manifest.to_bytes())))

    def close(self, numbers: range) -> dict[int, StoredAt]:
        """Afterwards everything is written; where the manifest of each bucket is."""
        for number in numbers:
            if number not in self._done and number not in self._before:
                bucket = self.take(number)
                self.keep(number, bucket, bucket.seal())
        self._writer.close()
        for number, resident in self._done.items():
            self._residents.keep((self._level, number), resident)
        return {n: self._done[n].place if n in self._done else self._before[n] for n in numbers}

    def _fetch(self, number: int, block: str) -> pa.Buffer:
        return self._files.block(self._manifests[number].blocks[block])


def _residents(job: Job) -> Residents:
    run, residents = _RESIDENTS.get(job.ship.program.name, ("", None))
    if residents is None or run != job.ship.run:
        residents = Residents()
        _RESIDENTS[job.ship.program.name] = (job.ship.run, residents)
    return residents
