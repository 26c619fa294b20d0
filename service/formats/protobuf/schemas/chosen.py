"""The schema that the options of a format give, and which of its messages a record is."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

from service.formats.protobuf.schemas.compiler import compiled, described
from service.formats.protobuf.schemas.fit import check_columns
from service.formats.protobuf.schemas.schema import ProtobufMessage, ProtobufSchema
from service.plan.types import DataType

DESCRIPTORS = "descriptor-set"
"""The option whose value is a set of descriptors, in base64."""


def given(options: Mapping[str, str]) -> bool:
    """Return whether the options give a schema."""
    return bool(options.get("schema") or options.get(DESCRIPTORS))


def given_schema(options: Mapping[str, str]) -> ProtobufSchema:
    """Return the schema that the options give. Raises ProtobufSchemaError where it cannot be read."""
    if DESCRIPTORS in options:
        return described(base64.b64decode(options[DESCRIPTORS]))
    return compiled(options["schema"])


def given_message(schema: ProtobufSchema, options: Mapping[str, str]) -> ProtobufMessage:
    """Return the message that the options name, by default the first of the file. Raises ProtobufSchemaError."""
    if "message-class-name" in options:
        return schema.of_class(options["message-class-name"])
    return schema.named(options.get("message-name"))


def check_message(options: Mapping[str, str], names: Sequence[str], types: Sequence[DataType]) -> None:
    """Raise ProtobufSchemaError where the message that the options give has no fields for columns of these names and
    types."""
    schema = given_schema(options)
    check_columns(schema, given_message(schema, options), names, types, strict=True)
