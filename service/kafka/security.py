"""One description of SASL and TLS, in the terms of Kafka's Java client, for the JVM source and for librdkafka alike.

Pipelines use Java's names ('properties.sasl.jaas.config' and so on), as Flink's connector does. librdkafka has other
names and takes PEM files where Java also knows JKS. So a setting that both support is accepted, any other is refused.

No text made by this module contains a secret: no repr, no error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from service.kafka import jaas
from service.kafka.errors import KafkaConfigError

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PACKAGE = "org.apache.kafka.common.security"
_PLAIN = f"{_PACKAGE}.plain.PlainLoginModule"
_SCRAM = f"{_PACKAGE}.scram.ScramLoginModule"
_OAUTH = f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule"
_OAUTH_HANDLERS = (
    f"{_PACKAGE}.oauthbearer.OAuthBearerLoginCallbackHandler",
    f"{_PACKAGE}.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
_MODULES = {"PLAIN": _PLAIN, "SCRAM-SHA-256": _SCRAM, "SCRAM-SHA-512": _SCRAM, "OAUTHBEARER": _OAUTH}

_KNOWN = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.oauthbearer.token.endpoint.url",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.certificates",
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
    }
)
_SECURITY = ("security.", "sasl.", "ssl.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    """A login, and its mechanism. For OAUTHBEARER `user` and `password` are the client's id and secret."""

    mechanism: str
    user: str
    password: str = field(repr=False)
    token_url: str | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Whom to trust and who we are: each a PEM file or PEM text. `keystore` may also be a PKCS #12 file."""

    truststore: str | None = None
    trusted: str | None = None
    keystore: str | None = None
    keystore_type: str = "PEM"
    keystore_password: str | None = field(default=None, repr=False)
    chain: str | None = None
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    check_host: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """The protocol of a connection, and its parts: `sasl` and `tls` are None where `protocol` has none."""

    protocol: str = "PLAINTEXT"
    sasl: Sasl | None = None
    tls: Tls | None = None

    def for_librdkafka(self) -> dict[str, str]:
        """Return properties of a librdkafka client."""
        properties = {"security.protocol": self.protocol}
        if self.sasl is not None:
            properties |= _librdkafka_sasl(self.sasl)
        if self.tls is not None:
            properties |= _librdkafka_tls(self.tls)
        return properties

    def for_java(self) -> dict[str, str]:
        """Return properties of a Java client."""
        properties = {"security.protocol": self.protocol}
        if self.sasl is not None:
            properties |= _java_sasl(self.sasl)
        if self.tls is not None:
            properties |= _java_tls(self.tls)
        return properties


def security_of(properties: Mapping[str, str]) -> tuple[Security, dict[str, str]]:
    """Return the security settings among Java client properties, and the remaining properties."""
    rest = {name: value for name, value in properties.items() if not name.startswith(_SECURITY)}
    given = {name: value for name, value in properties.items() if name.startswith(_SECURITY)}
    for name in sorted(given.keys() - _KNOWN):
        raise KafkaConfigError(
            f'the property "{name}" is not supported', None, f"supported are {', '.join(sorted(_KNOWN))}", option=name
        )
    protocol = given.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise KafkaConfigError(
            f'security.protocol "{protocol}" is not known',
            None,
            f"use {', '.join(_PROTOCOLS)}",
            option="security.protocol",
        )
    for prefix, part in (("sasl.", "SASL"), ("ssl.", "SSL")):
        idle = sorted(name for name in given if name.startswith(prefix))
        if idle and part not in protocol:
            raise KafkaConfigError(
                f'"{idle[0]}" has no effect with security.protocol {protocol}',
                None,
                f"set security.protocol to one with {part}, or leave the property out",
                option=idle[0],
            )
    sasl = _sasl(given) if protocol.startswith("SASL") else None
    tls = _tls(given) if protocol.endswith("SSL") else None
    return Security(protocol=protocol, sasl=sasl, tls=tls), rest


def _sasl(given: Mapping[str, str]) -> Sasl:
    mechanism = given.get("sasl.mechanism", "GSSAPI")
    if mechanism not in _MODULES:
        raise KafkaConfigError(
            f'sasl.mechanism "{mechanism}" is not supported',
            None,
            f"use one of {', '.join(_MODULES)}",
            option="sasl.mechanism",
        )
    if "sasl.jaas.config" not in given:
        raise KafkaConfigError(
            "sasl.jaas.config is missing",
            None,
            f'set it to: {_MODULES[mechanism]} required username="..." password="...";',
        )
    module, options = jaas.read(given["sasl.jaas.config"])
    if not module.endswith(_MODULES[mechanism]):  # Flink's SQL connector shades the package
        raise KafkaConfigError(
            f"the login module of sasl.jaas.config does not fit sasl.mechanism {mechanism}",
            f"it is {module}",
            f"use {_MODULES[mechanism]}",
            option="sasl.jaas.config",
        )
    if mechanism == "OAUTHBEARER":
        return _oauth(given, options)
    for name in given.keys() & {"sasl.oauthbearer.token.endpoint.url", "sasl.login.callback.handler.class"}:
        raise KafkaConfigError(
            f'"{name}" has no effect with sasl.mechanism {mechanism}', None, "leave it out", option=name
        )
    return Sasl(mechanism=mechanism, **_login(options, "username", "password"))


def _oauth(given: Mapping[str, str], options: Mapping[str, str]) -> Sasl:
    handler = given.get("sasl.login.callback.handler.class", _OAUTH_HANDLERS[0])
    if not handler.endswith(_OAUTH_HANDLERS):
        raise KafkaConfigError(
            "this sasl.login.callback.handler.class is not supported",
            f"it is {handler}",
            f"use {_OAUTH_HANDLERS[0]}",
            option="sasl.login.callback.handler.class",
        )
    url = given.get("sasl.oauthbearer.token.endpoint.url")
    if url is None:
        raise KafkaConfigError(
            "sasl.oauthbearer.token.endpoint.url is missing", None, "set the URL of the token endpoint"
        )
    login = _login(options, "clientId", "clientSecret")
    return Sasl(mechanism="OAUTHBEARER", token_url=url, scope=options.get("scope"), **login)


def _login(options: Mapping[str, str], user: str, password: str) -> dict[str, str]:
    for name in (user, password):
        if name not in options:
            raise KafkaConfigError(
                f"sasl.jaas.config has no {name}",
                None,
                f'add {name}="..." before the semicolon',
                option="sasl.jaas.config",
            )
    return {"user": options[user], "password": options[password]}


def _tls(given: Mapping[str, str]) -> Tls:
    for store in ("truststore", "keystore"):
        inline = {"truststore": "ssl.truststore.certificates", "keystore": "ssl.keystore.certificate.chain"}[store]
        type_, location = f"ssl.{store}.type", f"ssl.{store}.location"
        kind = given.get(type_, "PEM" if inline in given else "JKS").upper()
        used = location in given or type_ in given
        if used and kind != "PEM" and (store, kind) != ("keystore", "PKCS12"):
            raise KafkaConfigError(
                f"a {store} of type {kind} is not supported",
                f"{type_} says how the {store} is stored; Java's default is JKS",
                f"export it to a PEM file (keytool -importkeystore, openssl pkcs12) and set {type_} to PEM",
                option=type_ if type_ in given else location,
            )
    if ("ssl.keystore.key" in given) != ("ssl.keystore.certificate.chain" in given):
        raise KafkaConfigError(
            "a client certificate needs its chain and its key",
            None,
            "set ssl.keystore.certificate.chain and ...key",
            option=next(name for name in ("ssl.keystore.key", "ssl.keystore.certificate.chain") if name in given),
        )
    check = given.get("ssl.endpoint.identification.algorithm", "https").lower()
    if check not in ("https", ""):
        raise KafkaConfigError(
            f'ssl.endpoint.identification.algorithm "{check}" is not known',
            None,
            "use https, or '' to skip the check",
            option="ssl.endpoint.identification.algorithm",
        )
    return Tls(
        truststore=given.get("ssl.truststore.location"),
        trusted=given.get("ssl.truststore.certificates"),
        keystore=given.get("ssl.keystore.location"),
        keystore_type=given.get("ssl.keystore.type", "PEM").upper(),
        keystore_password=given.get("ssl.keystore.password"),
        chain=given.get("ssl.keystore.certificate.chain"),
        key=given.get("ssl.keystore.key"),
        key_password=given.get("ssl.key.password"),
        check_host=check == "https",
    )


def _librdkafka_sasl(sasl: Sasl) -> dict[str, str]:
    if sasl.mechanism != "OAUTHBEARER":
        return {"sasl.mechanism": sasl.mechanism, "sasl.username": sasl.user, "sasl.password": sasl.password}
    return _given(
        {
            "sasl.mechanism": sasl.mechanism,
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": sasl.token_url,
            "sasl.oauthbearer.client.id": sasl.user,
            "sasl.oauthbearer.client.secret": sasl.password,
            "sasl.oauthbearer.scope": sasl.scope,
        }
    )


def _librdkafka_tls(tls: Tls) -> dict[str, str]:
    pem = tls.keystore_type == "PEM"
    return _given(
        {
            "ssl.endpoint.identification.algorithm": "https" if tls.check_host else "none",
            "ssl.ca.location": tls.truststore,
            "ssl.ca.pem": tls.trusted,
            "ssl.certificate.location": tls.keystore if pem else None,
            "ssl.key.location": tls.keystore if pem else None,
            "ssl.keystore.location": None if pem else tls.keystore,
            "ssl.keystore.password": None if pem else tls.keystore_password,
            "ssl.certificate.pem": tls.chain,
            "ssl.key.pem": tls.key,
            "ssl.key.password": tls.key_password,
        }
    )


def _java_sasl(sasl: Sasl) -> dict[str, str]:
    names = ("clientId", "clientSecret") if sasl.mechanism == "OAUTHBEARER" else ("username", "password")
    options = {names[0]: sasl.user, names[1]: sasl.password} | _given({"scope": sasl.scope})
    oauth = {"sasl.login.callback.handler.class": _OAUTH_HANDLERS[0]} if sasl.mechanism == "OAUTHBEARER" else {}
    return oauth | _given(
        {
            "sasl.mechanism": sasl.mechanism,
            "sasl.jaas.config": jaas.write(_MODULES[sasl.mechanism], options),
            "sasl.oauthbearer.token.endpoint.url": sasl.token_url,
        }
    )


def _java_tls(tls: Tls) -> dict[str, str]:
    return _given(
        {
            "ssl.endpoint.identification.algorithm": "https" if tls.check_host else "",
            "ssl.truststore.type": "PEM" if tls.truststore or tls.trusted else None,
            "ssl.truststore.location": tls.truststore,
            "ssl.truststore.certificates": tls.trusted,
            "ssl.keystore.type": tls.keystore_type if tls.keystore or tls.chain else None,
            "ssl.keystore.location": tls.keystore,
            "ssl.keystore.password": tls.keystore_password,
            "ssl.keystore.certificate.chain": tls.chain,
            "ssl.keystore.key": tls.key,
            "ssl.key.password": tls.key_password,
        }
    )


def _given(properties: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if value is not None}
