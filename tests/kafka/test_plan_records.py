"""The plans of batches stand beside the markers; a batch is done again as they say."""

from __future__ import annotations

import pytest

from service.kafka.errors import DigestMismatch, SourceChanged
from service.kafka.writer.client import TransactionClient
from service.kafka.writer.plan_records import LONGEST_RING, RING_BYTES, plan_key
from tests.kafka.conftest import Query


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
    for now, then in ((b"12345678now", b"12345678then"), (b"12345678then", b"")):
        with pytest.raises(SourceChanged):
            again(now, then)
    for earlier in (b"another digest", None):
        with pytest.raises(DigestMismatch):
            again(b"12345678then", earlier)
    assert query.committed() == ["a", "b"]


def test_a_batch_done_again_is_not_written_where_it_had_no_rows_at_first(query: Query) -> None:
    query.write(1, "a")
    with TransactionClient(query.settings(), 0, 2, None, b"") as client, pytest.raises(SourceChanged):
        client.begin()
    query.set(accept_changed_source=True)
    with TransactionClient(query.settings("b"), 0, 2, None, b"") as client:
        assert not client.begin(), "what was written then stands"
        assert client.commit(b"now").outcome == "replayed"
    assert query.committed() == ["a"]
