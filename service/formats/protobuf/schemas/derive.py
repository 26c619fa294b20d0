"""The .proto file of a table's columns, for a registry that has none yet."""

from __future__ import annotations

import re
from collections.abc import Sequence

from service.formats.protobuf.schemas.schema import TIMESTAMP, ProtobufSchemaError
from service.plan.types import (
    Array,
    Binary,
    DataType,
    Decimal,
    Map,
    Row,
    Simple,
    Text,
    Timestamp,
    TimestampLtz,
    flink,
)

RECORD = "Record"
"""The message of a table's rows."""

_PLAIN = {
    "BOOLEAN": "bool",
    "TINYINT": "int32",
    "SMALLINT": "int32",
    "INT": "int32",
    "BIGINT": "int64",
    "FLOAT": "float",
    "DOUBLE": "double",
    "STRING": "string",
    "BYTES": "bytes",
    "DATE": "string",
}
_KEYS = frozenset({"BOOLEAN", "INT", "BIGINT", "TINYINT", "SMALLINT", "STRING"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def derived(names: Sequence[str], types: Sequence[DataType], nullable: Sequence[bool]) -> str:
    """Return a file with the message of these columns, numbered from 1 in their order. Raises ProtobufSchemaError where
    there is none.

    >>> from service.plan.types import BIGINT, STRING
    >>> print(derived(["name", "n"], [STRING, BIGINT], [False, True]))
    syntax = "proto3";
    <BLANKLINE>
    message Record {
      string name = 1;
      optional int64 n = 2;
    }
    <BLANKLINE>
    """
    body = _message(RECORD, names, types, nullable, "")
    imports = 'import "google/protobuf/timestamp.proto";\n' if TIMESTAMP in body else ""
    return f'syntax = "proto3";\n{imports}\n{body}'


def _message(title: str, names: Sequence[str], types: Sequence[DataType], nullable: Sequence[bool], indent: str) -> str:
    inner: list[str] = []
    lines: list[str] = []
    for number, (name, type_, may_be_null) in enumerate(zip(names, types, nullable, strict=True), 1):
        if not _NAME.fullmatch(name):
            raise ProtobufSchemaError(f'column "{name}" cannot be the name of a field in Protocol Buffers')
        what = _field(type_, name, indent + "  ", inner)
        single = not isinstance(type_, Array | Map)
        lines.append(f"{indent}  {'optional ' if may_be_null and single else ''}{what} {name} = {number};\n")
    return f"{indent}message {title} {{\n{''.join(inner)}{''.join(lines)}{indent}}}\n"


def _field(type_: DataType, name: str, indent: str, inner: list[str]) -> str:
    match type_:
        case Array(element):
            return f"repeated {_single(element, name, indent, inner)}"
        case Map(key, value):
            if not (isinstance(key, Text) or (isinstance(key, Simple) and key.name in _KEYS)):
                raise ProtobufSchemaError(f"the keys of a map in Protocol Buffers cannot be {flink(key)}")
            return f"map<{_single(key, name, indent, inner)}, {_single(value, name, indent, inner)}>"
        case _:
            return _single(type_, name, indent, inner)


def _single(type_: DataType, name: str, indent: str, inner: list[str]) -> str:
    match type_:
        case Simple(kind) if kind in _PLAIN:
            return _PLAIN[kind]
        case Text() | Decimal():
            return "string"
        case Binary():
            return "bytes"
        case Timestamp() | TimestampLtz():
            return TIMESTAMP
        case Row(names, types):
            title = f"{name}_row"
            inner.append(_message(title, names, types, [True] * len(names), indent))
            return title
        case _:
            raise ProtobufSchemaError(f"Protocol Buffers have no type for {flink(type_)} here")
