"""SASL and TLS in Java's names, translated for librdkafka and for Java."""

from __future__ import annotations

import pytest

from service.kafka import jaas
from service.kafka.errors import KafkaConfigError
from service.kafka.security import security_of

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SECRET = "s3cret"

LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{PLAIN} required username="ann" password="{SECRET}";',
}
PEM = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"}

TRANSLATED = {
    "nothing": ({}, {"security.protocol": "PLAINTEXT"}),
    "plain": (
        LOGIN,
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "ann",
            "sasl.password": SECRET,
        },
    ),
    "scram, shaded as in Flink's connector": (
        LOGIN
        | {
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f"org.apache.flink.kafka.shaded.{SCRAM} required username='ann' password='{SECRET}';",
        },
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "ann",
            "sasl.password": SECRET,
        },
    ),
    "oauth": (
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f'{OAUTH} required clientId="id" clientSecret="{SECRET}" scope="kafka";',
            "sasl.oauthbearer.token.endpoint.url": "https://login/token",
        },
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": "https://login/token",
            "sasl.oauthbearer.client.id": "id",
            "sasl.oauthbearer.client.secret": SECRET,
            "sasl.oauthbearer.scope": "kafka",
            "ssl.endpoint.identification.algorithm": "https",
        },
    ),
    "tls": (
        PEM,
        {
            "security.protocol": "SSL",
            "ssl.ca.location": "/ca.pem",
            "ssl.endpoint.identification.algorithm": "https",
        },
    ),
    "tls without the host's name": (
        PEM | {"ssl.endpoint.identification.algorithm": ""},
        {"security.protocol": "SSL", "ssl.ca.location": "/ca.pem", "ssl.endpoint.identification.algorithm": "none"},
    ),
    "client certificate in a PEM file": (
        PEM | {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/me.pem", "ssl.key.password": SECRET},
        {
            "security.protocol": "SSL",
            "ssl.ca.location": "/ca.pem",
            "ssl.certificate.location": "/me.pem",
            "ssl.key.location": "/me.pem",
            "ssl.key.password": SECRET,
            "ssl.endpoint.identification.algorithm": "https",
        },
    ),
    "client certificate as text": (
        {
            "security.protocol": "SSL",
            "ssl.truststore.certificates": "CA",
            "ssl.keystore.certificate.chain": "CHAIN",
            "ssl.keystore.key": SECRET,
        },
        {
            "security.protocol": "SSL",
            "ssl.ca.pem": "CA",
            "ssl.certificate.pem": "CHAIN",
            "ssl.key.pem": SECRET,
            "ssl.endpoint.identification.algorithm": "https",
        },
    ),
    "client certificate in PKCS #12": (
        PEM | {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "/me.p12", "ssl.keystore.password": SECRET},
        {
            "security.protocol": "SSL",
            "ssl.ca.location": "/ca.pem",
            "ssl.keystore.location": "/me.p12",
            "ssl.keystore.password": SECRET,
            "ssl.endpoint.identification.algorithm": "https",
        },
    ),
}

REFUSED = {
    "a keystore without a type is JKS": (
        {"security.protocol": "SSL", "ssl.truststore.location": "/t.jks"},
        "truststore of type JKS",
    ),
    "a truststore in PKCS #12": (PEM | {"ssl.truststore.type": "PKCS12"}, "truststore of type PKCS12"),
    "an unknown login module": (
        LOGIN | {"sasl.jaas.config": f'com.acme.Login required username="a" password="{SECRET}";'},
        "login module",
    ),
    "a login module that does not fit": (LOGIN | {"sasl.mechanism": "SCRAM-SHA-256"}, "does not fit"),
    "Kerberos": (LOGIN | {"sasl.mechanism": "GSSAPI"}, "GSSAPI"),
    "text that is no configuration": (LOGIN | {"sasl.jaas.config": f"{PLAIN} password={SECRET}"}, "cannot be read"),
    "rubbish among the options": (
        LOGIN | {"sasl.jaas.config": f'{PLAIN} required username="a" {SECRET} "x";'},
        "cannot be read",
    ),
    "no password": (LOGIN | {"sasl.jaas.config": f'{PLAIN} required username="{SECRET}";'}, "no password"),
    "no login": ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "sasl.jaas.config is missing"),
    "a chain without its key": (
        {"security.protocol": "SSL", "ssl.keystore.certificate.chain": SECRET},
        "chain and its key",
    ),
    "a property that nobody would look at": (
        {"sasl.jaas.config": LOGIN["sasl.jaas.config"]},
        "no effect with security.protocol PLAINTEXT",
    ),
    "a property that we do not know": (PEM | {"ssl.engine.factory.class": SECRET}, "ssl.engine.factory.class"),
    "a protocol that does not exist": ({"security.protocol": "TLS"}, '"TLS" is not known'),
    "a check that does not exist": (PEM | {"ssl.endpoint.identification.algorithm": "ldap"}, "ldap"),
}


@pytest.mark.parametrize("name", TRANSLATED)
def test_java_names_become_librdkafka_names(name: str):
    given, expected = TRANSLATED[name]
    assert security_of(given)[0].for_librdkafka() == expected


@pytest.mark.parametrize("name", TRANSLATED)
def test_java_names_survive_for_the_java_client(name: str):
    security, _ = security_of(TRANSLATED[name][0])
    assert security_of(security.for_java())[0] == security


@pytest.mark.parametrize("name", TRANSLATED)
def test_secrets_are_not_shown(name: str):
    security, _ = security_of(TRANSLATED[name][0])
    assert SECRET not in repr(security)
    assert SECRET not in str(security)


@pytest.mark.parametrize("name", REFUSED)
def test_what_both_clients_cannot_do_is_refused(name: str):
    given, message = REFUSED[name]
    with pytest.raises(KafkaConfigError, match=message) as refused:
        security_of(given)
    assert refused.value.hint
    assert SECRET not in str(refused.value)
    assert SECRET not in repr(refused.value)


def test_what_is_no_security_is_left_over():
    assert security_of(PEM | {"bootstrap.servers": "k:9092", "acks": "all"})[1] == {
        "bootstrap.servers": "k:9092",
        "acks": "all",
    }


def test_jaas_text_is_read_as_it_was_written():
    options = {"username": 'a"b', "password": "back\\slash; and 'quote'"}
    assert jaas.read(jaas.write(PLAIN, options)) == (PLAIN, options)
