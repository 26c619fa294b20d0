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
from service.spark.query.attempts import limit_attempts
from service.spark.query.bucket_cache import BucketCache, CachedBucket
from service.spark.query.job_spec import WorkerJob, worker_sql
from service.spark.query.payload_files import outgoing

_CACHES: dict[str, tuple[str, BucketCache]] = {}
"""By pipeline, the run and its buckets: those of the run before it are of no use."""


class LevelTask:
    """The function that Spark calls in each task of a level; picklable by name."""

    def __init__(self, blob: bytes, level: int) -> None:
        self._blob = blob
        self._level = level

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The envelopes of one shard in; those for later levels and the sink out."""
        job = WorkerJob.load(self._blob)
        with limit_attempts(job.folder):
            yield from blocks_of(outgoing(job, self._advance(job, batches)))

    def _advance(self, job: WorkerJob, batches: Iterator[pa.RecordBatch]) -> Iterator[Envelope]:
        context = TaskContext.get()
        assert context is not None
        number, batch = context.partitionId(), int(context.getLocalProperty("streaming.sql.batchId") or 0)
        here: list[Envelope] = []
        for envelope in (e for block in batches for e in from_batch(block)):
            if envelope.level == self._level:
                here.append(envelope)
            else:
                yield envelope
        files = job.spec.state.open()
        before = Version.before(files, batch).levels.get(self._level, LevelState(None, {}))
        cache = _cache(job)
        cache.begin(batch)
        buckets = _Buckets(job, self._level, before, BlockWriter(files, batch, self._level, number), cache)
        shard = Shard(job.topology, self._level, number, job.layout, before.clocks)
        yield from shard.advance(here, buckets)
        manifests = buckets.close(job.layout.buckets_of(number))
        told = ShardState(self._level, shard.save() if number == 0 else None, manifests)
        head, channel = job.layout.first_of(number), f"l{self._level:03d}/s{number:05d}/state"
        yield Envelope(head, EGRESS, Kind.STATE, self._level, channel, 0, 0, MIN_TIME, True, told.to_json())


class _Buckets:
    """The keeper of the buckets of one task."""

    def __init__(self, job: WorkerJob, level: int, before: LevelState, writer: BlockWriter, cache: BucketCache) -> None:
        self._job = job
        self._level = level
        self._before = before.manifests
        self._writer = writer
        self._cache = cache
        self._files = job.spec.state.open()
        self._manifests: dict[int, Manifest] = {}
        self._done: dict[int, CachedBucket] = {}

    def take(self, number: int) -> Bucket:
        """The bucket from this worker, or opened from its manifest."""
        cached = self._cache.take((self._level, number), self._before.get(number))
        if cached is not None:
            self._manifests[number] = cached.manifest
            cached.bucket.fetch_with(partial(self._fetch, number))
            return cached.bucket
        text = None
        if number in self._before:
            manifest = Manifest.from_bytes(self._files.block(self._before[number]).to_pybytes())
            self._manifests[number], text = manifest, manifest.text
        job = self._job
        fetch = partial(self._fetch, number)
        return Bucket(job.topology, self._level, number, job.layout.buckets, worker_sql(job.spec.scratch), text, fetch)

    def keep(self, number: int, bucket: Bucket, saved: SealedBucket) -> None:
        """Write what has changed; a bucket that has not keeps its manifest."""
        known = self._manifests.get(number)
        if known is not None and saved.manifest == known.text:
            self._done[number] = CachedBucket(bucket, known, self._before[number])
            return
        blocks = dict(known.blocks) if known is not None else {}
        for block in saved.removed:
            del blocks[block]
        blocks.update({block: self._writer.add(data) for block, data in saved.added.items()})
        manifest = self._manifests[number] = Manifest(saved.manifest, blocks)
        self._done[number] = CachedBucket(bucket, manifest, self._writer.add(pa.py_buffer(manifest.to_bytes())))

    def close(self, numbers: range) -> dict[int, StoredAt]:
        """Afterwards everything is written; where the manifest of each bucket is."""
        for number in numbers:
            if number not in self._done and number not in self._before:
                bucket = self.take(number)
                self.keep(number, bucket, bucket.seal())
        self._writer.close()
        for number, cached in self._done.items():
            self._cache.keep((self._level, number), cached)
        return {n: self._done[n].place if n in self._done else self._before[n] for n in numbers}

    def _fetch(self, number: int, block: str) -> pa.Buffer:
        return self._files.block(self._manifests[number].blocks[block])


def _cache(job: WorkerJob) -> BucketCache:
    run, cache = _CACHES.get(job.spec.program.name, ("", None))
    if cache is None or run != job.spec.run:
        cache = BucketCache()
        _CACHES[job.spec.program.name] = (job.spec.run, cache)
    return cache
