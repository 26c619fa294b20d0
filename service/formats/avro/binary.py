"""Writes one value, given as JSON, as Avro: a default of a schema, which is then read like any other value."""

from __future__ import annotations

import struct
from typing import Any

from service.formats.avro.schema import (
    AvroSchemaError,
    Enumeration,
    Fixed,
    ListOf,
    MapOf,
    ParsedSchema,
    Primitive,
    Record,
    Schema,
    UnionOf,
)


def written(schema: Schema, document: ParsedSchema, value: Any) -> bytes:
    """Return the bytes of a default; that of a union is one of its first branch. Raises AvroSchemaError if the
    value does not fit."""
    schema = document.resolved(schema)
    try:
        return _written(schema, document, value)
    except (TypeError, ValueError, KeyError, AttributeError, struct.error) as error:
        raise AvroSchemaError(f"the default {value!r} does not fit its schema") from error


def _written(schema: Schema, document: ParsedSchema, value: Any) -> bytes:
    match schema:
        case Primitive("null"):
            return b""
        case Primitive("boolean"):
            return bytes([bool(value)])
        case Primitive("int" | "long"):
            return varint(int(value))
        case Primitive("float" | "double" as name):
            return struct.pack("<f" if name == "float" else "<d", value)
        case Primitive(name):
            data = bytes(value.encode() if name == "string" else value.encode("latin-1"))
            return varint(len(data)) + data
        case Fixed():
            return bytes(value.encode("latin-1"))
        case Enumeration(_, symbols):
            return varint(symbols.index(value))
        case UnionOf(branches):
            return varint(0) + written(branches[0], document, value)
        case ListOf(items):
            inner = b"".join(written(items, document, each) for each in value)
            return (varint(len(value)) + inner if value else b"") + b"\0"
        case MapOf(values):
            key = Primitive("string")
            pairs = [_written(key, document, k) + written(values, document, v) for k, v in value.items()]
            return (varint(len(pairs)) + b"".join(pairs) if pairs else b"") + b"\0"
        case Record(_, members):
            return b"".join(
                written(m.schema, document, value[m.name] if m.name in value or not m.defaulted else m.default)
                for m in members
            )
        case _:
            raise TypeError(schema)


def varint(number: int) -> bytes:
    """Return an int or a long of Avro.

    >>> [varint(number).hex() for number in (0, -1, 1, 64)]  # the lowest bit is the sign
    ['00', '01', '02', '8001']
    """
    rest = (number << 1) ^ (number >> 63)
    made = bytearray()
    while rest > 0x7F:
        made.append((rest & 0x7F) | 0x80)
        rest >>= 7
    made.append(rest)
    return bytes(made)
