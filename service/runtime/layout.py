"""How the keys of a level are spread: over a fixed number of buckets, which any number of shards serve."""

from __future__ import annotations

from typing import NamedTuple


class Layout(NamedTuple):
    """`buckets` is fixed with the state; `shards`, at most as many, is the number of tasks that a level runs in.

    A shard serves a contiguous range of buckets, so that another number of shards moves no state.
    """

    buckets: int
    shards: int

    @classmethod
    def of(cls, buckets: int, shards: int) -> Layout:
        """The layout of `shards` tasks, of which none is left without a bucket."""
        return cls(buckets, min(buckets, shards))

    def shard_of(self, bucket: int) -> int:
        """The shard that serves a bucket."""
        return bucket * self.shards // self.buckets

    def first_of(self, shard: int) -> int:
        """The first bucket of a shard: what concerns the whole shard is addressed to it."""
        return -(-shard * self.buckets // self.shards)

    def buckets_of(self, shard: int) -> range:
        """The buckets of a shard."""
        return range(self.first_of(shard), self.first_of(shard + 1))

    def heads(self) -> list[int]:
        """The first bucket of each shard."""
        return [self.first_of(shard) for shard in range(self.shards)]
