"""Passes over one Avro value at a time, to find where the next one begins."""

from __future__ import annotations

from typing import Any

from service.formats.avro.schema import (
    Enumeration,
    Fixed,
    ListOf,
    MapOf,
    ParsedSchema,
    Primitive,
    Record,
    Reference,
    Schema,
    UnionOf,
)

_WIDTHS = {"null": 0, "boolean": 1, "float": 4, "double": 8}


class Skipper:
    """Called with bytes, a place and the end of the record, it returns the place behind the value.

    Raises ValueError or IndexError where the record ends before, RecursionError where it is nested too deeply.
    """

    def __init__(self, schema: Schema, document: ParsedSchema) -> None:
        self._schema = schema
        self._document = document

    def __call__(self, data: Any, at: int, end: int) -> int:
        behind = self._skip(self._schema, data, at, end)
        if behind > end:
            raise ValueError(behind)
        return behind

    def _skip(self, schema: Schema, data: Any, at: int, end: int) -> int:
        if at > end:
            raise ValueError(at)
        match schema:
            case Primitive("int" | "long") | Enumeration():
                return _varint(data, at)[1]
            case Primitive("bytes" | "string"):
                length, at = _varint(data, at)
                if length < 0:
                    raise ValueError(length)
                return at + length
            case Primitive(name):
                return at + _WIDTHS[name]
            case Fixed():
                return at + schema.size
            case Record():
                for member in schema.members:
                    at = self._skip(member.schema, data, at, end)
                return at
            case UnionOf():
                branch, at = _varint(data, at)
                if branch < 0:
                    raise ValueError(branch)
                return self._skip(schema.branches[branch], data, at, end)
            case Reference():
                return self._skip(self._document.resolved(schema), data, at, end)
            case ListOf(items):
                return self._blocks((items,), data, at, end)
            case MapOf(values):
                return self._blocks((Primitive("string"), values), data, at, end)

    def _blocks(self, item: tuple[Schema, ...], data: Any, at: int, end: int) -> int:
        while True:
            count, at = _varint(data, at)
            if count == 0:
                return at
            if count < 0:
                size, at = _varint(data, at)
                if size < 0:
                    raise ValueError(size)
                at += size
                continue
            for _ in range(count):
                before = at
                for schema in item:
                    at = self._skip(schema, data, at, end)
                if at == before:
                    break  # items without bytes


def _varint(data: Any, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = int(data[at])
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise ValueError(shift)
