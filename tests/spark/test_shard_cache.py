"""What a worker keeps of its shards from one batch to the next."""

from __future__ import annotations

from typing import Any

from service.checkpoint.blocks import Manifest
from service.checkpoint.files import StoredAt
from service.spark.query.shard_cache import BATCHES, CachedShard, ShardCache

HERE, AWAY = (1, 0), (2, 7)
OPERATORS: Any = object()


def left_with(file: str) -> CachedShard:
    """The shard with its manifest in that file."""
    return CachedShard(OPERATORS, Manifest(b"", {}), StoredAt(file, 0, 10))


def test_a_shard_is_taken_up_where_it_was_left() -> None:
    cache = ShardCache()
    cache.begin(1)
    cache.keep(HERE, left_with("here"))
    cache.begin(2)
    assert cache.take(HERE, StoredAt("here", 0, 10)) == left_with("here")
    assert cache.take(HERE, StoredAt("here", 0, 10)) is None, "whose batch fails is not taken up again"


def test_a_shard_that_was_elsewhere_meanwhile_is_reopened() -> None:
    cache = ShardCache()
    cache.begin(1)
    cache.keep(HERE, left_with("here"))
    cache.begin(3)
    assert cache.take(HERE, StoredAt("elsewhere", 0, 10)) is None
    assert cache.take(HERE, StoredAt("here", 0, 10)) is None


def test_a_shard_that_has_moved_away_is_forgotten() -> None:
    cache = ShardCache()
    cache.begin(1)
    cache.keep(AWAY, left_with("away"))
    for batch in range(2, 2 * BATCHES + 1):
        cache.begin(batch)
        cache.keep(HERE, left_with(str(batch)))
    assert cache.take(AWAY, StoredAt("away", 0, 10)) is None
    assert cache.take(HERE, StoredAt(str(2 * BATCHES), 0, 10)) is not None
