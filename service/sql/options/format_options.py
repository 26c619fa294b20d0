"""The options of each format, as written behind the format's name: 'json.ignore-parse-errors'."""

from __future__ import annotations

from collections.abc import Mapping

from service.sql.options.known import ANY, CHARACTER, PATTERN, TEXT, OptionSpec, flag, ignored, words

_TIMESTAMPS = words("how timestamps are written: '2020-12-30 12:13:14' or '2020-12-30T12:13:14'", "SQL", "ISO-8601")
_MAP_NULL_KEYS: Mapping[str, OptionSpec] = {
    "map-null-key.mode": words("what becomes of a NULL key of a map", "FAIL", "DROP", "LITERAL"),
    "map-null-key.literal": OptionSpec(TEXT, "the text in place of a NULL key, with mode LITERAL", default="null"),
}
_DECODE: Mapping[str, OptionSpec] = {
    "ignore-parse-errors": flag("whether a record that cannot be decoded is skipped"),
    "timestamp-format.standard": _TIMESTAMPS,
}
_ENCODE: Mapping[str, OptionSpec] = {
    **_MAP_NULL_KEYS,
    "encode.decimal-as-plain-number": flag("whether a DECIMAL is written without an exponent"),
    "encode.ignore-null-fields": flag("whether a NULL field is left out"),
}
_UPDATES = words("whether an update is one record of op 'u', or as in Flink a 'd' and a 'c'", "u", "d-c")

FORMATS: Mapping[str, Mapping[str, OptionSpec]] = {
    "json": {
        **_DECODE,
        **_ENCODE,
        "fail-on-missing-field": flag("whether a record without a field of the table is refused"),
        "decode.json-parser.enabled": ignored("there is one parser"),
    },
    "debezium-json": {
        **_DECODE,
        **_ENCODE,
        "schema-include": flag("whether records are wrapped in schema and payload"),
        "tailrace.update": _UPDATES,
    },
    "changelog-json": {**_DECODE, **_ENCODE},
    "canal-json": {
        **_DECODE,
        **_ENCODE,
        "database.include": OptionSpec(PATTERN, "a regular expression of the databases whose changes are read"),
        "table.include": OptionSpec(PATTERN, "a regular expression of the tables whose changes are read"),
    },
    "maxwell-json": {**_DECODE, **_ENCODE},
    "ogg-json": {**_DECODE, **_ENCODE},
    "csv": {
        "field-delimiter": OptionSpec(CHARACTER, "the character between two columns", default=","),
        "disable-quote-character": flag("whether there are no quotes around cells"),
        "quote-character": OptionSpec(CHARACTER, "the quote around cells", default='"'),
        "allow-comments": flag("whether a line that begins with # is passed over"),
        "ignore-parse-errors": flag("whether a record that cannot be decoded is skipped"),
        "array-element-delimiter": OptionSpec(TEXT, "the text between two elements of an ARRAY", default=";"),
        "escape-character": OptionSpec(CHARACTER, "the character before a quote that is part of a cell"),
        "null-literal": OptionSpec(ANY, "the text that stands for NULL"),
        "write-bigdecimal-in-scientific-notation": flag("whether a DECIMAL may be written with an exponent", "true"),
    },
    "raw": {
        "charset": words("the character set of texts", "UTF-8"),
        "endianness": words("the order of the bytes of numbers", "big-endian", "little-endian"),
    },
}

PLANNED = frozenset({"avro", "debezium-avro-confluent", "avro-confluent", "protobuf"})
"""Formats of Flink's that are not here yet."""
