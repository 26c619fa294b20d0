"""The options of each format, as written after the format's name: 'json.ignore-parse-errors'."""

from __future__ import annotations

from collections.abc import Mapping

from service.sql.options.known import (
    ANY,
    AVRO_SCHEMA,
    CHARACTER,
    PATTERN,
    PEM_FILE,
    PROTO_FILE,
    PROTO_SET,
    REGISTRY_URL,
    TEXT,
    OptionSpec,
    flag,
    ignored,
    refused,
    words,
)

_TIMESTAMPS = words("how timestamps are written: '2020-12-30 12:13:14' or '2020-12-30T12:13:14'", "SQL", "ISO-8601")
_MAP_NULL_KEYS: Mapping[str, OptionSpec] = {
    "map-null-key.mode": words("what to do with a NULL key of a map", "FAIL", "DROP", "LITERAL"),
    "map-null-key.literal": OptionSpec(TEXT, "the text written for a NULL key, with mode LITERAL", default="null"),
}
_DECODE: Mapping[str, OptionSpec] = {
    "ignore-parse-errors": flag("whether a record that cannot be decoded is skipped"),
    "timestamp-format.standard": _TIMESTAMPS,
}
_ENCODE: Mapping[str, OptionSpec] = {
    **_MAP_NULL_KEYS,
    "encode.decimal-as-plain-number": flag("whether a DECIMAL is written without an exponent"),
    "encode.ignore-null-fields": flag("whether NULL fields are omitted"),
}
_UPDATES = words("whether an update is one record with op 'u', or as in Flink a 'd' and a 'c'", "u", "d-c")

_TIMESTAMP_MAPPING: Mapping[str, OptionSpec] = {
    "timestamp_mapping.legacy": flag(
        "whether a TIMESTAMP is written as a timestamp of UTC, as in Flink before 1.19, not as a local-timestamp",
        "true",
    ),
}
_REACH: Mapping[str, OptionSpec] = {
    "url": OptionSpec(REGISTRY_URL, "the schema registry; separate several URLs of one registry by commas"),
    "auto.register.schemas": flag("whether the written schema is registered if it does not exist", "true"),
    "subject": OptionSpec(
        TEXT, "the subject of the written schema in the registry; by default the topic with -key or -value"
    ),
    "basic-auth.user-info": OptionSpec(TEXT, "user and password, separated by a colon"),
    "basic-auth.credentials-source": words("where user and password are given: in basic-auth.user-info", "USER_INFO"),
    "bearer-auth.token": OptionSpec(TEXT, "the token of a bearer login"),
    "bearer-auth.credentials-source": words("where the token is given: in bearer-auth.token", "STATIC_TOKEN"),
    "ssl.truststore.location": OptionSpec(PEM_FILE, "a PEM file of the trusted authorities"),
    "ssl.keystore.location": OptionSpec(PEM_FILE, "a PEM file of the client's certificate and its key"),
    "ssl.keystore.password": OptionSpec(TEXT, "the password of the key in ssl.keystore.location"),
    "ssl.truststore.password": refused("certificates in a PEM file have no password"),
}
_REGISTRY: Mapping[str, OptionSpec] = {
    **_REACH,
    "schema": OptionSpec(
        AVRO_SCHEMA,
        "the Avro schema for writing; when reading, its aliases and defaults apply. By default derived from the"
        " table's columns",
    ),
    "schema-registry.url": OptionSpec(REGISTRY_URL, "the older name of url"),
    "schema-registry.subject": OptionSpec(TEXT, "the older name of subject"),
    "schema-registry.schema": OptionSpec(AVRO_SCHEMA, "the older name of schema"),
    **_TIMESTAMP_MAPPING,
}

OLDER_NAMES: Mapping[str, str] = {f"schema-registry.{name}": name for name in ("url", "subject", "schema")}
"""Older names of format options, and the present names."""

REGISTRY_OPTIONS = frozenset(
    name for name in _REACH if name == "url" or name.startswith(("basic-auth.", "bearer-auth.", "ssl."))
)
"""Options of the connection to a schema registry, which do not concern the records."""

_MESSAGES: Mapping[str, OptionSpec] = {
    "message-name": OptionSpec(TEXT, "the message type of a record, with or without its package; by default the first"),
    "ignore-parse-errors": flag("whether a record that cannot be decoded is skipped"),
    "read-default-values": flag("whether an absent value is read as its default instead of NULL"),
    "write-null-string-literal": OptionSpec(ANY, "the text written for NULL in an array or a map of texts"),
}

FORMAT_OPTIONS: Mapping[str, Mapping[str, OptionSpec]] = {
    "json": {
        **_DECODE,
        **_ENCODE,
        "fail-on-missing-field": flag("whether a record without a field of the table is refused"),
        "decode.json-parser.enabled": ignored("there is one parser"),
    },
    "debezium-json": {
        **_DECODE,
        **_ENCODE,
        "schema-include": flag("whether records have an envelope of schema and payload"),
        "tailrace.update": _UPDATES,
    },
    "changelog-json": {**_DECODE, **_ENCODE},
    "canal-json": {
        **_DECODE,
        **_ENCODE,
        "database.include": OptionSpec(PATTERN, "a regular expression for the databases whose changes are read"),
        "table.include": OptionSpec(PATTERN, "a regular expression for the tables whose changes are read"),
    },
    "maxwell-json": {**_DECODE, **_ENCODE},
    "ogg-json": {**_DECODE, **_ENCODE},
    "csv": {
        "field-delimiter": OptionSpec(CHARACTER, "the character between two columns", default=","),
        "disable-quote-character": flag("whether cells are never quoted"),
        "quote-character": OptionSpec(CHARACTER, "the quote around cells", default='"'),
        "allow-comments": flag("whether a line that begins with # is ignored"),
        "ignore-parse-errors": flag("whether a record that cannot be decoded is skipped"),
        "array-element-delimiter": OptionSpec(TEXT, "the text between two elements of an ARRAY", default=";"),
        "escape-character": OptionSpec(CHARACTER, "the character before a quote that is part of a cell"),
        "null-literal": OptionSpec(ANY, "the text that means NULL"),
        "write-bigdecimal-in-scientific-notation": flag("whether a DECIMAL may be written with an exponent", "true"),
    },
    "json-registry": {
        **_REACH,
        **_DECODE,
        **_ENCODE,
        "fail-on-missing-field": flag("whether a record without a field of the table is refused"),
    },
    "avro-confluent": _REGISTRY,
    "debezium-avro-confluent": {**_REGISTRY, "tailrace.update": _UPDATES},
    "avro": {
        "encoding": words("how values are encoded", "binary"),
        "codec": ignored("it compresses files, not records"),
        "open.fastread": ignored("there is one reader"),
        **_TIMESTAMP_MAPPING,
    },
    "protobuf": {
        "schema": OptionSpec(PROTO_FILE, "the text of a .proto file, which may import Protocol Buffers' own files"),
        "descriptor-set": OptionSpec(
            PROTO_SET, "a file written by `protoc --include_imports --descriptor_set_out`, instead of schema"
        ),
        "message-class-name": OptionSpec(TEXT, "the Java class of the message, as Flink names it"),
        **_MESSAGES,
    },
    "protobuf-confluent": {
        **_REACH,
        "schema": OptionSpec(
            PROTO_FILE, "the text of the .proto file for writing; by default derived from the table's columns"
        ),
        **_MESSAGES,
    },
    "raw": {
        "charset": words("the character set of texts", "UTF-8"),
        "endianness": words("the order of the bytes of numbers", "big-endian", "little-endian"),
    },
}
