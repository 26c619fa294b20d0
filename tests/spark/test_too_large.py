"""A row that its topic does not take is a dead letter that names its sizes, and the job goes on; also where the topic
takes less than it did when the job started, and where the service may not ask how much that is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from random import Random

import pytest
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic, ResourceType

from service.host.machine import free_ports
from service.kafka.local_broker.broker import EmbeddedKafka
from tests.brokers import Broker, MakeTopic
from tests.logins import AUTHORIZED, Rights, asks_for_password, grant, users
from tests.spark.service_process import ServiceProcess
from tests.spark.topics import feed, limit_records, messages, read

PIPELINE = """
    SET 'pipeline.name' = 'notes';
    CREATE TABLE notes (id BIGINT, note STRING) WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json',
      'scan.startup.mode' = 'earliest-offset');
    CREATE TABLE kept (id BIGINT, note STRING) WITH ('connector' = 'kafka', 'topic' = '{sink}', 'format' = 'json',
      'properties.max.request.size' = '3000000');
    INSERT INTO kept SELECT id, note FROM notes;
"""
TAKEN, LOWERED = 500_000, 100_000
FITS = Random(1).randbytes(150_000).hex()
"""Shorter than what the topic takes at first, and longer than what it takes later."""

LONG = Random(2).randbytes(600_000).hex()
COUNT = 700
SHORT = [(0, {"id": i, "note": Random(i).randbytes(500).hex()}) for i in range(1, COUNT)]
"""Rows that together are more than a batch of records that the topic takes, also compressed."""


def test_a_row_that_its_topic_does_not_take_is_a_dead_letter(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess]
) -> None:
    source = make_topic("notes", partitions=1, max_message_bytes="3000000")
    sink = make_topic("kept", partitions=1, max_message_bytes=str(TAKEN))
    dead = make_topic("dead", partitions=1, max_message_bytes="3000000")
    feed(kafka.bootstrap, source, [(0, {"id": 0, "note": LONG}), *SHORT], largest=3_000_000)
    port = str(free_ports(1)[0])
    running = service(PIPELINE.format(source=source, sink=sink), kafka.bootstrap, HTTP__PORT=port)
    running.start(TOPICS__DEAD_LETTER=dead)

    def ids(topic: str) -> list[int]:
        return [json.loads(value or b"")["id"] for _, value in read(kafka.bootstrap, topic)]

    running.until("the rows that fit are there", lambda: len(ids(sink)) == len(SHORT))
    running.until("the one that does not is a dead letter", lambda: ids(dead) == [0])
    assert not errors_of(running, "batch failed")

    # What fits is known since the start: the broker refuses, the next start asks again.
    limit_records(kafka.bootstrap, sink, LOWERED)
    feed(kafka.bootstrap, source, [(0, {"id": 500, "note": FITS}), (0, {"id": 501, "note": "x"})])
    running.until("the row that fits is there", lambda: ids(sink)[-1] == 501)
    running.until("the one that does not is a dead letter", lambda: ids(dead) == [0, 500])
    [error] = errors_of(running, "batch failed")
    assert f"topic {sink} refused the records" in error
    assert "raise max.message.bytes of the topic" in error
    assert ids(sink) == [*range(1, COUNT), 501]
    letters = [json.loads(value or b"")["note"] for _, value in read(kafka.bootstrap, dead)]
    assert letters == [LONG, FITS], "they hold the rows whole"
    running.until("what was rolled back is counted", lambda: aborted(running) == 1)
    running.terminate()
    assert running.wait() == 0


MECHANISM = "SCRAM-SHA-256"
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
RIGHTS: Rights = (
    (ResourceType.TOPIC, "notes", (READ, DESCRIBE)),
    (ResourceType.TOPIC, "kept", (WRITE, DESCRIBE)),
    (ResourceType.TOPIC, "dead", (WRITE, DESCRIBE)),
    (ResourceType.TOPIC, "tailrace.markers", (READ, WRITE, DESCRIBE, AclOperation.DESCRIBE_CONFIGS)),
    (ResourceType.GROUP, "tailrace-", (READ, DESCRIBE)),
    (ResourceType.TRANSACTIONAL_ID, "tailrace-", (WRITE, DESCRIBE)),
    (ResourceType.BROKER, "kafka-cluster", (AclOperation.CREATE,)),
)
"""Those of who may not ask what the topics take that are written."""

CUT = 300_000
"""What the topic of dead letters takes: less than the row that is too large."""


@pytest.fixture
def guarded() -> Iterator[EmbeddedKafka]:
    """A broker with rights and the three topics; the user ann has RIGHTS."""
    broker = EmbeddedKafka(
        security="SASL_PLAINTEXT",
        properties={**asks_for_password(MECHANISM), **AUTHORIZED},
        format_arguments=users(MECHANISM, {"ann": "secret"}),
    )
    with broker:
        admin = AdminClient({"bootstrap.servers": broker.internal_bootstrap})
        limits = {"notes": 3_000_000, "kept": TAKEN, "dead": CUT}
        made = [NewTopic(name, 1, 1, config={"max.message.bytes": str(most)}) for name, most in limits.items()]
        for each in admin.create_topics(made).values():
            each.result(30)
        grant(admin, "ann", RIGHTS)
        yield broker


def test_what_a_topic_takes_is_learned_from_its_refusals_where_nobody_may_ask(
    guarded: EmbeddedKafka, service: Callable[..., ServiceProcess]
) -> None:
    inside = guarded.internal_bootstrap
    feed(inside, "notes", [(0, {"id": 0, "note": LONG}), *SHORT], largest=3_000_000)
    login = {"KAFKA__SASL__MECHANISM": MECHANISM, "KAFKA__SASL__USERNAME": "ann", "KAFKA__SASL__PASSWORD": "secret"}
    text = PIPELINE.format(source="notes", sink="kept")
    running = service(text, guarded.bootstrap, TOPICS__DEAD_LETTER="dead", RETRY__ATTEMPTS="0", **login)

    def ids() -> list[int]:
        return [json.loads(value or b"")["id"] for _, value in read(inside, "kept")]

    def letters() -> list[str]:
        """What each dead letter says of the row: its id, or how it was cut."""
        headers = [dict(message.headers() or ()) for message in messages(inside, "dead")]
        return [(each["tailrace-reason"] + b", " + each["tailrace-cut"]).decode() for each in headers]

    running.start()
    running.until("the rows that fit are there", lambda: len(ids()) == len(SHORT))
    assert ids() == list(range(1, COUNT))
    running.until("the one that does not is a dead letter", lambda: len(letters()) == 1)
    [cut] = letters()
    assert re.fullmatch(r"not-encodable, \d+ of 12000\d\d bytes", cut)
    assert {
        each["topic"] for each in running.events() if each["event"] == "the record limit of a topic is learned"
    } == {
        "kept",
        "dead",
    }

    # What was learned holds for the process. The next one forgets it, as the topic may take more by then.
    failures = len(errors_of(running, "batch failed"))
    feed(inside, "notes", [(0, {"id": 500, "note": LONG}), (0, {"id": 501, "note": "x"})], largest=3_000_000)
    running.until("the row that fits is there", lambda: ids()[-1] == 501)
    assert len(errors_of(running, "batch failed")) == failures
    running.kill_driver()
    feed(inside, "notes", [(0, {"id": 502, "note": LONG}), (0, {"id": 503, "note": "x"})], largest=3_000_000)
    running.start()
    running.until("the row that fits is there", lambda: ids()[-1] == 503)
    assert ids() == [*range(1, COUNT), 501, 503]
    running.until("each that does not is a dead letter", lambda: len(letters()) >= 3)
    running.terminate()
    assert running.wait() == 0
    assert len(letters()) == 3


def errors_of(running: ServiceProcess, event: str) -> list[str]:
    """The errors of such events."""
    return [str(each["error"]) for each in running.events() if each["event"] == event]


def aborted(running: ServiceProcess) -> float:
    """Transactions that were rolled back, as the metrics count them."""
    sample = re.search(
        r'tailrace_transactions_total\{outcome="aborted",query="notes"\} (\S+)', running.ask("/metrics")[1]
    )
    return float(sample[1]) if sample else 0.0
