"""The kinds of options: the type of the value, and whether the option is supported, ignored or refused."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from service.databases.address import sqlalchemy_url
from service.formats.avro.schema import AvroSchemaError, parse_schema
from service.formats.protobuf.schemas.compiler import compiled, described
from service.formats.protobuf.schemas.schema import ProtobufSchemaError
from service.plan.topic_pattern import topic_pattern

_UNITS = {
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
_FINE_UNITS = {
    **dict.fromkeys(("us", "µs", "micro", "micros", "microsecond", "microseconds"), 1_000),
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 1_000_000),
}


@dataclass(frozen=True, slots=True)
class OptionKind:
    """The shape of a value: `read` gives it, or raises ValueError with what is expected."""

    name: str
    read: Callable[[str], Any]


def duration(text: str) -> int:
    """Return milliseconds of '10 s', '5min', '1 d'; a number alone is milliseconds, as in Flink. Raises ValueError,
    with what is allowed.

    >>> duration("5min"), duration("250")
    (300000, 250)
    """
    found = re.fullmatch(r"\s*(\d+)\s*([a-zµ]*)\s*", text.lower())
    if found and found[2] in _UNITS:
        return int(found[1]) * _UNITS[found[2]]
    if found and found[2] in _FINE_UNITS:
        return int(found[1]) // _FINE_UNITS[found[2]]
    raise ValueError("a duration such as '500 ms', '10 s', '5 min', '1 h' or '7 d'")


def _boolean(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("'true' or 'false'")
    return text.strip().lower() == "true"


def _integer(text: str) -> int:
    if not re.fullmatch(r"\s*-?\d+\s*", text):
        raise ValueError("an integer")
    return int(text)


def _count(text: str) -> int:
    if not re.fullmatch(r"\s*\d+\s*", text) or not int(text):
        raise ValueError("an integer, 1 or greater")
    return int(text)


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("a non-empty text")
    return text


def _list(text: str) -> tuple[str, ...]:
    parts = tuple(p.strip() for p in text.split(";") if p.strip())
    if not parts:
        raise ValueError("one or more names, separated by semicolons")
    return parts


def _character(text: str) -> str:
    try:
        plain = text.encode().decode("unicode_escape") if text.startswith("\\") and len(text) > 1 else text
    except UnicodeDecodeError:
        plain = ""
    if len(plain) != 1:
        raise ValueError("one character, such as ',' or '\\t'")
    return text


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from error
    return text


def _topic_pattern(text: str) -> str:
    try:
        topic_pattern(_text(text))
    except ValueError as error:
        raise ValueError(f"a Java regular expression ({error})") from error
    return text


def _offsets(text: str) -> tuple[tuple[int, int], ...]:
    found = re.findall(r"partition:(\d+),offset:(\d+)(?:;|$)", text.strip())
    if not found or ";".join(f"partition:{p},offset:{o}" for p, o in found) != text.strip().rstrip(";"):
        raise ValueError("'partition:0,offset:42;partition:1,offset:300'")
    return tuple((int(p), int(o)) for p, o in found)


def _avro_schema(text: str) -> str:
    try:
        parse_schema(text)
    except AvroSchemaError as error:
        raise ValueError(f"an Avro schema in JSON ({error})") from error
    return text


def _proto_file(text: str) -> str:
    try:
        compiled(text)
    except ProtobufSchemaError as error:
        raise ValueError(f"the text of a .proto file ({error})") from error
    return text


def _proto_set(text: str) -> str:
    """The bytes of the file in base64, since tasks may run where the file is not."""
    try:
        data = Path(text).read_bytes()
        described(data)
    except (OSError, ProtobufSchemaError) as error:
        raise ValueError(f"a descriptor file written by protoc ({error})") from error
    return base64.b64encode(data).decode()


def _registry_url(text: str) -> str:
    for url in text.split(","):
        found = urlsplit(url.strip())
        if found.scheme not in ("http", "https") or not found.hostname:
            raise ValueError("'http://host:8081' or 'https://host', or several separated by commas")
        if found.username or found.password:
            raise ValueError("a URL without user and password: set these in 'basic-auth.user-info'")
    return text


def _pem_file(text: str) -> str:
    if text.lower().endswith((".jks", ".p12", ".pfx", ".keystore", ".truststore")):
        raise ValueError("a PEM file (keytool -importkeystore and openssl pkcs12 make one of a JKS or PKCS #12 file)")
    return _text(text)


def _database_url(text: str) -> str:
    sqlalchemy_url(text)
    return text


TEXT = OptionKind("text", _text)
ANY = OptionKind("text", str)
BOOLEAN = OptionKind("boolean", _boolean)
INTEGER = OptionKind("integer", _integer)
COUNT = OptionKind("number", _count)
DURATION = OptionKind("duration", duration)
LIST = OptionKind("list", _list)
OFFSETS = OptionKind("offsets", _offsets)
CHARACTER = OptionKind("character", _character)
PATTERN = OptionKind("regular expression", _pattern)
TOPIC_PATTERN = OptionKind("regular expression", _topic_pattern)
AVRO_SCHEMA = OptionKind("Avro schema", _avro_schema)
PROTO_FILE = OptionKind(".proto file", _proto_file)
PROTO_SET = OptionKind("file", _proto_set)
REGISTRY_URL = OptionKind("URL", _registry_url)
PEM_FILE = OptionKind("file", _pem_file)
DATABASE_URL = OptionKind("URL", _database_url)


def one_of(*values: str) -> OptionKind:
    """Return the kind of option whose value is one of `values`; case does not matter."""

    def read(text: str) -> str:
        for value in values:
            if text.strip().lower() == value.lower():
                return value
        raise ValueError("one of " + ", ".join(f"'{v}'" for v in values))

    return OptionKind("word", read)


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """A known option. With `refused`, a sentence, it is a Flink option that is not supported here; with `ignored`, a
    sentence, it is accepted because ignoring it changes no result. `default` is its default as it would be written;
    empty if there is none."""

    kind: OptionKind
    meaning: str
    refused: str = ""
    ignored: str = ""
    values: tuple[str, ...] = ()
    default: str = ""


def words(meaning: str, *values: str) -> OptionSpec:
    """Return an option whose value is one of a few words, the first of them by default."""
    return OptionSpec(one_of(*values), meaning, values=values, default=values[0])


def flag(meaning: str, default: str = "false") -> OptionSpec:
    """Return an option that is true or false."""
    return OptionSpec(BOOLEAN, meaning, default=default)


def refused(why: str) -> OptionSpec:
    """Return a Flink option that is not supported."""
    return OptionSpec(ANY, "", refused=why)


def ignored(why: str, kind: OptionKind = ANY) -> OptionSpec:
    """Return a Flink option that is accepted without effect."""
    return OptionSpec(kind, "", ignored=why)
