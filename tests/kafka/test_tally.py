"""Transactions that are rolled back are counted, and the next task that commits tells how many they were."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from service.kafka.errors import KafkaFailure, MessageTooLarge
from service.kafka.writer import abort_counter as tally
from tests.kafka.conftest import Query


def test_what_is_taken_is_taken_once_and_nothing_is_taken_where_nothing_was_counted(tmp_path: Path):
    path = tmp_path / "aborts"
    assert tally.take(path) == 0
    for _ in range(3):
        tally.add(path)
    assert [tally.take(path), tally.take(path)] == [3, 0]
    tally.add(path)
    assert tally.take(path) == 1


def test_nothing_is_lost_between_those_who_count_and_those_who_take(tmp_path: Path):
    path = tmp_path / "aborts"

    def count() -> None:
        for _ in range(200):
            tally.add(path)

    counting = [threading.Thread(target=count) for _ in range(4)]
    for thread in counting:
        thread.start()
    taken = 0
    while any(thread.is_alive() for thread in counting):
        taken += tally.take(path)
    assert taken + tally.take(path) == 800


def test_a_place_that_cannot_be_written_stops_nobody(tmp_path: Path):
    place = tmp_path / "no-folder" / "aborts"
    tally.add(place)
    assert tally.take(place) == 0


@pytest.fixture
def aborts(query: Query, tmp_path: Path) -> Path:
    path = tmp_path / "aborts"
    query.set(aborts=str(path))
    return path


def test_what_commits_and_what_is_found_committed_was_not_rolled_back(query: Query, aborts: Path):
    query.write(0, "a")
    assert query.write(0, "a").outcome == "replayed"
    assert tally.take(aborts) == 0


def test_a_task_that_gives_up_dies_or_is_refused_has_rolled_one_back(query: Query, aborts: Path):
    with query.attempt(0) as attempt:
        attempt.begin()
        attempt.send(query.rows("a"))
    assert tally.take(aborts) == 1

    attempt = query.attempt(0)
    attempt.begin()
    attempt.send(query.rows("a"))
    attempt.close()  # as the end of its process does
    query.insist(0, "a")
    assert tally.take(aborts) == 1

    with pytest.raises(MessageTooLarge):
        query.write(1, "a" * 1_100_000)
    assert tally.take(aborts) == 1


def test_a_commit_that_only_the_marker_shows_was_not_rolled_back(query: Query, aborts: Path):
    with query.attempt(0) as attempt:
        attempt.begin()
        attempt.send(query.rows("a"))
        report = attempt.commit()
    assert report.outcome == "committed"
    query.kill_writer()
    with query.attempt(0) as attempt:
        assert attempt.begin() is False
    assert tally.take(aborts) == 0
    with pytest.raises(KafkaFailure):
        query.write(0, "a", digest=b"another")
    assert tally.take(aborts) == 0
