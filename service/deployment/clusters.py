"""The Kafka cluster of each table, and the connection settings of both clients.

A table's 'properties.*' take precedence; the settings supply the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from service.kafka import jaas
from service.kafka.errors import KafkaConfigError
from service.kafka.security import security_of
from service.plan.table import Table
from service.settings import Kafka

_LIBRDKAFKA_TOO = ("client.id", "client.dns.lookup", "metadata.max.age.ms", "retry.backoff.ms", "request.timeout.ms")
"""Java properties that librdkafka has under the same name with the same meaning."""

_PRODUCER = {
    "max.request.size": "message.max.bytes",
    "batch.size": "batch.size",
    "compression.type": "compression.type",
}
"""Java's properties of a producer that the writer takes, and librdkafka's names for them."""

_NOT_FOR_SPARK = ("group.id", "auto.offset.reset", "enable.auto.commit", "isolation.level", "bootstrap.servers")
"""Properties with a meaning of their own here; Spark's source refuses most of them."""

_MODULE = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A Kafka cluster as both clients name its properties, secrets resolved: never shown."""

    librdkafka: Mapping[str, str] = field(repr=False)
    java: Mapping[str, str] = field(repr=False)


def address_of(properties: Mapping[str, str], settings: Kafka) -> Address:
    """Return the address for a table's Java properties. Raises KafkaConfigError if they contradict each other."""
    merged = dict(_from_settings(settings)) if not _says_security(properties) else {}
    merged.update(properties)
    security, rest = security_of(merged)
    bootstrap = rest.get("bootstrap.servers") or settings.bootstrap_servers
    if not bootstrap:
        raise KafkaConfigError(
            "no brokers are given",
            None,
            "set 'properties.bootstrap.servers' in the table or TAILRACE_KAFKA__BOOTSTRAP_SERVERS",
        )
    java = {k: v for k, v in rest.items() if k not in _NOT_FOR_SPARK}
    shared = {k: v for k, v in rest.items() if k in _LIBRDKAFKA_TOO}
    shared |= {_PRODUCER[k]: v for k, v in rest.items() if k in _PRODUCER}
    return Address(
        librdkafka={**shared, **security.for_librdkafka(), "bootstrap.servers": bootstrap},
        java={**java, **security.for_java(), "bootstrap.servers": bootstrap},
    )


def address_of_table(table: Table, settings: Kafka) -> Address | None:
    """Return the address of a table's cluster; None where its connector is not Kafka."""
    if table.connector.kind not in ("kafka", "upsert-kafka"):
        return None
    return address_of(table.connector.properties, settings)


def _says_security(properties: Mapping[str, str]) -> bool:
    return any(name.startswith(("security.", "sasl.", "ssl.")) for name in properties)


def _from_settings(settings: Kafka) -> dict[str, str]:
    sasl, tls = settings.sasl, settings.tls
    protocol = f"{'SASL_' if sasl.mechanism else ''}{'SSL' if tls.enabled else 'PLAINTEXT'}"
    given = {"security.protocol": protocol}
    if sasl.mechanism:
        given["sasl.mechanism"] = sasl.mechanism
        user, password = ("clientId", "clientSecret") if sasl.mechanism == "OAUTHBEARER" else ("username", "password")
        options = {user: sasl.username, password: sasl.password.get_secret_value()}
        if sasl.scope:
            options["scope"] = sasl.scope
        given["sasl.jaas.config"] = jaas.write(_MODULE[sasl.mechanism], options)
        if sasl.token_url:
            given["sasl.oauthbearer.token.endpoint.url"] = sasl.token_url
    if tls.enabled:
        if tls.ca_file:
            given |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": tls.ca_file}
        if bool(tls.certificate_file) != bool(tls.key_file):
            raise KafkaConfigError(
                "a client certificate and its key belong together",
                f"there is only {'a certificate' if tls.certificate_file else 'a key'}",
                "set TAILRACE_KAFKA__TLS__CERTIFICATE_FILE and TAILRACE_KAFKA__TLS__KEY_FILE, or neither",
            )
        if tls.key_file:
            given |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": _text(tls.certificate_file)}
            given["ssl.keystore.key"] = _text(tls.key_file)
            if tls.key_password.get_secret_value():
                given["ssl.key.password"] = tls.key_password.get_secret_value()
        if not tls.verify_hostname:
            given["ssl.endpoint.identification.algorithm"] = ""
    return given


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError as error:
        raise KafkaConfigError(f"{path} cannot be read", error.strerror, "it must be a PEM file") from error
    except UnicodeDecodeError as error:
        raise KafkaConfigError(f"{path} is not a PEM file", "it is not text", "export it as PEM") from error
