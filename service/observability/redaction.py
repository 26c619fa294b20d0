"""The removal of secrets from all output: known secret values, and what looks like one in texts of others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar
from urllib.parse import quote

from service.databases.address import secrets_of_url
from service.kafka import jaas
from service.kafka.errors import KafkaConfigError
from service.plan.table import Table

HIDDEN = "••••••"

SHORTEST = 3
"""The least characters of a secret that is searched: a shorter one would hide half of every text."""

SECRET_NAME = (
    r"secret|passw|pwd|passphrase|token|credential|jaas|private|user[._-]?info"
    r"|(?:access|account|api|encryption|shared|storage|sas|keystore|master|signing|client)[._-]?key"
)
"""Words in the names of settings, properties and variables whose values are secret; the chart has them, too."""

NO_SECRET_NAME = (
    r"token[a-z._-]*(?:url|uri|mechanism|validity|lifetime)|secret[._-]?(?:file|bit[._-]?length|key[._-]?ref.*)"
    r"|passw[a-z]*[._-]?file|credentials?[._-](?:provider|source)|kubernetes\.(?:driver|executor)\.secrets\..*"
)
"""Parts of names that have such words but name the source of a secret, or its lifetime."""


class _Sensitive:
    """Which names are those of secrets."""

    _secret = re.compile(SECRET_NAME, re.I)
    _harmless = re.compile(NO_SECRET_NAME, re.I)

    def search(self, name: str) -> bool:
        """Whether the value of `name` is a secret."""
        return bool(self._secret.search(self._harmless.sub("", name)))


SENSITIVE = _Sensitive()
"""The names of settings and properties whose values are secret."""

HARMLESS_OF_SPARK = (
    "spark.app.",
    "spark.cleaner.",
    "spark.default.parallelism",
    "spark.driver.cores",
    "spark.driver.max",
    "spark.driver.memory",
    "spark.dynamicAllocation.",
    "spark.eventLog.enabled",
    "spark.executor.cores",
    "spark.executor.heartbeatInterval",
    "spark.executor.instances",
    "spark.executor.memory",
    "spark.io.compression.",
    "spark.kryoserializer.",
    "spark.locality.",
    "spark.memory.",
    "spark.network.",
    "spark.rpc.",
    "spark.scheduler.",
    "spark.shuffle.",
    "spark.speculation",
    "spark.sql.",
    "spark.storage.",
    "spark.task.",
    "spark.ui.enabled",
)
"""The prefixes of those of Spark's settings whose values are shown; of all others only the name is. The settings of
object stores and Kubernetes are among the others, under names that nobody can list."""

_ASSIGNED = re.compile(
    rf"""(?ix) ((?:{SECRET_NAME}) [\w.-]{{0,60}} ["']? \s{{0,9}} [=:] \s{{0,9}})
        (?: "[^"]*" | '[^']*' | [^\s,;&)}}\]"']+ )"""
)
_USER_OF_URL = re.compile(r"(?<=://)[^/@\s'\"]+@")
_PEM = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?(?:-----END \1-----|\Z)", re.S)

Value = TypeVar("Value")


class Redaction:
    """Hides the secrets of one service, in whatever form a text has them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._known = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def text(self, text: str) -> str:
        """Return a text of ours without known secrets."""
        return text if self._known is None else self._known.sub(HIDDEN, text)

    def foreign(self, text: str) -> str:
        """Return a text that others wrote (an error, a record), also without what looks like a secret."""
        text = _PEM.sub(HIDDEN, self.text(text))
        return _USER_OF_URL.sub(f"{HIDDEN}@", _ASSIGNED.sub(rf"\g<1>{HIDDEN}", text))

    def all(self, value: Value) -> Value:
        """Return `value` with `text` applied to every text in it: dataclasses, tuples, lists and mappings are
        walked."""
        return self._walk(value)  # type: ignore[no-any-return]

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{f.name: self._walk(getattr(value, f.name)) for f in fields(value)})
        if isinstance(value, tuple):
            walked = [self._walk(each) for each in value]
            return type(value)(*walked) if hasattr(value, "_fields") else tuple(walked)
        if isinstance(value, list):
            return [self._walk(each) for each in value]
        if isinstance(value, Mapping):
            return {self._walk(key): self._walk(each) for key, each in value.items()}
        return value


def shown_of_spark(conf: Mapping[str, str]) -> dict[str, str]:
    """Return settings of Spark and Hadoop for people: values only if they are known to be harmless."""
    return {
        name: text if name.startswith(HARMLESS_OF_SPARK) and not SENSITIVE.search(name) else HIDDEN
        for name, text in conf.items()
    }


def secrets_of_tables(tables: Iterable[Table]) -> Iterator[str]:
    """Yield every value that a table gives as a secret."""
    for table in tables:
        connector = table.connector
        yield from sensitive(connector.properties)
        for form in filter(None, (connector.key_format, connector.value_format)):
            yield from sensitive(form.registry)


def secrets_of_variables(names: Iterable[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Return the values of those variables whose names say that they are secret."""
    return (environment[name] for name in names if SENSITIVE.search(name) and name in environment)


def sensitive(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield the values of those properties whose names say that they are secret, and the secrets inside of them."""
    for name, value in properties.items():
        if SENSITIVE.search(name):
            yield value
        if name == "url":
            yield from secrets_of_url(value)
        if name.endswith("user-info"):
            yield value.partition(":")[2]
        if name.endswith("jaas.config"):
            with suppress(KafkaConfigError):
                yield from (text for option, text in jaas.read(value)[1].items() if SENSITIVE.search(option))


def _forms(secret: str) -> Iterator[str]:
    """The forms of a secret: as it is, and as it looks in JSON, in a repr, in a URL, and in a JAAS text."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield quote(secret, safe="")
    yield secret.replace("\\", "\\\\").replace('"', '\\"')
