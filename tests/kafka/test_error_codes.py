"""What is behind an error of librdkafka: something to wait for, or something for a person to mend."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError as Code

from service.kafka.error_codes import failure
from service.kafka.errors import KafkaConfigError, KafkaFailure, KafkaUnreachable, MessageTooLarge

ALERT = "sasl_ssl://kafka:9093/bootstrap: Receive failed: error:{}:SSL routines::{} (after 0ms in state UP)"


@pytest.mark.parametrize(
    ("code", "text", "kind", "hint"),
    [
        (Code._TRANSPORT, "Connect to ipv4#10.0.0.1:9092 failed: Connection refused", KafkaUnreachable, "wait"),
        (Code._TRANSPORT, "Disconnected: connection closed by peer", KafkaUnreachable, "wait"),
        (
            Code._TRANSPORT,
            ALERT.format("0A000412", "ssl/tls alert bad certificate"),
            KafkaConfigError,
            "check the certificates",
        ),
        (
            Code._TRANSPORT,
            ALERT.format("0A00045C", "tlsv13 alert certificate required"),
            KafkaConfigError,
            "check the certificates",
        ),
        (
            Code._TRANSPORT,
            ALERT.format("0A000415", "sslv3 alert certificate expired"),
            KafkaConfigError,
            "check the certificates",
        ),
        (
            Code._TRANSPORT,
            ALERT.format("0A000418", "tlsv1 alert unknown ca"),
            KafkaConfigError,
            "check the certificates",
        ),
        (Code._TRANSPORT, ALERT.format("0A000126", "unexpected eof while reading"), KafkaUnreachable, "wait"),
        (Code._SSL, "SSL handshake failed: certificate verify failed", KafkaConfigError, "check the certificates"),
        (Code._AUTHENTICATION, "Authentication failed", KafkaConfigError, "check the user, the password"),
        (Code.MSG_SIZE_TOO_LARGE, "", MessageTooLarge, "'properties.max.request.size'"),
    ],
)
def test_who_has_to_do_something_is_distinguished(code: int, text: str, kind: type[KafkaFailure], hint: str):
    error = failure(code, text, "Kafka cannot be reached")
    assert type(error) is kind
    assert hint in (error.hint or "")
    assert text in (error.detail or "")
