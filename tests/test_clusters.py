"""How a Kafka cluster is reached: what the table says, and what the settings say where it says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.deployment.clusters import address_of
from service.kafka.errors import KafkaConfigError
from service.settings import load

SASL = {"TAILRACE_KAFKA__SASL__USERNAME": "ann", "TAILRACE_KAFKA__SASL__PASSWORD": 'pass"word'}
BROKERS = {"TAILRACE_KAFKA__BOOTSTRAP_SERVERS": "settings:9092"}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_password_of_the_settings_reaches_both_clients(mechanism: str):
    kafka = load({**BROKERS, **SASL, "TAILRACE_KAFKA__SASL__MECHANISM": mechanism}).kafka
    address = address_of({}, kafka)
    assert address.librdkafka == {
        "bootstrap.servers": "settings:9092",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "ann",
        "sasl.password": 'pass"word',
    }
    assert 'username="ann" password="pass\\"word";' in address.java["sasl.jaas.config"]


def test_tokens_are_asked_for_where_the_settings_say():
    kafka = load(
        {
            **BROKERS,
            **SASL,
            "TAILRACE_KAFKA__SASL__MECHANISM": "OAUTHBEARER",
            "TAILRACE_KAFKA__SASL__TOKEN_URL": "https://login/token",
            "TAILRACE_KAFKA__SASL__SCOPE": "kafka",
        }
    ).kafka
    address = address_of({}, kafka)
    properties = {name.removeprefix("sasl.oauthbearer."): value for name, value in address.librdkafka.items()}
    assert properties["token.endpoint.url"] == "https://login/token"
    assert (properties["client.id"], properties["client.secret"], properties["scope"]) == ("ann", 'pass"word', "kafka")
    assert address.java["sasl.oauthbearer.token.endpoint.url"] == "https://login/token"
    assert 'clientId="ann" clientSecret="pass\\"word" scope="kafka";' in address.java["sasl.jaas.config"]


def test_a_table_with_security_of_its_own_takes_none_from_the_settings():
    kafka = load({**BROKERS, **SASL, "TAILRACE_KAFKA__SASL__MECHANISM": "PLAIN"}).kafka
    address = address_of({"bootstrap.servers": "table:9092", "security.protocol": "SSL"}, kafka)
    assert address.librdkafka["bootstrap.servers"] == "table:9092"
    assert address.librdkafka["security.protocol"] == "SSL"
    assert not any(name.startswith("sasl.") for name in {**address.librdkafka, **address.java})


def test_without_brokers_it_is_said_where_to_name_them():
    with pytest.raises(KafkaConfigError, match="no brokers are given") as refused:
        address_of({}, load({}).kafka)
    assert "TAILRACE_KAFKA__BOOTSTRAP_SERVERS" in str(refused.value)


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"CERTIFICATE_FILE": "a.pem"}, "there is only a certificate"),
        ({"KEY_FILE": "a.pem"}, "there is only a key"),
        ({"CERTIFICATE_FILE": "no.pem", "KEY_FILE": "no.pem"}, "no.pem cannot be read"),
        ({"CERTIFICATE_FILE": "a.der", "KEY_FILE": "a.der"}, "a.der is not a PEM file"),
    ],
)
def test_half_a_client_certificate_and_files_that_are_none_are_refused(
    files: dict[str, str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("a.pem").write_text("-----BEGIN")
    Path("a.der").write_bytes(b"\x30\x82\xff")
    own = {f"TAILRACE_KAFKA__TLS__{name}": file for name, file in files.items()}
    with pytest.raises(KafkaConfigError, match=sentence):
        address_of({}, load({**BROKERS, "TAILRACE_KAFKA__TLS__ENABLED": "true", **own}).kafka)


def test_the_writer_takes_what_a_table_says_of_the_size_and_the_compression_of_what_is_sent():
    given = {"max.request.size": "5000000", "batch.size": "16384", "compression.type": "zstd", "max.poll.records": "5"}
    address = address_of(given, load(BROKERS).kafka)
    asked = {"message.max.bytes": "5000000", "batch.size": "16384", "compression.type": "zstd"}
    assert {name: address.librdkafka.get(name) for name in asked} == asked
    assert "max.poll.records" not in address.librdkafka
    assert address.java["max.poll.records"] == "5"
