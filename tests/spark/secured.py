"""A broker that takes nobody without a certificate of its authority, a password and rights; and secrets to look for."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from service.kafka.local_broker.broker import EmbeddedKafka
from tests.kubernetes.cluster.certificates import Authority
from tests.logins import AUTHORIZED, LISTENER, MODULE, Rights, asks_for_password, grant, users

MECHANISM = "SCRAM-SHA-512"
PATIENCE = 120.0
"""Seconds that a broker may take for an answer where the machine is busy."""
TOPIC, CLUSTER = ResourceType.TOPIC, ResourceType.BROKER
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE

MARKERS = (TOPIC, "tailrace.markers", (READ, WRITE, DESCRIBE, AclOperation.DESCRIBE_CONFIGS))
IDS = (ResourceType.TRANSACTIONAL_ID, "tailrace-", (WRITE, DESCRIBE))
CREATE = (CLUSTER, "kafka-cluster", (AclOperation.CREATE,))
READER = (
    (TOPIC, "orders", (READ, DESCRIBE)),
    (TOPIC, "tailrace.dead-letter", (WRITE, DESCRIBE)),
    (ResourceType.GROUP, "tailrace-", (READ, DESCRIBE)),
    MARKERS,
    IDS,
    CREATE,
)
WRITER = ((TOPIC, "totals", (WRITE, DESCRIBE)), MARKERS, IDS, CREATE)
"""The rights of who reads, and of who writes, as the documentation lists them."""


class SecuredKafka:
    """A broker with SASL_SSL, SCRAM, client certificates and rights; `key_password` is that of the client's key."""

    def __init__(self, folder: Path, passwords: Mapping[str, str], key_password: str) -> None:
        authority = Authority(folder / "authority")
        server = authority.issue("broker", user="broker", hosts=["127.0.0.1"])
        client = authority.issue("client", user="tailrace")
        self.authority = authority.file
        self.certificate = client.certificate
        self.key = folder / "client.key"
        convert = ["openssl", "pkcs8", "-topk8", "-v1", "PBE-SHA1-3DES", "-in", str(client.key)]
        subprocess.run([*convert, "-out", str(self.key), "-passout", f"pass:{key_password}"], check=True)
        self.whole = folder / "client.pem"
        self.whole.write_text(self.key.read_text() + self.certificate.read_text())
        held = folder / "broker.pem"
        held.write_text(server.key.read_text() + server.certificate.read_text())
        self.kafka = EmbeddedKafka(
            security="SASL_SSL",
            properties={
                LISTENER + "ssl.keystore.type": "PEM",
                LISTENER + "ssl.keystore.location": str(held),
                LISTENER + "ssl.truststore.type": "PEM",
                LISTENER + "ssl.truststore.location": str(authority.file),
                LISTENER + "ssl.client.auth": "required",
                **asks_for_password(MECHANISM),
                **AUTHORIZED,
            },
            format_arguments=users(MECHANISM, passwords),
        )

    @cached_property
    def admin(self) -> AdminClient:
        """Somebody who may do everything."""
        return AdminClient({"bootstrap.servers": self.kafka.internal_bootstrap})

    def grant(self, user: str, rights: Rights) -> None:
        """Give rights to a user."""
        grant(self.admin, user, rights)

    def change_password(self, user: str, password: str) -> None:
        """From now on the user logs in with another password."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        upsertion = UserScramCredentialUpsertion(user, info, password.encode())
        changed = self.admin.alter_user_scram_credentials([upsertion], request_timeout=PATIENCE)
        changed[user].result(PATIENCE)

    def topics(self) -> Collection[str]:
        """The topics that there are."""
        return self.admin.list_topics(timeout=PATIENCE).topics

    def settings(self, user: str) -> dict[str, str]:
        """The settings of a service that logs in as `user`, but for the passwords."""
        return {
            "KAFKA__SASL__MECHANISM": MECHANISM,
            "KAFKA__SASL__USERNAME": user,
            "KAFKA__TLS__ENABLED": "true",
            "KAFKA__TLS__CA_FILE": str(self.authority),
            "KAFKA__TLS__CERTIFICATE_FILE": str(self.certificate),
            "KAFKA__TLS__KEY_FILE": str(self.key),
        }

    def options(self, user: str, password: str, key_password: str) -> str:
        """The same as WITH options of a table."""
        given = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": f'{MODULE} required username="{user}" password="{password}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.whole),
            "ssl.key.password": key_password,
        }
        return ", ".join(f"'properties.{name}' = '{value}'" for name, value in given.items())


def forms(secret: str) -> set[bytes]:
    """The secret as it may stand in a text or a file: as it is, in JSON, in a URL, and anywhere inside of base64."""
    raw = secret.encode()
    texts = {secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret, safe="")}
    inside = {base64.b64encode(b"\0" * shift + raw)[4 if shift else 0 : -4] for shift in range(3)}
    return {text.encode() for text in texts} | inside


def leaks(name: str, content: bytes, secrets: Iterable[str]) -> list[str]:
    """Which of the secrets are in `content`, which is found at `name`."""
    return [f"{name} has {secret}" for secret in secrets if any(form in content for form in forms(secret))]


def files_below(folder: Path) -> Iterator[Path]:
    """Every file below a folder; files and folders may come and go meanwhile."""
    for place, _, names in os.walk(folder):
        yield from (Path(place, name) for name in names)


def leaks_below(folder: Path, secrets: Sequence[str], but: Iterable[Path] = ()) -> list[str]:
    """Which of the secrets are in a file below a folder; files may come and go meanwhile."""
    planted = set(but)
    found: list[str] = []
    for path in files_below(folder):
        if path in planted:
            continue
        try:
            if path.is_file():
                found += leaks(str(path), path.read_bytes(), secrets)
        except OSError:
            continue
    return found
