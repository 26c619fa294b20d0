"""A job that is killed in the same large batch again and again: what it leaves does not fill the checkpoint."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from random import Random

import pytest

from service.checkpoint.blocks import FOLDER
from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess, descendants, signal_to
from tests.spark.topics import feed, read, upserted

pytestmark = pytest.mark.chaos

KEYS, WIDTH = 20_000, 1_200
"""Rows of one batch, and letters of each: a shard's blocks are larger than those that wait for the end of the task."""

KILLS = 3

QUERY = """
    SET 'pipeline.name' = 'lengths';
    CREATE TABLE notes (id BIGINT, note STRING) WITH ('connector' = 'kafka', 'topic' = '{notes}', 'format' = 'json',
      'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');
    CREATE TABLE lengths (size BIGINT, n BIGINT, last BIGINT, PRIMARY KEY (size) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = '{lengths}', 'key.format' = 'json', 'value.format' = 'json');
    INSERT INTO lengths SELECT size, COUNT(*), MAX(id) FROM (
        SELECT id, CHAR_LENGTH(LAST_VALUE(note)) AS size FROM notes GROUP BY id)
      GROUP BY size;
"""


def large(running: ServiceProcess) -> set[str]:
    """The files of large blocks in the checkpoint; each has one of its own."""
    folder = running.folder / "checkpoint" / "lengths" / FOLDER
    return {path.name for path in folder.iterdir() if re.search(r"\.\d+$", path.name)} if folder.is_dir() else set()


def kill_everything(running: ServiceProcess) -> None:
    """kill -9 of all processes at once, as when a container has no memory left."""
    for pid in [running.driver, *descendants(running.driver)]:
        signal_to(pid, signal.SIGKILL)
    running.kill()


@pytest.mark.timeout(900)
def test_blocks_of_attempts_that_were_killed_are_gone_when_the_batch_is_done_again(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    notes, lengths = make_topic("notes"), make_topic("lengths", cleanup_policy="compact")
    chosen = Random(1)
    rows = ((i % 2, {"id": i, "note": chosen.randbytes(WIDTH // 2).hex()}) for i in range(KEYS))
    feed(kafka.bootstrap, notes, rows)
    running = service(
        QUERY.format(notes=notes, lengths=lengths), kafka.bootstrap, own_jvm=True, BATCH__BYTES=str(256 << 20)
    )
    left: set[str] = set()
    for _ in range(KILLS):
        running.start()
        running.until("large blocks are written", lambda: bool(large(running) - left))  # noqa: B023
        assert not large(running) & left, "what earlier attempts have left is gone before the batch is begun again"
        kill_everything(running)
        left = large(running)
        assert left
    running.start()
    assert running.wait() == 0, running.log[-3000:]
    assert not large(running) & left
    rows_out = list(upserted(read(kafka.bootstrap, lengths)).values())
    assert rows_out == [{"size": WIDTH, "n": KEYS, "last": KEYS - 1}]
