"""Confluent's wire format: a zero byte, the id of the schema in four bytes, the highest first, then the value.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from service.formats.avro.cursor import Flags, Ints

HEADER = 5
"""Bytes in front of the value."""


def header(schema: int) -> bytes:
    """The bytes in front of a value of this schema."""
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
