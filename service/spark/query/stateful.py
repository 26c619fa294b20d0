"""A level on Spark: a stateful processor keyed by bucket, whose state is a map of blocks and of what lists them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from service.runtime.bucket import Bucket
from service.runtime.envelope import Envelope
from service.spark.query.attempts import tried
from service.spark.query.block_cache import BlockCache
from service.spark.query.bucket_cache import Residents
from service.spark.query.job_spec import Job, worker_sql

_MANIFEST = ("",)
"""The key of the manifest in the map of blocks. Spark prepares each state variable anew in each task, with a run of its
analyzer: so there is one."""

_RESIDENTS: dict[str, tuple[str, Residents]] = {}
"""By pipeline, the run and its buckets: those of the run before it are of no use."""


class BucketProcessor(StatefulProcessor):
    """Runs the buckets of one level; picklable by name."""

    def __init__(self, blob: bytes, level: int) -> None:
        self._blob = blob
        self._level = level

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state variable."""
        self._blocks = handle.getMapState("blocks", "id STRING", "data BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Envelope]:
        """One batch of one bucket."""
        job = Job.load(self._blob)
        with tried(job.folder):
            yield from self._answer(job, key, rows)

    def _answer(self, job: Job, key: Any, rows: Iterator[Any]) -> Iterator[Envelope]:
        here: list[Envelope] = []
        for row in rows:
            envelope = Envelope(*row)
            if envelope.level == self._level:
                here.append(envelope)
            else:
                yield row
        if here:
            yield from map(_row, self._advance(job, job.number_of_key[key[0]], here))

    def _advance(self, job: Job, number: int, here: list[Envelope]) -> Iterator[Envelope]:
        place = (self._level, number)
        cache = BlockCache(job.folder / f"l{self._level}b{number}")
        residents = _residents(job)
        residents.begin(here[0].now)
        stored = self._blocks.getValue(_MANIFEST)
        manifest = bytes(stored[0]) if stored else None
        bucket = residents.take(place, manifest)
        if bucket is None:
            bucket = Bucket(
                job.topology,
                self._level,
                number,
                job.buckets,
                worker_sql(job.ship.scratch),
                manifest,
                lambda block: cache.fetch(block, self._load),
            )
        bucket.fetch_with(lambda block: cache.fetch(block, self._load))
        for envelope in bucket.advance(here):
            yield envelope._replace(bucket=job.ship.bucket_keys[envelope.bucket])
        saved = bucket.seal()
        for block, data in saved.added.items():
            self._blocks.updateValue((block,), (_as_bytes(data),))
            cache.put(block, data)
        for block in saved.removed:
            self._blocks.removeKey((block,))
            cache.drop(block)
        self._blocks.updateValue(_MANIFEST, (saved.manifest,))
        residents.keep(place, bucket, saved.manifest)

    def _load(self, block: str) -> bytes:
        value = self._blocks.getValue((block,))
        if value is None:
            raise LookupError(f"block {block} is listed in the manifest but missing from the state store")
        return bytes(value[0])

    def close(self) -> None:
        """Nothing is held open between batches."""


def _residents(job: Job) -> Residents:
    run, residents = _RESIDENTS.get(job.ship.program.name, ("", None))
    if residents is None or run != job.ship.run:
        residents = Residents(job.folder)
        _RESIDENTS[job.ship.program.name] = (job.ship.run, residents)
    return residents


def _as_bytes(data: pa.Buffer) -> bytes:
    return bytes(data.to_pybytes())


_ROW = Row(*Envelope._fields)


def _row(envelope: Envelope) -> Row:
    """An envelope as Spark wants its rows."""
    return _ROW(*envelope)
