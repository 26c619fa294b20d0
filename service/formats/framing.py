"""Confluent's wire format: a zero byte, the id of the schema in four bytes, the highest first, then the value.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from service.formats.json.options import flag
from service.plan.table import Format
from service.schema_registry.client import registry
from service.schema_registry.registry_settings import registry_settings

Ints = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

HEADER = 5
"""Bytes in front of the value."""

LONGEST = (1 << 31) - 1
"""The most bytes of a value. Without an end, Arrow's slices of bytes fail."""

UNFRAMED = "the record does not begin with a zero byte and the id of its schema"


def header(schema: int) -> bytes:
    """Return the bytes in front of a value of this schema.

    >>> header(258).hex()
    '0000000102'
    """
    return struct.pack(">bI", 0, schema)


def schema_ids(data: Any, starts: Ints, ends: Ints) -> tuple[Ints, Flags]:
    """Return the id of each record's schema, and whether it has one: bytes before `ends`, the first of them zero."""
    framed = ends - starts >= HEADER
    at = np.where(framed, starts, 0)
    if len(data) < HEADER:
        return np.zeros(len(starts), dtype=np.int64), np.zeros(len(starts), dtype=np.bool_)
    at = np.minimum(at, len(data) - HEADER)
    ids = np.zeros(len(starts), dtype=np.int64)
    for place in range(1, HEADER):
        ids = (ids << 8) | data[at + place]
    return ids, framed & (data[at] == 0)


def schema_id(form: Format, text: str, kind: str) -> int:
    """Return the id of a schema of this kind (AVRO, JSON, PROTOBUF) in the format's registry; register it if the format
    says so."""
    found = registry(registry_settings(form.registry))
    return found.id_of(form.options["subject"], text, kind, register=flag(form, "auto.register.schemas", default=True))
