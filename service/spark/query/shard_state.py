"""The state of a shard between two batches: where a task finds it, and where it leaves it.

It is in this worker (`shard_cache`), or its manifest is in the checkpoint, in the version of the previous batch; blocks
are fetched when they are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Self

import pyarrow as pa

from operators.state.mapped import MappedBytes
from service.checkpoint.blocks import BlockWriter, Manifest
from service.checkpoint.files import Files, StoredAt
from service.checkpoint.version import LevelState, Version
from service.runtime.layout import Layout
from service.runtime.shard_operators import ShardOperators, ShardPart, blocks_in_use, clipped_shard
from service.spark.query.job_spec import WorkerJob, worker_sql
from service.spark.query.shard_cache import CachedShard, ShardCache

_CACHES: dict[str, tuple[str, ShardCache]] = {}
"""By pipeline, the run and its shards: those of an earlier run are of no use."""

_VERSIONS: dict[str, tuple[tuple[str, int], Version]] = {}
"""By pipeline, the version from which the tasks of a batch start: in an object store each read of it is two requests,
and a worker runs many tasks of a batch."""


class KeptShard:
    """The state of a task's shard: as the previous batch left it, then as this batch leaves it. If the previous batch
    had another number of shards, it is combined from those that had some of its slots.

    A `with` block that is left by an error removes what was written early: nothing will refer to it, and a batch that
    fails again and again, which the sweep does not get past, would fill the disk.
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
        self._early: dict[str, StoredAt] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._remove_early(self._early)

    def take(self) -> ShardOperators:
        """Return the operators from this worker, or opened from the manifest."""
        address = self._level, self._number
        cached = self._cache.take(address, self._place)
        if cached is not None:
            self._manifest, self._operators = cached.manifest, cached.operators
            cached.operators.keep_with(self._fetch, self._write_early)
            return cached.operators
        self._manifest = self._read(self._place) if self._place is not None else self._clipped()
        text = self._manifest.text if self._manifest is not None else None
        job = self._job
        self._operators = ShardOperators(
            *(job.topology, self._level, self._number, job.layout, worker_sql(job.spec.scratch), text, self._fetch)
        )
        self._operators.keep_with(self._fetch, self._write_early)
        return self._operators

    def close(self) -> StoredAt:
        """Write everything that has changed. Return where the manifest is."""
        if self._operators is None and self._place is not None:
            return self._place
        operators = self._operators or self.take()
        saved, known = operators.seal(), self._manifest
        if self._place is None or known is None or saved.manifest != known.text:
            blocks = dict(known.blocks) if known is not None else {}
            for block in saved.removed:
                del blocks[block]
            blocks.update({block: self._early[block] for block in saved.written_early})
            blocks.update({block: self._writer.add(data) for block, data in saved.added.items()})
            known = self._manifest = Manifest(saved.manifest, blocks)
            self._place = self._writer.add(pa.py_buffer(known.to_bytes()))
        self._writer.close()
        self._remove_early(self._early.keys() - set(saved.written_early))
        self._cache.keep((self._level, self._number), CachedShard(operators, known, self._place))
        return self._place

    def _clipped(self) -> Manifest | None:
        """The manifest combined from those of the shards that had this shard's slots; None at the start."""
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

    def _fetch(self, block: str) -> pa.Buffer | MappedBytes:
        if block in self._early:
            return self._files.mapped(self._early[block])
        assert self._manifest is not None
        return self._files.mapped(self._manifest.blocks[block])

    def _write_early(self, block: str, data: pa.Buffer) -> None:
        self._early[block] = self._writer.add_at_once(data)

    def _remove_early(self, blocks: Iterable[str]) -> None:
        with suppress(OSError):  # a file that cannot be removed costs space until the sweep, not the task
            self._files.remove([self._early[block].file for block in blocks])


def version_before(job: WorkerJob, files: Files, batch: int) -> Version:
    """Return the state that a batch starts from: it does not change while tasks of the batch run."""
    wanted = job.spec.run, batch
    known, version = _VERSIONS.get(job.spec.program.name, (None, None))
    if version is None or known != wanted:
        version = Version.before(files, batch)
        _VERSIONS[job.spec.program.name] = wanted, version
    return version


def shard_cache(job: WorkerJob) -> ShardCache:
    """Return the shards of the run that this worker keeps."""
    run, cache = _CACHES.get(job.spec.program.name, ("", None))
    if cache is None or run != job.spec.run:
        cache = ShardCache()
        _CACHES[job.spec.program.name] = (job.spec.run, cache)
    return cache
