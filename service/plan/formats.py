"""What a plan must know of formats: which of them say what kind of change a record is."""

from __future__ import annotations

CARRIES_CHANGES = frozenset(
    {"debezium-json", "changelog-json", "canal-json", "maxwell-json", "ogg-json", "debezium-avro-confluent"}
)
"""Formats whose records may take rows back; all others only add rows."""
