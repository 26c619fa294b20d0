"""The shards that a Python worker keeps from one batch to the next; `shard_state` finds all others.

Spark may give a shard to another worker, or to an executor on another host, without notice to the previous one. So a
shard is used again only if its manifest is the one with which it was left, and it is dropped when it has not run for a
while.
"""

from __future__ import annotations

from typing import NamedTuple

from service.checkpoint.blocks import Manifest
from service.checkpoint.files import StoredAt
from service.runtime.shard_operators import ShardOperators

BATCHES = 16
"""The number of batches after which a shard that has not run here has moved away."""

Address = tuple[int, int]
"""A shard's level and number."""


class CachedShard(NamedTuple):
    """The operators of a shard, the manifest that they were left with, and where that is."""

    operators: ShardOperators
    manifest: Manifest
    place: StoredAt


class ShardCache:
    """The shards of one run in this worker."""

    def __init__(self) -> None:
        self._kept: dict[Address, tuple[CachedShard, int]] = {}
        self._batch = 0

    def begin(self, batch: int) -> None:
        """Note that shards are about to run in this batch."""
        if batch != self._batch and batch % BATCHES == 0:
            self._kept = {address: kept for address, kept in self._kept.items() if kept[1] > batch - BATCHES}
        self._batch = batch

    def take(self, address: Address, place: StoredAt | None) -> CachedShard | None:
        """Return the shard, if it is here as the manifest at `place` describes it; it is given back by `keep`."""
        kept, _ = self._kept.pop(address, (None, 0))
        return kept if kept is not None and kept.place == place else None

    def keep(self, address: Address, cached: CachedShard) -> None:
        """Keep a shard that has done its batch."""
        self._kept[address] = cached, self._batch
