"""Processes that were stopped in the middle of a transaction and wake up after another driver has taken over."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from functools import partial

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess, alive, signal_to
from tests.spark.topics import feed, read

COMMITTED, WRITTEN = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED

ROWS = 30_000
"""Enough for a transaction that stays open for a moment."""

PIPELINE = """
    SET 'pipeline.name' = 'counts';
    CREATE TABLE t (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json',
      'scan.startup.mode' = 'earliest-offset');
    CREATE TABLE counts (id BIGINT, n BIGINT, PRIMARY KEY (id) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{counts}', 'key.format' = 'json', 'value.format' = 'json');
    INSERT INTO counts SELECT id, COUNT(*) FROM t GROUP BY id;
"""


def test_a_writer_and_workers_that_wake_up_after_their_partitions_were_taken_over_write_nothing(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source, counts = make_topic("source"), make_topic("counts")
    running = service(PIPELINE.format(source=source, counts=counts), kafka.bootstrap, own_jvm=True)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    running.start()
    fed = 0
    stopped: list[int] = []
    while not stopped:
        # Asked before the rows are there: the service may have committed all of them when they are.
        missed = sum(ends(admin, counts, COMMITTED).values()) + ROWS
        feed(kafka.bootstrap, source, ((i % 2, {"id": i}) for i in range(fed, fed + ROWS)))
        fed += ROWS
        running.until("a transaction is open", partial(open_or_past, admin, counts, missed), look_every=0.01)
        found = running.processes()
        stopped = found["writer"] + found["worker"]
        send(stopped, signal.SIGSTOP)
        if not is_open(admin, counts):  # it was committed in that moment: try again with more rows
            send(stopped, signal.SIGCONT)
            stopped = []
    assert found["writer"]
    assert found["worker"]

    send([*found["driver"], *found["jvm"]], signal.SIGKILL)
    running.wait()
    running.start()
    running.until("the new driver has done what the old one began", lambda: len_of(kafka, counts) == fed)
    before = ends(admin, counts, WRITTEN)

    send(stopped, signal.SIGCONT)
    running.until("what has woken up is gone", lambda: not any(alive(pid) for pid in stopped))
    assert ends(admin, counts, WRITTEN) == before
    rows = [json.loads(value or b"") for _, value in read(kafka.bootstrap, counts)]
    assert sorted(r["id"] for r in rows) == list(range(fed))
    assert {r["n"] for r in rows} == {1}
    running.terminate()
    assert running.wait() == 0


def send(pids: list[int], number: signal.Signals) -> None:
    """A signal to all of these processes."""
    for pid in pids:
        signal_to(pid, number)


def is_open(admin: AdminClient, topic: str) -> bool:
    """Whether a transaction has written to the topic and is not decided."""
    stable, written = (ends(admin, topic, level) for level in (COMMITTED, WRITTEN))
    return any(stable[p] < written[p] for p in written)


def open_or_past(admin: AdminClient, topic: str, end: int) -> bool:
    """Whether a transaction is open, or that many records are committed: none was seen open."""
    return is_open(admin, topic) or sum(ends(admin, topic, COMMITTED).values()) >= end


def ends(admin: AdminClient, topic: str, level: IsolationLevel) -> dict[int, int]:
    """The end of each partition of a topic of two, as readers of that level see it."""
    places = [TopicPartition(topic, p) for p in (0, 1)]
    latest = OffsetSpec.latest()
    while True:
        asked = admin.list_offsets(dict.fromkeys(places, latest), isolation_level=level)
        try:
            return {place.partition: asked[place].result(30).offset for place in places}
        except KafkaException as error:  # a topic that was just made
            if error.args[0].code() not in (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError._NOENT):
                raise


def len_of(kafka: Broker, topic: str) -> int:
    """How many committed records a topic has."""
    return len(read(kafka.bootstrap, topic))
