"""A batch of a partition appears once, whatever attempts there are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from service.kafka.admin import Cluster
from service.kafka.errors import DigestMismatch, Fenced, KafkaConfigError, SourceChanged, Superseded
from tests.brokers import Broker
from tests.kafka.conftest import MARKERS, Query


def test_a_replayed_batch_writes_nothing(query: Query):
    assert query.write(0, "a", "b").outcome == "committed"
    with query.attempt(0) as replay:
        assert not replay.begin()
        assert replay.commit().outcome == "replayed"
    assert query.committed() == ["a", "b"]


@pytest.mark.parametrize("host", ["a", "b"])
def test_a_look_at_the_marker_shows_what_is_committed_and_disturbs_nobody(query: Query, host: str):
    assert not query.attempt(0, host=host).is_committed()
    with query.attempt(0) as first:
        first.begin()
        first.send(query.rows("a"))
        assert not query.attempt(0, host=host).is_committed()
        first.commit()
    until = time.monotonic() + 60  # Kafka shows a commit to readers shortly after it has answered it
    while not query.attempt(0, host=host).is_committed():
        assert time.monotonic() < until
    assert not query.attempt(1, host=host).is_committed()
    assert not query.attempt(0, partition=1, host=host).is_committed()
    assert query.committed() == ["a"]


def test_a_report_counts_what_was_written(query: Query):
    report = query.write(0, "one", "three")
    assert (report.rows, report.bytes, report.topics) == (2, 8, {query.topic: 2})


def test_a_replay_on_another_host_writes_nothing(query: Query):
    query.write(0, "a")
    assert query.write(0, "a", host="b").outcome == "replayed"
    assert query.committed() == ["a"]


def test_partitions_are_independent(query: Query):
    query.write(0, "p0", partition=0)
    query.write(0, "p1", partition=1)
    assert sorted(query.committed()) == ["p0", "p1"]


def test_a_batch_without_rows_is_remembered_too(query: Query):
    assert query.write(0).outcome == "committed"
    assert query.write(0).outcome == "replayed"


@pytest.mark.parametrize("batch", [0, 1], ids=["the same batch", "an older batch"])
@pytest.mark.parametrize("host", ["a", "b"], ids=["known in memory", "read from the topic"])
def test_a_batch_cut_another_way_is_refused(query: Query, batch: int, host: str):
    query.write(0, "a", digest=b"one")
    query.write(1, "b", digest=b"two")
    with query.attempt(batch, digest=b"other", host=host) as attempt, pytest.raises(DigestMismatch):
        attempt.begin()
    assert query.committed() == ["a", "b"]


def test_a_batch_of_which_kafka_has_removed_records_says_so_and_may_be_taken_for_written(query: Query):
    query.write(0, "a", digest=b"planned-all-rows")
    with query.attempt(0, digest=b"planned-fewer---") as attempt, pytest.raises(SourceChanged, match="other records"):
        attempt.begin()
    query.set(accept_changed_source=True)
    assert query.write(0, "b", digest=b"planned-fewer---").outcome == "replayed"
    assert query.committed() == ["a"]


def test_a_digest_may_be_given_at_the_end(query: Query):
    with query.attempt(0, digest=None) as first:
        assert first.begin()
        first.send(query.rows("a"))
        first.commit(b"one")
    with query.attempt(0, digest=None) as replay:
        assert not replay.begin()
        assert replay.commit(b"one").outcome == "replayed"
    with query.attempt(0, digest=None) as other:
        assert not other.begin()
        with pytest.raises(DigestMismatch):
            other.commit(b"other")
    assert query.committed() == ["a"]


def test_a_fresh_checkpoint_of_the_same_query_writes(query: Query):
    query.write(7, "old", checkpoint="c1")
    assert query.write(0, "new", checkpoint="c2").outcome == "committed"
    assert query.committed() == ["old", "new"]


def test_an_aborted_attempt_leaves_nothing(query: Query):
    with query.attempt(0) as attempt:
        attempt.begin()
        attempt.send(query.rows("lost"))
        attempt.abort()
    query.write(0, "kept")
    assert query.committed() == ["kept"]


def test_an_attempt_whose_task_died_is_aborted_at_once(kafka: Broker, make_query: Callable[..., Query]):
    query = make_query(kafka.bootstrap, patience_ms=60_000, attempt_wait_ms=10**9)  # no attempt takes over by waiting
    dead = query.attempt(0)
    dead.begin()
    dead.send(query.rows("lost"))
    dead.close()
    query.write(0, "kept")
    assert query.committed() == ["kept"]


def test_a_second_attempt_takes_over_from_one_that_does_not_end(query: Query):
    with query.attempt(0) as first, query.attempt(0) as second:
        first.begin()
        first.send(query.rows("first"))
        assert second.begin()
        second.send(query.rows("second"))
        with pytest.raises(Superseded, match="another attempt"):
            first.commit()
        second.commit()
    assert query.committed() == ["second"]


def test_a_second_attempt_waits_for_one_that_commits(kafka: Broker, make_query: Callable[..., Query]):
    query = make_query(kafka.bootstrap, patience_ms=60_000, attempt_wait_ms=60_000)
    with query.attempt(0) as first, query.attempt(0) as second:
        first.begin()
        first.send(query.rows("first"))
        answers: list[bool] = []
        waiting = threading.Thread(target=lambda: answers.append(second.begin()))
        waiting.start()
        time.sleep(0.2)
        assert not answers
        first.commit()
        waiting.join()
        assert answers == [False]
    assert query.committed() == ["first"]


def test_a_late_attempt_of_an_older_batch_does_not_disturb_the_running_one(query: Query):
    query.write(0, "a")
    with query.attempt(1) as running, query.attempt(0) as late:
        running.begin()
        with pytest.raises(Fenced, match="comes too late"):
            late.begin()
        running.send(query.rows("b"))
        running.commit()
    assert query.committed() == ["a", "b"]


def test_a_late_attempt_on_another_host_does_not_fence_the_owner(query: Query):
    query.write(0, "a")
    query.write(1, "b")
    with query.attempt(0, host="b") as late, pytest.raises(DigestMismatch):
        late.begin()
    assert query.write(2, "c").outcome == "committed"


def test_the_owner_is_fenced_when_the_partition_moves(query: Query):
    with query.attempt(0, host="a") as old:
        old.begin()
        old.send(query.rows("old"))
        assert query.write(0, "new", host="b").outcome == "committed"
        with pytest.raises(Fenced, match="taken over"):
            old.commit()
    assert query.committed() == ["new"]


def test_a_partition_may_come_back(query: Query):
    query.write(0, "a", host="a")
    query.write(1, "b", host="b")
    with pytest.raises(Fenced):
        query.write(2, "c", host="a")
    query.write(2, "c", host="a")
    assert query.committed() == ["a", "b", "c"]


def test_a_missing_topic_is_named(query: Query):
    gone = query.topic
    query.topic = "does-not-exist"
    with pytest.raises(KafkaConfigError, match=r"does-not-exist|Unknown topic"):
        query.write(0, "a")
    query.topic = gone
    assert query.write(0, "a").outcome == "committed"


def test_the_marker_topic_is_compacted_and_has_no_retention_by_time(query: Query):
    Cluster({"bootstrap.servers": query.bootstrap}).check_markers(MARKERS)
