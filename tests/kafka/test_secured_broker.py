"""A broker that speaks TLS only and asks for a password and for rights: what the writer needs, what it says without."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, AdminClient, ResourceType

from service.host.machine import find_java
from service.kafka.admin import Cluster
from service.kafka.errors import KafkaConfigError
from service.kafka.local_broker.broker import EmbeddedKafka
from service.kafka.security import security_of
from tests.kafka.conftest import MARKERS, Query
from tests.logins import AUTHORIZED, LISTENER, MODULE, asks_for_password, grant, users

pytestmark = pytest.mark.e2e

MECHANISM = "SCRAM-SHA-256"
RIGHTS = (
    (ResourceType.TRANSACTIONAL_ID, "tailrace-", (AclOperation.WRITE, AclOperation.DESCRIBE)),
    (ResourceType.TOPIC, "out-", (AclOperation.WRITE, AclOperation.DESCRIBE)),
    (ResourceType.TOPIC, MARKERS, (AclOperation.WRITE, AclOperation.READ, AclOperation.DESCRIBE)),
)
"""All that a writer needs. The consumer group of the marker reader is a name only."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A key store for the broker, and the certificate that its clients trust."""
    folder = tmp_path_factory.mktemp("certificate")
    store, trusted = folder / "broker.p12", folder / "ca.pem"
    held = ["-keystore", str(store), "-storepass", "changeit", "-alias", "broker"]
    name = ["-dname", "CN=localhost", "-ext", "san=ip:127.0.0.1"]
    _keytool("-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-storetype", "PKCS12", *held, *name)
    _keytool("-exportcert", "-rfc", "-file", str(trusted), *held)
    return store, trusted


def _keytool(*arguments: str) -> None:
    subprocess.run([str(Path(find_java()).resolve().parent / "keytool"), *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def broker(certificate: tuple[Path, Path]) -> Iterator[EmbeddedKafka]:
    """Of all tests: the last one gives rights, which those before it do not get as far as to need."""
    with EmbeddedKafka(
        security="SASL_SSL",
        properties={
            LISTENER + "ssl.keystore.type": "PKCS12",
            LISTENER + "ssl.keystore.location": str(certificate[0]),
            LISTENER + "ssl.keystore.password": "changeit",
            **asks_for_password(MECHANISM),
            **AUTHORIZED,
        },
        format_arguments=users(MECHANISM, {"ann": "secret"}),
    ) as kafka:
        yield kafka


def login(broker, certificate: tuple[Path, Path], password: str) -> dict[str, str]:
    """What a client of librdkafka logs in with, as ann."""
    who = f'{MODULE} required username="ann" password="{password}";'
    mechanism = {"sasl.mechanism": MECHANISM, "sasl.jaas.config": who}
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(certificate[1])}
    security, _ = security_of({"security.protocol": "SASL_SSL"} | mechanism | trust)
    return {"bootstrap.servers": broker.bootstrap} | security.for_librdkafka()


ASKED: dict[str, Callable[[Cluster], object]] = {
    "ids of topics": lambda cluster: cluster.topic_ids(["out-1"]),
    "offsets of a group": lambda cluster: cluster.commit_group_offsets("g", {"out-1": {0: 1}}),
    "a cluster": lambda cluster: cluster.identifier(),
    "topics of a pattern": lambda cluster: cluster.matching(re.compile("out-.*")),
}
WHOLE_TIME_OUT = 120.0
"""Seconds. A refused login is told long before it."""


@pytest.mark.parametrize("asked", ASKED)
def test_a_password_that_is_wrong_is_no_time_out_whatever_is_asked_first(broker, certificate, asked: str):
    began = time.monotonic()
    with pytest.raises(KafkaConfigError) as refused:
        ASKED[asked](Cluster(login(broker, certificate, "gu3ss"), seconds=WHOLE_TIME_OUT))
    assert time.monotonic() - began < WHOLE_TIME_OUT
    assert "Authentication failed" in str(refused.value)
    assert "check the user, the password and the mechanism" in (refused.value.hint or "")


def test_password_and_rights_are_needed_and_enough(broker, certificate, make_query):
    query: Query = make_query(broker.internal_bootstrap, patience_ms=20_000)

    def log_in(password: str) -> dict[str, str]:
        return login(broker, certificate, password)

    with pytest.raises(KafkaConfigError, match="cannot be reached") as refused:
        Cluster(log_in("gu3ss"), seconds=10).identifier()
    assert "gu3ss" not in str(refused.value)
    query.kafka = log_in("gu3ss")
    with pytest.raises(KafkaConfigError) as refused:
        query.write(0, "a")
    assert "password" in (refused.value.hint or "")

    query.kafka = log_in("secret")
    with pytest.raises(KafkaConfigError) as refused:
        query.write(0, "a")
    assert "grant" in (refused.value.hint or "")

    grant(AdminClient({"bootstrap.servers": broker.internal_bootstrap}), "ann", RIGHTS)
    assert query.write(0, "a").outcome == "committed"
    query.kill_writer()
    assert query.write(0, "a").outcome == "replayed"
    assert query.committed() == ["a"]
