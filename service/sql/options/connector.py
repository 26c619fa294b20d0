"""From the WITH clause of a table to its connector: every option known, every value of the right shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from service.plan.formats import CARRIES_CHANGES
from service.plan.table import Bounded, Connector, Format, LookupOptions, Startup
from service.sql.errors import Mistakes, did_you_mean
from service.sql.options.connector_options import CONNECTORS, FLINK_CONNECTORS
from service.sql.options.format_options import FORMATS, OLDER_NAMES, REGISTRY_OPTIONS, WITH_REGISTRY
from service.sql.options.known import OptionSpec
from service.sql.parse.statements import Option

_FORMAT_KEYS = ("format", "key.format", "value.format")
_OF_DATABASES = ("url", "username", "password")
_PLACED_APART = frozenset(
    {
        *_FORMAT_KEYS,
        *("topic", "topic-pattern", "key.fields", "key.fields-prefix", "value.fields-include"),
        *("scan.startup.mode", "scan.startup.timestamp-millis", "scan.startup.specific-offsets"),
        *("scan.bounded.mode", "scan.bounded.timestamp-millis", "scan.bounded.specific-offsets"),
        *("scan.watermark.idle-timeout", "tailrace.bad-input"),
    }
)


def read_connector(options: Iterable[Option], mistakes: Mistakes, at: int, idle_timeout: int = 0) -> Connector | None:
    """Return the connector that `options` describe; None, with the mistakes noted, where they do not say which.

    `idle_timeout`, in ms, is that of SET 'table.exec.source.idle-timeout'.
    """
    given = _unique(options, mistakes)
    kind = given.pop("connector", None)
    if kind is None:
        mistakes.add(
            "the table has no connector",
            hint="write WITH ('connector' = 'kafka', ...); also upsert-kafka, datagen, jdbc, print and blackhole",
            at=at,
        )
        return None
    if kind.value not in CONNECTORS:
        known_elsewhere = "it is a connector of Flink's that is not here" if kind.value in FLINK_CONNECTORS else ""
        mistakes.add(
            f"connector '{kind.value}' is not supported",
            detail=known_elsewhere or f"the connectors are {', '.join(CONNECTORS)}",
            hint=did_you_mean(kind.value, CONNECTORS),
            at=kind.value_at,
        )
        return None
    return _Reader(kind.value, given, mistakes, at).connector(idle_timeout)


def _unique(options: Iterable[Option], mistakes: Mistakes) -> dict[str, Option]:
    given: dict[str, Option] = {}
    for option in options:
        if option.key in given:
            mistakes.add(f"option '{option.key}' is given twice", at=option.key_at)
        given[option.key] = option
    return given


class _Reader:
    """Reads the options of one table."""

    def __init__(self, kind: str, given: Mapping[str, Option], mistakes: Mistakes, at: int) -> None:
        self.kind = kind
        self.given = given
        self.mistakes = mistakes
        self.at = at
        self.known = CONNECTORS[kind]

    def connector(self, idle_timeout: int) -> Connector:
        formats = {key: given for key in _FORMAT_KEYS if key in self.known and (given := self._format(key))}
        self._check_names(formats)
        values = {key: self._value(key, known) for key, known in self.known.items() if key in self.given}
        self._check_together(values, formats)
        prefix = "properties."
        return Connector(
            kind=self.kind,
            topics=values.get("topic") or (),
            topic_pattern=values.get("topic-pattern") or "",
            properties={k: self.given[k].value for k in _OF_DATABASES if k in self.given}
            if self.kind == "jdbc"
            else {k[len(prefix) :]: o.value for k, o in self.given.items() if k.startswith(prefix)},
            key_format=formats.get("key.format"),
            value_format=formats.get("format") or formats.get("value.format"),
            key_fields=values.get("key.fields") or (),
            key_fields_prefix=values.get("key.fields-prefix") or "",
            value_fields_include=values.get("value.fields-include") or "ALL",
            startup=self._startup(values),
            bounded=self._bounded(values),
            idle_timeout=values.get("scan.watermark.idle-timeout") or idle_timeout,
            bad_input=values.get("tailrace.bad-input") or self._bad_input(formats),
            options={} if self.kind == "jdbc" else self._rest(),
            lookup=self._lookup(values) if self.kind == "jdbc" else None,
        )

    def _format(self, key: str) -> Format | None:
        option = self.given.get(key)
        if option is None:
            return None
        if option.value not in FORMATS:
            self.mistakes.add(
                f"format '{option.value}' is not supported",
                detail=f"the formats are {', '.join(FORMATS)}",
                hint=did_you_mean(option.value, FORMATS),
                at=option.value_at,
            )
            return None
        if key == "key.format" and option.value in CARRIES_CHANGES:
            self.mistakes.add(
                f"a key cannot be written as {option.value}",
                hint="write 'json', 'csv', 'raw', or one of avro, protobuf and json-registry without changes",
                at=option.value_at,
            )
            return None
        if self.kind == "upsert-kafka" and option.value in CARRIES_CHANGES:
            self.mistakes.add(
                f"a value of upsert-kafka cannot be written as {option.value}",
                detail="its records say by their keys which row they replace",
                hint="write 'json' or 'avro-confluent', or use 'connector' = 'kafka'",
                at=option.value_at,
            )
            return None
        prefix = self._prefix(key, option.value)
        known = FORMATS[option.value]
        own = {k[len(prefix) :]: o for k, o in self.given.items() if k.startswith(prefix) and k[len(prefix) :] in known}
        read = {name: self._read(each, known[name]) for name, each in own.items()}
        told = {OLDER_NAMES.get(n, n): each.value for n, each in own.items() if not known[n].ignored}
        if option.value == "protobuf":
            self._check_schema(prefix, own, option)
            if "descriptor-set" in own:
                told["descriptor-set"] = read["descriptor-set"] or ""
        if any(read[name] is None for name in ("schema", "descriptor-set") if name in own):
            return None  # nothing more can be said of the table's columns
        if option.value == "protobuf-confluent" and "message-name" in own and "schema" not in own:
            self._missing(f"{prefix}schema", f"'{prefix}message-name' names one of its messages")
        if option.value in WITH_REGISTRY:
            self._check_registry(prefix, own, told, option)
            if "topic" in self.given:  # a table without one is only read, and its records say which schema is theirs
                topic = self.given["topic"].value
                told.setdefault("subject", f"{topic}-{'key' if key == 'key.format' else 'value'}")
        reach = REGISTRY_OPTIONS if option.value in WITH_REGISTRY else frozenset()
        return Format(
            option.value,
            {name: value for name, value in told.items() if name not in reach},
            {name: value for name, value in told.items() if name in reach},
        )

    def _check_schema(self, prefix: str, own: Mapping[str, Option], option: Option) -> None:
        """Whether it is said, once, what the messages are."""
        if "schema" not in own and "descriptor-set" not in own:
            self.mistakes.add(
                f"option '{prefix}schema' is missing",
                detail="format 'protobuf' reads and writes messages of a .proto file",
                hint=f"set '{prefix}schema' to its text, or '{prefix}descriptor-set' to what protoc makes of it",
                at=option.value_at,
            )
        for one, other in (("schema", "descriptor-set"), ("message-name", "message-class-name")):
            if one in own and other in own:
                self.mistakes.add(
                    f"'{prefix}{one}' and '{prefix}{other}' are both given",
                    detail="they say the same in two ways",
                    at=own[other].key_at,
                )

    def _check_registry(self, prefix: str, own: Mapping[str, Option], told: Mapping[str, str], option: Option) -> None:
        """Whether it is said which registry it is, once, and how to log in, in one way."""
        if "url" not in told:
            self.mistakes.add(
                f"option '{prefix}url' is missing",
                detail=f"format '{option.value}' reads and registers schemas in a schema registry",
                hint=f"set '{prefix}url' = 'http://...'",
                at=option.value_at,
            )
        for older, name in OLDER_NAMES.items():
            if older in own and name in own:
                self.mistakes.add(
                    f"'{prefix}{name}' and '{prefix}{older}' are both given",
                    detail="they are two names of one option",
                    at=own[older].key_at,
                )
        if "basic-auth.user-info" in own and "bearer-auth.token" in own:
            self.mistakes.add(
                f"'{prefix}basic-auth.user-info' and '{prefix}bearer-auth.token' are both given",
                detail="a login is by password or by token",
                at=own["bearer-auth.token"].key_at,
            )
        for source, needed in (
            ("basic-auth.credentials-source", "basic-auth.user-info"),
            ("bearer-auth.credentials-source", "bearer-auth.token"),
            ("ssl.keystore.password", "ssl.keystore.location"),
        ):
            if source in own and needed not in own:
                self._missing(prefix + needed, f"'{prefix}{source}' needs it")

    @staticmethod
    def _prefix(key: str, kind: str) -> str:
        """'json.' for 'format', 'key.json.' for 'key.format', 'value.json.' for 'value.format'."""
        return f"{key.removesuffix('format')}{kind}."

    def _check_names(self, formats: Mapping[str, Format]) -> None:
        names = dict(self.known)
        for key in _FORMAT_KEYS:
            option = self.given.get(key)
            if option and option.value in FORMATS:
                prefix = self._prefix(key, option.value)
                names.update({prefix + name: known for name, known in FORMATS[option.value].items()})
        # Of a format that is refused itself, nothing is known.
        unread = tuple(
            self._prefix(k, o.value) for k in _FORMAT_KEYS if (o := self.given.get(k)) and o.value not in FORMATS
        )
        patterns = tuple(n[:-1] for n in names if n.endswith(".*"))
        for key, option in self.given.items():
            known = names.get(key)
            if known is None and key.startswith(unread):
                continue
            if known is None and not key.startswith(patterns or ("\0",)):
                self.mistakes.add(
                    f"option '{key}' is not known to connector '{self.kind}'",
                    detail=self._why_unknown(key),
                    hint=did_you_mean(key, [n for n in names if not n.endswith(".*")]),
                    at=option.key_at,
                )
            elif known is not None and known.refused:
                self.mistakes.add(f"option '{key}' is not supported", detail=known.refused, at=option.key_at)

    def _why_unknown(self, key: str) -> str:
        owners = [kind for kind, known in CONNECTORS.items() if key in known and kind != self.kind]
        if owners:
            return f"it is an option of connector {' and '.join(owners)}"
        for kind, known in FORMATS.items():
            for prefix in ("", "key.", "value."):
                if key.startswith(f"{prefix}{kind}."):
                    name = key.removeprefix(f"{prefix}{kind}.")
                    if name not in known:
                        return f"format {kind} has the options {', '.join(known)}"
                    return f"it needs '{prefix}format' = '{kind}'"
        return ""

    def _value(self, key: str, known: OptionSpec) -> Any:
        return self._read(self.given[key], known)

    def _read(self, option: Option, known: OptionSpec) -> Any:
        try:
            return known.kind.read(option.value)
        except ValueError as error:
            hint = did_you_mean(option.value, known.values).replace('"', "'")
            self.mistakes.add(
                f"option '{option.key}' cannot be '{option.value}'",
                detail=f"it takes {error}",
                hint=hint,
                at=option.value_at,
            )
            return None

    def _check_together(self, values: Mapping[str, Any], formats: Mapping[str, Format]) -> None:
        if self.kind == "jdbc":
            for key in ("url", "table-name"):
                if key not in self.given:
                    self._missing(key)
        if self.kind not in ("kafka", "upsert-kafka"):
            return
        if "topic" not in self.given and "topic-pattern" not in self.given:
            self._missing("topic")
        if "topic" in self.given and "topic-pattern" in self.given:
            self.mistakes.add(
                "'topic' and 'topic-pattern' are both given",
                detail="topics are named, or a pattern says which they are",
                at=self.given["topic-pattern"].key_at,
            )
        discovery = self.given.get("scan.topic-partition-discovery.interval")
        if "topic-pattern" in self.given and discovery is not None:
            self.mistakes.note(
                f"'{discovery.key}' has no effect on topics",
                detail="topics that are made later and match 'topic-pattern' are read from the next start on",
                at=discovery.key_at,
            )
        # Brokers may also come from the settings of the service, so a table may leave them out.
        if self.kind == "upsert-kafka":
            for key in ("key.format", "value.format"):
                if key not in self.given:
                    self._missing(key)
        elif "format" not in self.given and "value.format" not in self.given:
            self._missing("format")
        elif "format" in self.given and "value.format" in self.given:
            self.mistakes.add("'format' and 'value.format' are both given", at=self.given["value.format"].key_at)
        if "key.fields" in self.given and "key.format" not in self.given:
            self._missing("key.format", "'key.fields' needs it")
        if self.kind == "kafka" and "key.format" in self.given and "key.fields" not in self.given:
            self._missing("key.fields", "'key.format' needs it")
        for end in ("startup", "bounded"):
            mode = values.get(f"scan.{end}.mode")
            for name in ("timestamp-millis", "specific-offsets"):
                key = f"scan.{end}.{name}"
                wanted = "timestamp" if name == "timestamp-millis" else name
                if mode == wanted and key not in self.given:
                    self._missing(key, f"'scan.{end}.mode' = '{wanted}' needs it")
                elif mode != wanted and key in self.given:
                    self.mistakes.add(
                        f"'{key}' has no meaning here",
                        hint=f"set 'scan.{end}.mode' = '{wanted}'",
                        at=self.given[key].key_at,
                    )

    def _missing(self, key: str, why: str = "") -> None:
        self.mistakes.add(f"option '{key}' is missing", detail=why or f"connector '{self.kind}' needs it", at=self.at)

    def _startup(self, values: Mapping[str, Any]) -> Startup:
        default = "earliest-offset" if self.kind == "upsert-kafka" else "group-offsets"
        return Startup(
            mode=values.get("scan.startup.mode") or default,
            timestamp=values.get("scan.startup.timestamp-millis"),
            offsets=values.get("scan.startup.specific-offsets") or (),
        )

    def _bounded(self, values: Mapping[str, Any]) -> Bounded:
        return Bounded(
            mode=values.get("scan.bounded.mode") or "unbounded",
            timestamp=values.get("scan.bounded.timestamp-millis"),
            offsets=values.get("scan.bounded.specific-offsets") or (),
        )

    def _lookup(self, values: Mapping[str, Any]) -> LookupOptions:
        """A cache that is asked for by one of its older names is there."""

        def chosen(name: str, *others: str, default: Any) -> Any:
            return next((values[key] for key in (name, *others) if values.get(key) is not None), default)

        older = "lookup.cache.max-rows" in self.given or "lookup.cache.ttl" in self.given
        cached = chosen("lookup.cache", default="PARTIAL" if older else "NONE") == "PARTIAL"
        partial = "lookup.partial-cache."
        for key, option in self.given.items():
            if key.startswith(partial) and not cached:
                self.mistakes.note(
                    f"'{key}' has no effect without a cache", hint="set 'lookup.cache' = 'PARTIAL'", at=option.key_at
                )
        standard = LookupOptions("")
        return LookupOptions(
            table=values.get("table-name") or "",
            keys=chosen("tailrace.lookup.batch-keys", default=standard.keys),
            connections=chosen("tailrace.lookup.connections", default=standard.connections),
            retries=max(0, chosen("lookup.max-retries", default=standard.retries)),
            patience=chosen("connection.max-retry-timeout", default=standard.patience),
            cached=cached,
            max_rows=chosen(f"{partial}max-rows", "lookup.cache.max-rows", default=standard.max_rows),
            expire_after_write=chosen(f"{partial}expire-after-write", "lookup.cache.ttl", default=0),
            expire_after_access=chosen(f"{partial}expire-after-access", default=0),
            cache_missing=chosen(f"{partial}cache-missing-key", "lookup.cache.caching-missing-key", default=True),
        )

    def _bad_input(self, formats: Mapping[str, Format]) -> str:
        """Flink's 'ignore-parse-errors' skips bad records; where nothing is said they go to the dead-letter topic."""
        skips = any(f.options.get("ignore-parse-errors", "").lower() == "true" for f in formats.values())
        return "skip" if skips else "dead-letter"

    def _rest(self) -> dict[str, str]:
        return {
            key: option.value
            for key, option in self.given.items()
            if key not in _PLACED_APART
            and not key.startswith("properties.")
            and (key in self.known or key.startswith("fields."))
            and not (key in self.known and self.known[key].ignored)
        }
