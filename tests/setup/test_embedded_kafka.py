"""The local broker: what survives which end, and that nothing survives ours."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from service.archives import ensure, load
from service.host.machine import MachineError
from service.kafka.local_broker.broker import EmbeddedKafka
from service.kafka.local_broker.formatted_folder import copy_whole, formatted_folder
from service.kafka.local_broker.jvm_options import broker_classes
from tests.brokers import Broker, MakeTopic
from tests.logins import asks_for_password, users

pytestmark = pytest.mark.e2e

OWNER = """
import signal, time
from service.kafka.local_broker.broker import EmbeddedKafka
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has those that it runs in the background ignore it
with EmbeddedKafka() as kafka:
    print(kafka.pid, kafka.folder, flush=True)
    time.sleep(600)
"""


def write(bootstrap: str, topic: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "transactional.id": f"writer-{topic}"})
    producer.init_transactions(60)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    producer.commit_transaction(60)


def read(bootstrap: str, topic: str, count: int) -> list[str]:
    settings = {"bootstrap.servers": bootstrap, "log_level": 0, "group.id": f"reader-{topic}"}
    consumer = Consumer(settings | {"auto.offset.reset": "earliest", "isolation.level": "read_committed"})
    consumer.subscribe([topic])
    try:
        return sorted((message.value() or b"").decode() for message in consumer.consume(count, timeout=60))
    finally:
        consumer.close()


def runs(pid: int) -> bool:
    """Whether the process still does anything: one that only waits for its exit code to be fetched does not."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except FileNotFoundError:
        return False


def soon_gone(pid: int, folder: Path) -> bool:
    deadline = time.monotonic() + 60
    while (runs(pid) or folder.exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not runs(pid) and not folder.exists()


def test_a_transaction_is_read_back(kafka: Broker, make_topic: MakeTopic):
    topic = make_topic()
    write(kafka.bootstrap, topic, "a", "b")
    assert read(kafka.bootstrap, topic, 2) == ["a", "b"]


def test_rows_survive_kill_and_restart(own_kafka: Callable[..., EmbeddedKafka]):
    broker = own_kafka(properties={"auto.create.topics.enable": "true"})
    jars = ensure(load("kafka"))
    archive = broker_classes(jars)
    assert archive.exists(), "the setup makes an archive of the broker's classes"
    assert str(archive) in Path(f"/proc/{broker.pid}/maps").read_text()
    ids = [folder / "meta.properties" for folder in (broker.folder / "data", formatted_folder(jars))]
    assert ids[0].read_text() == ids[1].read_text(), "the folder that Kafka's tool has formatted once is copied"
    write(broker.bootstrap, "kept", "before")
    address = broker.bootstrap
    broker.kill()
    broker.start()
    write(broker.bootstrap, "kept", "after kill")
    broker.restart()
    assert broker.bootstrap == address
    assert read(broker.bootstrap, "kept", 2) == ["after kill", "before"]


def test_a_given_folder_is_kept_and_used_again(tmp_path: Path):
    with EmbeddedKafka(folder=tmp_path / "data", properties={"auto.create.topics.enable": "true"}) as broker:
        write(broker.bootstrap, "kept", "row")
    with EmbeddedKafka(folder=tmp_path / "data") as broker:
        assert read(broker.bootstrap, "kept", 1) == ["row"]


def test_a_folder_is_copied_whole_or_not_at_all(tmp_path: Path):
    formatted, kept = tmp_path / "formatted", tmp_path / "kept"
    formatted.mkdir()
    (formatted / "meta.properties").write_text("node.id=1")
    copy_whole(formatted, kept)
    (formatted / "meta.properties").write_text("node.id=2")
    with pytest.raises(OSError, match="not empty"):
        copy_whole(formatted, kept)
    assert (kept / "meta.properties").read_text() == "node.id=1"
    assert sorted(tmp_path.iterdir()) == [formatted, kept], "what was copied in part is removed"


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_the_owner_ends(end: signal.Signals):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    with owner:
        assert owner.stdout is not None
        pid, folder = owner.stdout.readline().split()
        assert runs(int(pid))
        owner.send_signal(end)
        assert soon_gone(int(pid), Path(folder))


def test_a_taken_port_is_reported_before_anything_starts():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(MachineError, match=f"^port {port} is taken; "):
            EmbeddedKafka(port=port).start()


def test_a_broker_that_cannot_start_says_why_in_one_line():
    with pytest.raises(MachineError) as caught:
        EmbeddedKafka(properties={"num.io.threads": "none"}).start()
    assert "num.io.threads" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_broker_that_ended_by_itself_is_noticed(own_kafka: Callable[..., EmbeddedKafka]):
    broker = own_kafka()
    broker.check()
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGKILL)
    while broker.pid is not None:
        time.sleep(0.05)
    with pytest.raises(MachineError, match="the local Kafka broker ended"):
        broker.check()


def test_clients_may_be_asked_for_a_password(own_kafka: Callable[..., EmbeddedKafka]):
    mechanism = "SCRAM-SHA-256"
    broker = own_kafka(
        security="SASL_PLAINTEXT",
        properties=asks_for_password(mechanism),
        format_arguments=users(mechanism, {"ann": "secret"}),
    )

    def client(password: str) -> AdminClient:
        ann = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.username": "ann"}
        return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0, "sasl.password": password, **ann})

    assert client("secret").list_topics(timeout=30).brokers
    with pytest.raises(KafkaException):
        client("guess").list_topics(timeout=3)
    assert AdminClient({"bootstrap.servers": broker.internal_bootstrap}).list_topics(timeout=30).brokers
