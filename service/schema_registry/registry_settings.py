"""The connection to a schema registry. Secrets are in no repr."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings:
    """`urls` are those of one registry, tried in this order. `user_info` is 'user:password'; `truststore` and
    `keystore` are PEM files, the latter of a certificate with its key."""

    urls: tuple[str, ...]
    user_info: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    truststore: str | None = None
    keystore: str | None = None
    keystore_password: str | None = field(default=None, repr=False)


def registry_settings(options: Mapping[str, str]) -> RegistrySettings:
    """Return the settings in a format's options, which have Flink's names."""
    return RegistrySettings(
        urls=tuple(url.strip().rstrip("/") for url in options["url"].split(",") if url.strip()),
        user_info=options.get("basic-auth.user-info"),
        token=options.get("bearer-auth.token"),
        truststore=options.get("ssl.truststore.location"),
        keystore=options.get("ssl.keystore.location"),
        keystore_password=options.get("ssl.keystore.password"),
    )
