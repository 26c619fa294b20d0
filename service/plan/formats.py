"""The properties of formats beyond reading and writing, by the formats' names."""

from __future__ import annotations

CARRIES_CHANGES = frozenset(
    {"debezium-json", "changelog-json", "canal-json", "maxwell-json", "ogg-json", "debezium-avro-confluent"}
)
"""Formats whose records may take rows back; all others only add rows."""

AVRO = frozenset({"avro", "avro-confluent", "debezium-avro-confluent"})
"""Formats whose values are Avro."""

SCHEMA_OF_ALL_COLUMNS = frozenset({"avro"})
"""Formats in which the types of all columns say where in a record a value stands, so that none may be left out."""
