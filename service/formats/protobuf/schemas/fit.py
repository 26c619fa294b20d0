"""The check whether columns of a table can hold the values of message fields.

Columns and fields meet by their names. The types are those of Flink's mapping, and more where no value is lost:
https://nightlies.apache.org/flink/flink-docs-stable/docs/connectors/table/formats/protobuf/#data-type-mapping
"""

from __future__ import annotations

from collections.abc import Sequence

from service.formats.protobuf.schemas.schema import (
    TIMESTAMP,
    VARINTS,
    WRAPPERS,
    ProtobufField,
    ProtobufMessage,
    ProtobufSchema,
    ProtobufSchemaError,
)
from service.plan.types import (
    STRING,
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

WHOLE = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
"""Types of whole numbers."""

WHOLE_KINDS = (VARINTS - {"bool", "enum"}) | {"fixed32", "sfixed32", "fixed64", "sfixed64"}
"""Kinds of fields that are whole numbers."""


class Misfit(ProtobufSchemaError):
    """A column that cannot hold what its field holds."""


def check_columns(
    schema: ProtobufSchema,
    message: ProtobufMessage,
    names: Sequence[str],
    types: Sequence[DataType],
    *,
    strict: bool,
    path: str = "",
) -> None:
    """Raise Misfit where a column cannot hold its field, and, if `strict`, where it has none."""
    for name, type_ in zip(names, types, strict=True):
        field = message.field(name)
        if field is not None:
            _check(schema, field, type_, f"{path}{name}", strict)
        elif strict:
            raise Misfit(f'column "{path}{name}" has no field in the message {message.name}')


def _check(schema: ProtobufSchema, field: ProtobufField, type_: DataType, path: str, strict: bool) -> None:
    entry = schema.messages.get(field.type)
    if entry is not None and entry.entry:
        if not isinstance(type_, Map):
            raise _misfit(field, type_, path)
        for part, inner in zip(entry.fields, (type_.key, type_.value), strict=True):
            _check_single(schema, part, inner, f"{path}.{part.name}", strict)
    elif field.repeated:
        if not isinstance(type_, Array):
            raise _misfit(field, type_, path)
        _check_single(schema, field, type_.element, path, strict)
    else:
        _check_single(schema, field, type_, path, strict)


def _check_single(schema: ProtobufSchema, field: ProtobufField, type_: DataType, path: str, strict: bool) -> None:
    if field.kind != "message":
        if not _fits(field.kind, type_):
            raise _misfit(field, type_, path)
        return
    message = schema.messages[field.type]
    if isinstance(type_, Row):
        check_columns(schema, message, type_.names, type_.types, strict=strict, path=f"{path}.")
    elif field.type in WRAPPERS:
        check_columns(schema, message, ("value",), (type_,), strict=True, path=f"{path}.")
    elif field.type == TIMESTAMP and isinstance(type_, Timestamp | TimestampLtz):
        parts = (Simple("BIGINT"), Simple("INT"))
        check_columns(schema, message, ("seconds", "nanos"), parts, strict=True, path=f"{path}.")
    else:
        raise _misfit(field, type_, path)


def _fits(kind: str, type_: DataType) -> bool:
    name = type_.name if isinstance(type_, Simple) else ""
    match kind:
        case "bool":
            return name == "BOOLEAN"
        case "float":
            return name in ("FLOAT", "DOUBLE")
        case "double":
            return name == "DOUBLE"
        case "enum":
            return is_text(type_) or name in WHOLE
        case "string":
            return is_text(type_) or is_bytes(type_) or isinstance(type_, Decimal) or name == "DATE"
        case "bytes":
            return is_text(type_) or is_bytes(type_)
        case _:
            return kind in WHOLE_KINDS and (name in WHOLE or isinstance(type_, Decimal))


def is_text(type_: DataType) -> bool:
    """Return whether a type is one of texts."""
    return type_ == STRING or isinstance(type_, Text)


def is_bytes(type_: DataType) -> bool:
    """Return whether a type is one of bytes."""
    return type_ == Simple("BYTES") or isinstance(type_, Binary)


def _misfit(field: ProtobufField, type_: DataType, path: str) -> Misfit:
    named = field.type if field.kind in ("message", "enum", "group") else field.kind
    return Misfit(f'column "{path}" is {flink(type_)}, but its field is {"repeated " if field.repeated else ""}{named}')
