"""What we rely on of what librdkafka prints of OpenSSL's errors: after an upgrade these tests fail first."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from service.kafka.error_codes import Troubles
from service.kafka.errors import KafkaConfigError
from service.kafka.tls_alerts import OF_A_CERTIFICATE, alert_in
from tests.kubernetes.cluster.certificates import Authority, Certificate

UNKNOWN_CA = 48
CERTIFICATE_REQUIRED = 116


@contextmanager
def broker(trusted: Path, own: Certificate, version: ssl.TLSVersion) -> Iterator[str]:
    """The address of a server that asks every client for a certificate of `trusted`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.certificate, own.key)
    context.load_verify_locations(trusted)
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = context.maximum_version = version

    def serve() -> None:
        with suppress(OSError):  # of the server, when the test has ended
            while True:
                client, _ = server.accept()
                with suppress(OSError), context.wrap_socket(client, server_side=True) as connection:
                    connection.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    ("version", "own", "alert"),
    [
        (ssl.TLSVersion.TLSv1_2, True, UNKNOWN_CA),
        (ssl.TLSVersion.TLSv1_3, True, UNKNOWN_CA),
        (ssl.TLSVersion.TLSv1_3, False, CERTIFICATE_REQUIRED),
    ],
)
def test_the_alert_of_a_broker_that_does_not_take_our_certificate_has_its_number(
    tmp_path: Path, version: ssl.TLSVersion, own: bool, alert: int
):
    trusted = Authority(tmp_path / "trusted")
    stranger = Authority(tmp_path / "stranger").issue("me", user="me")
    mine = {"ssl.certificate.location": str(stranger.certificate), "ssl.key.location": str(stranger.key)} if own else {}
    errors: list[KafkaError] = []
    troubles = Troubles()

    def note(error: KafkaError) -> None:
        errors.append(error)
        troubles(error)

    with broker(trusted.file, trusted.issue("broker", user="broker", hosts=["127.0.0.1"]), version) as address:
        reach = {"bootstrap.servers": address, "security.protocol": "ssl", "ssl.ca.location": str(trusted.file)}
        client = AdminClient(reach | mine | {"log_level": "0", "error_cb": note})  # type: ignore[arg-type]
        until = time.monotonic() + 60
        while not errors:
            assert time.monotonic() < until, "no error"
            client.poll(0.1)
    assert alert_in(errors[0].str()) == alert
    assert alert in OF_A_CERTIFICATE
    assert isinstance(troubles.explain(TimeoutError(), "Kafka cannot be reached"), KafkaConfigError)


@pytest.mark.parametrize(
    "text",
    [
        "Disconnected: connection closed by peer",
        "Receive failed: error:0A000126:SSL routines::unexpected eof while reading",
        "Receive failed: error:80000068:system library::Connection reset by peer",
    ],
)
def test_what_is_no_alert_has_no_number(text: str):
    assert alert_in(text) is None
