"""What a worker keeps of its buckets from one batch to the next."""

from __future__ import annotations

from typing import Any

from service.checkpoint.blocks import Manifest
from service.checkpoint.files import StoredAt
from service.spark.query.bucket_cache import BATCHES, Resident, Residents

HERE, AWAY = (1, 0), (2, 7)
BUCKET: Any = object()


def left_with(file: str) -> Resident:
    """The bucket with its manifest in that file."""
    return Resident(BUCKET, Manifest(b"", {}), StoredAt(file, 0, 10))


def test_a_bucket_is_taken_up_where_it_was_left() -> None:
    residents = Residents()
    residents.begin(1)
    residents.keep(HERE, left_with("here"))
    residents.begin(2)
    assert residents.take(HERE, StoredAt("here", 0, 10)) == left_with("here")
    assert residents.take(HERE, StoredAt("here", 0, 10)) is None, "whose batch fails is not taken up again"


def test_a_bucket_that_was_elsewhere_meanwhile_is_opened_anew() -> None:
    residents = Residents()
    residents.begin(1)
    residents.keep(HERE, left_with("here"))
    residents.begin(3)
    assert residents.take(HERE, StoredAt("elsewhere", 0, 10)) is None
    assert residents.take(HERE, StoredAt("here", 0, 10)) is None


def test_a_bucket_that_has_moved_away_is_forgotten() -> None:
    residents = Residents()
    residents.begin(1)
    residents.keep(AWAY, left_with("away"))
    for batch in range(2, 2 * BATCHES + 1):
        residents.begin(batch)
        residents.keep(HERE, left_with(str(batch)))
    assert residents.take(AWAY, StoredAt("away", 0, 10)) is None
    assert residents.take(HERE, StoredAt(str(2 * BATCHES), 0, 10)) is not None
