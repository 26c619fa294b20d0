"""A broker that speaks TLS only and asks for a password and for rights: what the writer needs, what it says without."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from service.kafka.admin import Cluster
from service.kafka.errors import KafkaConfigError
from service.kafka.security import security_of
from service.machine import find_java
from tests.kafka.conftest import MARKERS, Query

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
RIGHTS = {
    (ResourceType.TRANSACTIONAL_ID, "tailrace-"): (AclOperation.WRITE, AclOperation.DESCRIBE),
    (ResourceType.TOPIC, "out-"): (AclOperation.WRITE, AclOperation.DESCRIBE),
    (ResourceType.TOPIC, MARKERS): (AclOperation.WRITE, AclOperation.READ, AclOperation.DESCRIBE),
}
"""All that a writer needs. The consumer group of the marker reader is a name only."""


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A key store for the broker, and the certificate that its clients trust."""
    store, trusted = tmp_path / "broker.p12", tmp_path / "ca.pem"
    held = ["-keystore", str(store), "-storepass", "changeit", "-alias", "broker"]
    name = ["-dname", "CN=localhost", "-ext", "san=ip:127.0.0.1"]
    _keytool("-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-storetype", "PKCS12", *held, *name)
    _keytool("-exportcert", "-rfc", "-file", str(trusted), *held)
    return store, trusted


def _keytool(*arguments: str) -> None:
    subprocess.run([str(Path(find_java()).resolve().parent / "keytool"), *arguments], check=True, capture_output=True)


@pytest.fixture
def broker(own_kafka, certificate: tuple[Path, Path]):
    return own_kafka(
        security="SASL_SSL",
        properties={
            "listener.name.client.ssl.keystore.type": "PKCS12",
            "listener.name.client.ssl.keystore.location": str(certificate[0]),
            "listener.name.client.ssl.keystore.password": "changeit",
            "listener.name.client.sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.client.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        },
        format_arguments=["--add-scram", "SCRAM-SHA-256=[name=ann,password=secret]"],
    )


def test_password_and_rights_are_needed_and_enough(broker, certificate, make_query):
    query: Query = make_query(broker.internal_bootstrap, patience_ms=20_000)

    def log_in(password: str) -> dict[str, str]:
        login = f'{SCRAM} required username="ann" password="{password}";'
        mechanism = {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": login}
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(certificate[1])}
        security, _ = security_of({"security.protocol": "SASL_SSL"} | mechanism | trust)
        return {"bootstrap.servers": broker.bootstrap} | security.for_librdkafka()

    with pytest.raises(KafkaConfigError, match="cannot be reached") as refused:
        Cluster(log_in("gu3ss"), seconds=20).reachable()
    assert "gu3ss" not in str(refused.value)
    query.kafka = log_in("gu3ss")
    with pytest.raises(KafkaConfigError) as refused:
        query.write(0, "a")
    assert "password" in (refused.value.hint or "")

    query.kafka = log_in("secret")
    with pytest.raises(KafkaConfigError) as refused:
        query.write(0, "a")
    assert "grant" in (refused.value.hint or "")

    everyone = AdminClient({"bootstrap.servers": broker.internal_bootstrap})
    rights = [
        AclBinding(kind, name, ResourcePatternType.PREFIXED, "User:ann", "*", operation, AclPermissionType.ALLOW)
        for (kind, name), operations in RIGHTS.items()
        for operation in operations
    ]
    for granted in everyone.create_acls(rights).values():
        granted.result(30)
    assert query.write(0, "a").outcome == "committed"
    query.kill_writer()
    assert query.write(0, "a").outcome == "replayed"
    assert query.committed() == ["a"]
