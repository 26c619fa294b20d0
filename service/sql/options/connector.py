"""The connector of a table, read from its WITH clause: unknown options and invalid values are mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from service.plan.table import Bounded, Connector, Format, Startup
from service.sql.errors import Mistakes, did_you_mean
from service.sql.options.connector_options import CONNECTORS, FLINK_CONNECTORS
from service.sql.options.format_options import FORMAT_OPTIONS
from service.sql.options.format_reader import FORMAT_KEYS, FormatReader, prefix_of
from service.sql.options.given import GivenOptions
from service.sql.options.kafka_properties import note_unknown
from service.sql.options.lookup_reader import read_lookup
from service.sql.parse.statements import Option

_OF_DATABASES = ("url", "username", "password")
_PLACED_APART = frozenset(
    {
        *FORMAT_KEYS,
        *("topic", "topic-pattern", "key.fields", "key.fields-prefix", "value.fields-include"),
        *("scan.startup.mode", "scan.startup.timestamp-millis", "scan.startup.specific-offsets"),
        *("scan.bounded.mode", "scan.bounded.timestamp-millis", "scan.bounded.specific-offsets"),
        *("scan.watermark.idle-timeout", "tailrace.bad-input"),
    }
)


def read_connector(options: Iterable[Option], mistakes: Mistakes, at: int, idle_timeout: int = 0) -> Connector | None:
    """Return the connector that `options` describe; None, with the mistakes noted, if they name no supported one.

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
        of_flink = kind.value in FLINK_CONNECTORS
        mistakes.add(
            f"connector '{kind.value}' is not supported",
            detail="it is a Flink connector that Tailrace does not have"
            if of_flink
            else f"the connectors are {', '.join(CONNECTORS)}",
            hint=FLINK_CONNECTORS[kind.value] if of_flink else did_you_mean(kind.value, CONNECTORS),
            at=kind.value_at,
        )
        return None
    return _Reader(GivenOptions(kind.value, given, mistakes, at)).connector(idle_timeout)


def _unique(options: Iterable[Option], mistakes: Mistakes) -> dict[str, Option]:
    given: dict[str, Option] = {}
    for option in options:
        if option.key in given:
            mistakes.add(f"option '{option.key}' is given twice", at=option.key_at)
        given[option.key] = option
    return given


class _Reader:
    """Reads the options of one table."""

    def __init__(self, options: GivenOptions) -> None:
        self.options = options
        self.kind = options.kind
        self.given = options.given
        self.mistakes = options.mistakes
        self.known = CONNECTORS[options.kind]

    def connector(self, idle_timeout: int) -> Connector:
        read = FormatReader(self.options).format
        formats = {key: given for key in FORMAT_KEYS if key in self.known and (given := read(key))}
        self._check_names()
        note_unknown(self.options)
        values = {
            key: self.options.read(self.given[key], known) for key, known in self.known.items() if key in self.given
        }
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
            lookup=read_lookup(self.options, values) if self.kind == "jdbc" else None,
        )

    def _check_names(self) -> None:
        names = dict(self.known)
        for key in FORMAT_KEYS:
            option = self.given.get(key)
            if option and option.value in FORMAT_OPTIONS:
                prefix = prefix_of(key, option.value)
                names.update({prefix + name: known for name, known in FORMAT_OPTIONS[option.value].items()})
        # Of a format that is refused itself, nothing is known.
        unread = tuple(
            prefix_of(k, o.value) for k in FORMAT_KEYS if (o := self.given.get(k)) and o.value not in FORMAT_OPTIONS
        )
        patterns = tuple(n[:-1] for n in names if n.endswith(".*"))
        for key, option in self.given.items():
            known = names.get(key)
            if known is None and key.startswith(unread):
                continue
            if known is None and not key.startswith(patterns or ("\0",)):
                self.mistakes.add(
                    f"connector '{self.kind}' has no option '{key}'",
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
        for kind, known in FORMAT_OPTIONS.items():
            for prefix in ("", "key.", "value."):
                if key.startswith(f"{prefix}{kind}."):
                    name = key.removeprefix(f"{prefix}{kind}.")
                    if name not in known:
                        return f"format {kind} has the options {', '.join(known)}"
                    return f"it needs '{prefix}format' = '{kind}'"
        return ""

    def _check_together(self, values: Mapping[str, Any], formats: Mapping[str, Format]) -> None:
        if self.kind == "jdbc":
            for key in ("url", "table-name"):
                if key not in self.given:
                    self.options.missing(key)
        if self.kind not in ("kafka", "upsert-kafka"):
            return
        if "topic" not in self.given and "topic-pattern" not in self.given:
            self.options.missing("topic")
        if "topic" in self.given and "topic-pattern" in self.given:
            self.mistakes.add(
                "'topic' and 'topic-pattern' are both given",
                detail="a table reads the named topics or those that match a pattern, not both",
                at=self.given["topic-pattern"].key_at,
            )
        discovery = self.given.get("scan.topic-partition-discovery.interval")
        if "topic-pattern" in self.given and discovery is not None:
            self.mistakes.note(
                f"'{discovery.key}' has no effect on topics",
                detail="new topics that match 'topic-pattern' are read from the next start on",
                at=discovery.key_at,
            )
        # Brokers may also come from the settings of the service, so a table may leave them out.
        if self.kind == "upsert-kafka":
            for key in ("key.format", "value.format"):
                if key not in self.given:
                    self.options.missing(key)
        elif "format" not in self.given and "value.format" not in self.given:
            self.options.missing("format")
        elif "format" in self.given and "value.format" in self.given:
            self.mistakes.add(
                "'format' and 'value.format' are both given",
                detail="they are two names of the format of values",
                at=self.given["value.format"].key_at,
            )
        if "key.fields" in self.given and "key.format" not in self.given:
            self.options.missing("key.format", "'key.fields' needs it")
        if self.kind == "kafka" and "key.format" in self.given and "key.fields" not in self.given:
            self.options.missing("key.fields", "'key.format' needs it")
        for end in ("startup", "bounded"):
            mode = values.get(f"scan.{end}.mode")
            for name in ("timestamp-millis", "specific-offsets"):
                key = f"scan.{end}.{name}"
                wanted = "timestamp" if name == "timestamp-millis" else name
                if mode == wanted and key not in self.given:
                    self.options.missing(key, f"'scan.{end}.mode' = '{wanted}' needs it")
                elif mode != wanted and key in self.given:
                    self.mistakes.add(
                        f"'{key}' has no effect here",
                        hint=f"set 'scan.{end}.mode' = '{wanted}'",
                        at=self.given[key].key_at,
                    )

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

    def _bad_input(self, formats: Mapping[str, Format]) -> str:
        """Flink's 'ignore-parse-errors' skips bad records; by default they go to the dead-letter topic."""
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
