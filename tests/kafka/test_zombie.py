"""A writer that was stopped (SIGSTOP), whose partition another one took over, and that goes on (SIGCONT)."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from service.kafka.errors import Fenced, KafkaFailure
from tests.kafka.conftest import Query


@pytest.mark.parametrize("stopped", ["before the commit", "during the commit"])
def test_a_zombie_writes_nothing_more_and_says_why(query: Query, stopped: str):
    query.write(0, "a")
    failures: list[KafkaFailure | None] = []
    with query.attempt(1) as zombie:
        zombie.begin()
        zombie.send(query.rows("zombie"))
        writer = query.writer_pid()
        commit = threading.Thread(target=lambda: failures.append(_failure(zombie)))
        if stopped == "before the commit":
            os.kill(writer, signal.SIGSTOP)
            commit.start()
        else:
            commit.start()
            os.kill(writer, signal.SIGSTOP)
        heir = query.write(1, "heir", host="b")
        query.write(2, "c", host="b")
        os.kill(writer, signal.SIGCONT)
        commit.join()
    if heir.outcome == "committed":
        assert query.committed() == ["a", "heir", "c"]
        assert isinstance(failures[0], Fenced)
        assert "taken over" in failures[0].primary
    else:
        assert query.committed() == ["a", "zombie", "c"]
    with pytest.raises(KafkaFailure):
        query.write(1, "again", host="a", digest=b"other")
    assert len(query.committed()) == 3


def _failure(zombie) -> KafkaFailure | None:
    try:
        zombie.commit()
    except KafkaFailure as failure:
        return failure
    return None
