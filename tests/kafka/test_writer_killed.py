"""The writer process dies (kill -9) at any moment: every batch still appears exactly once."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import threading
import time
from contextlib import suppress
from typing import Any

import pytest

from service.kafka.errors import TransactionLost
from service.kafka.writer.wire import PeerGone
from tests.kafka.conftest import Query
from tests.spark.topics import messages

KILLS = 12


def test_a_kill_between_rows_and_commit_loses_the_attempt_and_doubles_nothing(query: Query):
    query.write(0, "a")
    with query.attempt(1) as attempt:
        attempt.begin()
        attempt.send(query.rows("b"))
        query.kill_writer()
        with pytest.raises(TransactionLost):
            attempt.commit()
    assert query.write(1, "b").outcome == "committed"
    assert query.committed() == ["a", "b"]


def test_a_kill_after_the_commit_is_found_out(query: Query, monkeypatch: pytest.MonkeyPatch):
    """The answer of a commit is lost with the process that knew it; the next process reads the marker."""
    with query.attempt(0) as attempt:
        attempt.begin()
        attempt.send(query.rows("a"))
        hear = attempt._hear

        def lost(connection: socket.socket) -> dict[str, Any]:
            monkeypatch.setattr(attempt, "_hear", hear)
            hear(connection)  # the writer answers when the batch is committed
            query.kill_writer()
            raise PeerGone("killed before its answer was read")

        monkeypatch.setattr(attempt, "_hear", lost)
        assert attempt.commit().outcome == "settled"
    assert query.write(0, "a").outcome == "replayed"
    assert query.committed() == ["a"]


def test_a_replay_after_a_kill_writes_nothing(query: Query):
    query.write(0, "a")
    query.kill_writer()
    assert query.write(0, "a").outcome == "replayed"
    assert query.committed() == ["a"]


def test_kills_at_random_moments_lose_and_double_nothing(query: Query):
    rng = random.Random(20_240_611)
    expected = []
    for batch in range(KILLS):
        values = [f"{batch}-{row}" for row in range(200)]
        expected += values
        writer = query.writer_pid()
        killer = threading.Timer(rng.uniform(0, 0.06), _kill, [writer])
        killer.start()
        query.insist(batch, *values)
        killer.join()
    assert sorted(query.committed()) == sorted(expected)
    assert len(messages(query.bootstrap, query.topic, "read_uncommitted")) >= len(expected)


def test_the_writer_ends_when_its_parent_has_gone(query: Query):
    query.write(0, "a")
    writer = query.writer_pid()
    query.parent.send_signal(signal.SIGKILL)
    assert _ends(writer, 60)


def test_the_writer_ends_when_nobody_needs_it(kafka, make_query):
    query = make_query(kafka.bootstrap, idle_seconds=1)
    writer = query.writer_pid()  # asked before, since this would start another one
    query.write(0, "a")
    assert _ends(writer, 60)


def test_a_writer_that_hangs_is_replaced(query: Query, monkeypatch):
    monkeypatch.setattr("service.kafka.writer.launch._ANSWER_SECONDS", 2.0)
    writer = query.writer_pid()
    os.kill(writer, signal.SIGSTOP)
    assert query.write(0, "a").outcome == "committed"
    assert query.writer_pid() != writer


def test_tasks_that_start_together_share_one_writer(query: Query):
    outcomes: list[str] = []
    tasks = [
        threading.Thread(target=lambda p=partition: outcomes.append(query.write(0, f"p{p}", partition=p).outcome))
        for partition in range(4)
    ]
    for task in tasks:
        task.start()
    for task in tasks:
        task.join()
    assert outcomes == ["committed"] * 4
    assert sorted(query.committed()) == ["p0", "p1", "p2", "p3"]
    listed = subprocess.run(["pgrep", "-f", query.settings().socket_name()], capture_output=True, text=True)
    assert len(listed.stdout.split()) == 1


def test_secrets_are_not_among_the_arguments_of_the_process(query: Query):
    query.write(0, "a")
    with open(f"/proc/{query.writer_pid()}/cmdline") as arguments:
        assert query.bootstrap not in arguments.read()


def _kill(writer: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(writer, signal.SIGKILL)


def _ends(process: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False
