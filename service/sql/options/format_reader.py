"""The formats of a table's keys and values, read from its WITH clause."""

from __future__ import annotations

from collections.abc import Mapping

from service.plan.formats import TRAITS
from service.plan.table import Format
from service.sql.errors import did_you_mean
from service.sql.options.format_options import FORMAT_OPTIONS, OLDER_NAMES, REGISTRY_OPTIONS
from service.sql.options.given import GivenOptions
from service.sql.parse.statements import Option

FORMAT_KEYS = ("format", "key.format", "value.format")


def prefix_of(key: str, kind: str) -> str:
    """Return what the options of a format begin with: 'json.' behind 'format', 'key.json.' behind 'key.format'."""
    return f"{key.removesuffix('format')}{kind}."


class FormatReader:
    """Reads the formats of one table, with their options."""

    def __init__(self, options: GivenOptions) -> None:
        self._options = options
        self._given = options.given
        self._mistakes = options.mistakes

    def format(self, key: str) -> Format | None:
        """Return the format that option `key` names; None where it is not given, or its mistakes are noted."""
        option = self._given.get(key)
        if option is None or not self._is_possible(key, option):
            return None
        prefix = prefix_of(key, option.value)
        known = FORMAT_OPTIONS[option.value]
        own = {
            k[len(prefix) :]: o for k, o in self._given.items() if k.startswith(prefix) and k[len(prefix) :] in known
        }
        read = {name: self._options.read(each, known[name]) for name, each in own.items()}
        settings = {OLDER_NAMES.get(n, n): each.value for n, each in own.items() if not known[n].ignored}
        if option.value == "protobuf":
            self._check_schema(prefix, own, option)
            if "descriptor-set" in own:
                settings["descriptor-set"] = read["descriptor-set"] or ""
        if any(read[name] is None for name in ("schema", "descriptor-set") if name in own):
            return None  # no more mistakes can be found in the table's columns
        if option.value == "protobuf-confluent" and "message-name" in own and "schema" not in own:
            self._options.missing(f"{prefix}schema", f"'{prefix}message-name' names one of its messages")
        with_registry = TRAITS[option.value].with_registry
        if with_registry:
            self._check_registry(prefix, own, settings, option)
            if "topic" in self._given:  # a table without one is only read, and its records say which schema is theirs
                topic = self._given["topic"].value
                settings.setdefault("subject", f"{topic}-{'key' if key == 'key.format' else 'value'}")
        reach = REGISTRY_OPTIONS if with_registry else frozenset()
        return Format(
            option.value,
            {name: value for name, value in settings.items() if name not in reach},
            {name: value for name, value in settings.items() if name in reach},
        )

    def _is_possible(self, key: str, option: Option) -> bool:
        """Whether the format is known and allowed for `key`; mistakes are noted."""
        if option.value not in FORMAT_OPTIONS:
            self._mistakes.add(
                f"format '{option.value}' is not supported",
                detail=f"the formats are {', '.join(FORMAT_OPTIONS)}",
                hint=did_you_mean(option.value, FORMAT_OPTIONS),
                at=option.value_at,
            )
            return False
        if key == "key.format" and TRAITS[option.value].carries_changes:
            self._mistakes.add(
                f"a key cannot be written as {option.value}",
                hint="write 'json', 'csv', 'raw', or one of avro, protobuf and json-registry without changes",
                at=option.value_at,
            )
            return False
        if self._options.kind == "upsert-kafka" and TRAITS[option.value].carries_changes:
            self._mistakes.add(
                f"a value of upsert-kafka cannot be written as {option.value}",
                detail="the key of each record determines which row it replaces",
                hint="write 'json' or 'avro-confluent', or use 'connector' = 'kafka'",
                at=option.value_at,
            )
            return False
        return True

    def _check_schema(self, prefix: str, own: Mapping[str, Option], option: Option) -> None:
        """Check that the message type is given, exactly once."""
        if "schema" not in own and "descriptor-set" not in own:
            self._mistakes.add(
                f"option '{prefix}schema' is missing",
                detail="format 'protobuf' reads and writes messages of a .proto file",
                hint=f"set '{prefix}schema' to its text, or '{prefix}descriptor-set' to protoc's output",
                at=option.value_at,
            )
        for one, other in (("schema", "descriptor-set"), ("message-name", "message-class-name")):
            if one in own and other in own:
                self._mistakes.add(
                    f"'{prefix}{one}' and '{prefix}{other}' are both given",
                    detail="they are two ways of saying the same; keep one",
                    at=own[other].key_at,
                )

    def _check_registry(
        self, prefix: str, own: Mapping[str, Option], settings: Mapping[str, str], option: Option
    ) -> None:
        """Check that the registry is given exactly once, with at most one kind of login."""
        if "url" not in settings:
            self._mistakes.add(
                f"option '{prefix}url' is missing",
                detail=f"format '{option.value}' reads and registers schemas in a schema registry",
                hint=f"set '{prefix}url' = 'http://...'",
                at=option.value_at,
            )
        for older, name in OLDER_NAMES.items():
            if older in own and name in own:
                self._mistakes.add(
                    f"'{prefix}{name}' and '{prefix}{older}' are both given",
                    detail="they are two names of one option",
                    at=own[older].key_at,
                )
        if "basic-auth.user-info" in own and "bearer-auth.token" in own:
            self._mistakes.add(
                f"'{prefix}basic-auth.user-info' and '{prefix}bearer-auth.token' are both given",
                detail="a login uses a password or a token; keep one",
                at=own["bearer-auth.token"].key_at,
            )
        for source, needed in (
            ("basic-auth.credentials-source", "basic-auth.user-info"),
            ("bearer-auth.credentials-source", "bearer-auth.token"),
            ("ssl.keystore.password", "ssl.keystore.location"),
        ):
            if source in own and needed not in own:
                self._options.missing(prefix + needed, f"'{prefix}{source}' needs it")
