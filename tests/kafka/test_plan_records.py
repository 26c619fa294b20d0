"""The plans of batches stand beside the markers, and are read from there."""

from __future__ import annotations

import pytest

from service.kafka.errors import DigestMismatch, SourceChanged
from service.kafka.writer.client import TransactionClient
from service.kafka.writer.marker import Marker
from service.kafka.writer.plan_records import LONGEST_RING, RING_BYTES, Written, all_written, plan_key
from tests.kafka.conftest import Query


def write(query: Query, batch: int, plan: bytes, partition: int = 0) -> None:
    with TransactionClient(query.settings(), partition, batch, b"d") as client:
        client.begin()
        client.send(query.rows("a"))
        client.commit(plan=plan)


def test_what_a_query_has_written_is_found_and_nothing_else(query: Query) -> None:
    write(query, 1, b"one")
    write(query, 2, b"two")
    write(query, 2, b"deux", partition=17)
    query.write(7, "of another checkpoint", checkpoint="c10")
    with TransactionClient(query.settings(), 0, 3, b"d") as client:
        client.begin()
        client.send(query.rows("never committed"))
    assert all_written(query.settings()) == Written(
        {0: Marker(2, b"d"), 17: Marker(2, b"d")}, {0: (b"one", b"two"), 17: (b"deux",)}
    )


@pytest.mark.parametrize(("size", "ring"), [(1, LONGEST_RING), (256, LONGEST_RING), (257, LONGEST_RING // 2)])
def test_keys_are_used_again_after_as_many_batches_as_fit(query: Query, size: int, ring: int) -> None:
    settings = query.settings()
    assert ring * size <= RING_BYTES
    assert plan_key(settings, 0, 5, size) == plan_key(settings, 0, 5 + ring, size)
    assert plan_key(settings, 0, 5, size) != plan_key(settings, 0, 5 + ring // 2, size)


def test_a_batch_behind_the_newest_is_done_again_only_from_the_rows_that_it_was_made_from(query: Query) -> None:
    query.write(1, "a", digest=b"12345678then")
    query.write(2, "b")

    def again(digest: bytes, earlier: bytes | None) -> str:
        with TransactionClient(query.settings(), 0, 1, digest, earlier) as client:
            assert not client.begin()
            return client.commit().outcome

    assert again(b"12345678then", b"12345678then") == "replayed"
    with pytest.raises(SourceChanged):
        again(b"12345678now", b"12345678then")
    for earlier in (b"another digest", b"", None):
        with pytest.raises(DigestMismatch):
            again(b"12345678then", earlier)
    assert query.committed() == ["a", "b"]
