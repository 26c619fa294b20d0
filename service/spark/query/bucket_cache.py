"""The buckets that live on in a Python worker from one batch to the next, and what those leave that have moved away.

Spark may give a bucket to another worker, or to an executor on another host. Nobody tells those that had it. But every
bucket runs in every batch: one that has not run here for a while is somewhere else.
"""

from __future__ import annotations

import shutil
import time
from collections import deque
from pathlib import Path
from typing import NamedTuple

from service.runtime.bucket import Bucket

BATCHES = 16
"""A bucket that has not run here in so many batches has moved away."""

Place = tuple[int, int]
"""A bucket's level and number."""


class _Kept(NamedTuple):
    bucket: Bucket
    manifest: bytes
    batch: int


class Residents:
    """The buckets of one run in this worker. `folder` has a folder for each bucket of this host, which changes its time
    with every batch of the bucket: see `BlockCache`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[Place, _Kept] = {}
        self._now = -1
        self._batch = 0
        self._began: deque[float] = deque(maxlen=BATCHES)

    def begin(self, now: int) -> None:
        """A bucket is about to run in the batch of this time."""
        if now == self._now:
            return
        self._now = now
        self._batch += 1
        if len(self._began) == BATCHES and self._batch % BATCHES == 0:
            self._sweep(self._began[0])
        self._began.append(time.time())

    def take(self, place: Place, manifest: bytes | None) -> Bucket | None:
        """The bucket, if it is here as the state store knows it; it is given back by `keep`."""
        kept = self._kept.pop(place, None)
        return kept.bucket if kept is not None and kept.manifest == manifest else None

    def keep(self, place: Place, bucket: Bucket, manifest: bytes) -> None:
        """The bucket has done its batch, and sealed it with this manifest."""
        self._kept[place] = _Kept(bucket, manifest, self._batch)

    def _sweep(self, since: float) -> None:
        """Forget the buckets that have not run since then: their memory, and on disk their copies of blocks."""
        self._kept = {place: kept for place, kept in self._kept.items() if kept.batch > self._batch - BATCHES}
        for folder in self._folder.glob("l*b*"):
            try:
                stale = folder.stat().st_mtime < since
            except FileNotFoundError:  # another worker of this host was faster
                continue
            if stale:
                shutil.rmtree(folder, ignore_errors=True)
