"""A level on Spark: a `mapInArrow` behind a shuffle that brings each shard its envelopes.

Spark keeps no state for it. A task reads where the batch before left its shard, writes what changed into the
checkpoint, and tells the driver where: only when that has noted it does it count.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from operators.time import MIN_TIME
from service.checkpoint.answers import Answers
from service.checkpoint.blocks import BlockWriter, Manifest
from service.checkpoint.files import Files, StoredAt
from service.checkpoint.version import LevelState, ShardState, Version
from service.databases.lookups import found_now
from service.plan.program import Operator
from service.runtime.envelope import EGRESS, Envelope, Kind, blocks_of, from_batch
from service.runtime.layout import Layout
from service.runtime.shard import Shard
from service.runtime.shard_operators import ShardOperators, ShardPart, blocks_in_use, clipped_shard
from service.spark.query.attempts import limit_attempts
from service.spark.query.job_spec import WorkerJob, worker_sql
from service.spark.query.payload_files import outgoing
from service.spark.query.shard_cache import CachedShard, ShardCache
from service.spark.query.task_batch import TaskBatch
from service.spark.query.task_output import write_output

_CACHES: dict[str, tuple[str, ShardCache]] = {}
"""By pipeline, the run and its shards: those of the run before it are of no use."""

_VERSIONS: dict[str, tuple[tuple[str, int], Version]] = {}
"""By pipeline, the version that the tasks of a batch of a run start from: in an object store each look is two requests,
and a worker does many tasks of a batch."""


class LevelTask:
    """The function that Spark calls in each task of a level; picklable by name."""

    def __init__(self, blob: bytes, level: int) -> None:
        self._blob = blob
        self._level = level

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The envelopes of one shard in; those for later levels out, or of the last level the report of the task."""
        job, at = WorkerJob.load(self._blob), TaskBatch.current()
        with limit_attempts(job.folder):
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
        before = _version_before(job, files, batch).levels.get(self._level, LevelState(None, ()))
        cache = _cache(job)
        cache.begin(batch)
        kept = _KeptShard(job, self._level, number, before, BlockWriter(files, batch, self._level, number), cache)
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
        yield from shard.advance(here, take)
        told = ShardState(self._level, number, shard.save() if number == 0 else None, kept.close())
        channel = f"l{self._level:03d}/s{number:05d}/state"
        yield Envelope(number, EGRESS, Kind.STATE, self._level, channel, 0, 0, MIN_TIME, True, told.to_json())


class _KeptShard:
    """The state of the shard of one task, between what the batch before left and what this one leaves.

    Where the batch before had another number of shards, it is put together from those that had some of its slots.
    """

    def __init__(
        self, job: WorkerJob, level: int, number: int, before: LevelState, writer: BlockWriter, cache: ShardCache
    ) -> None:
        self._job = job
        self._level = level
        self._number = number
        self._writer = writer
        self._cache = cache
        self._files = job.spec.state.open()
        self._before = before.manifests
        same = len(before.manifests) == job.layout.shards
        self._place = before.manifests[number] if same else None
        self._manifest: Manifest | None = None
        self._operators: ShardOperators | None = None

    def take(self) -> ShardOperators:
        """The operators from this worker, or opened from the manifest."""
        address = self._level, self._number
        cached = self._cache.take(address, self._place)
        if cached is not None:
            self._manifest, self._operators = cached.manifest, cached.operators
            cached.operators.fetch_with(self._fetch)
            return cached.operators
        self._manifest = self._read(self._place) if self._place is not None else self._clipped()
        text = self._manifest.text if self._manifest is not None else None
        job = self._job
        self._operators = ShardOperators(
            *(job.topology, self._level, self._number, job.layout, worker_sql(job.spec.scratch), text, self._fetch)
        )
        return self._operators

    def close(self) -> StoredAt:
        """Afterwards everything is written; where the manifest is. What has not changed stays where it is."""
        if self._operators is None and self._place is not None:
            return self._place
        operators = self._operators or self.take()
        saved, known = operators.seal(), self._manifest
        if self._place is None or known is None or saved.manifest != known.text:
            blocks = dict(known.blocks) if known is not None else {}
            for block in saved.removed:
                del blocks[block]
            blocks.update({block: self._writer.add(data) for block, data in saved.added.items()})
            known = self._manifest = Manifest(saved.manifest, blocks)
            self._place = self._writer.add(pa.py_buffer(known.to_bytes()))
        self._writer.close()
        self._cache.keep((self._level, self._number), CachedShard(operators, known, self._place))
        return self._place

    def _clipped(self) -> Manifest | None:
        """The manifest put together from those of the shards that had the slots of this one; None at the start."""
        if not self._before:
            return None
        before, slots = Layout(len(self._before)), self._job.layout.slots_of(self._number)
        had = {shard: self._read(self._before[shard]) for shard in before.sharing(slots)}
        manifests = list(had.values())
        parts = [ShardPart(before.slots_of(shard), manifest.text) for shard, manifest in had.items()]
        found = clipped_shard(self._job.topology, self._level, parts, slots)
        return Manifest(found.manifest, {new: manifests[part].blocks[old] for new, (part, old) in found.blocks.items()})

    def _read(self, place: StoredAt) -> Manifest:
        manifest = Manifest.from_bytes(self._files.block(place).to_pybytes())
        used = blocks_in_use(self._job.topology, self._level, manifest.blocks)
        return manifest._replace(blocks={key: at for key, at in manifest.blocks.items() if key in used})

    def _fetch(self, block: str) -> pa.Buffer:
        assert self._manifest is not None
        return self._files.block(self._manifest.blocks[block])


def _version_before(job: WorkerJob, files: Files, batch: int) -> Version:
    """The state that the batch starts from: it does not change while tasks of the batch run."""
    wanted = job.spec.run, batch
    known, version = _VERSIONS.get(job.spec.program.name, (None, None))
    if version is None or known != wanted:
        version = Version.before(files, batch)
        _VERSIONS[job.spec.program.name] = wanted, version
    return version


def _cache(job: WorkerJob) -> ShardCache:
    run, cache = _CACHES.get(job.spec.program.name, ("", None))
    if cache is None or run != job.spec.run:
        cache = ShardCache()
        _CACHES[job.spec.program.name] = (job.spec.run, cache)
    return cache
