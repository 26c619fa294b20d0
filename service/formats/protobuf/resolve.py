"""The mapping of message fields to columns, resolved once for each schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa

from service.formats.protobuf import values
from service.formats.protobuf.nodes import (
    Absent,
    Entries,
    FieldReader,
    Instant,
    Items,
    MessageFields,
    MessageItems,
    NumberItems,
    Repeated,
    Single,
    Struct,
    TextItems,
    Wrapped,
)
from service.formats.protobuf.schemas.fit import Misfit, check_columns, is_bytes, is_text
from service.formats.protobuf.schemas.schema import (
    FIXED,
    TIMESTAMP,
    VARINTS,
    ProtobufField,
    ProtobufMessage,
    ProtobufSchema,
)
from service.formats.protobuf.values import Column
from service.formats.protobuf.wire import BYTES, EIGHT, FOUR, GROUP, VARINT
from service.plan.types import (
    Array,
    DataType,
    Decimal,
    Map,
    Row,
    Simple,
    Timestamp,
    TimestampLtz,
    arrow,
    flink,
)


@dataclass(frozen=True, slots=True)
class MessageResolver:
    """Reads messages of a schema. With `defaults` a column whose value is not written is its field's default, else NULL
    where the field can tell. With `strict` a column without a field is refused, else it is NULL."""

    schema: ProtobufSchema
    defaults: bool = False
    strict: bool = False

    def fields(self, message: ProtobufMessage, names: Sequence[str], types: Sequence[DataType]) -> MessageFields:
        """Return what reads columns of these names and types. Raises Misfit where they do not fit."""
        check_columns(self.schema, message, names, types, strict=self.strict)
        return self._fields(message, names, types)

    def _fields(self, message: ProtobufMessage, names: Sequence[str], types: Sequence[DataType]) -> MessageFields:
        nodes: list[FieldReader] = []
        numbers: list[int] = []
        forms: dict[int, frozenset[int]] = {}
        closed: dict[int, tuple[int, ...]] = {}
        oneofs: dict[tuple[int, ...], None] = {}
        for name, type_ in zip(names, types, strict=True):
            field = message.field(name)
            numbers.append(0 if field is None else field.number)
            nodes.append(Absent(arrow(type_)) if field is None else self._node(field, type_))
            if field is not None:
                forms[field.number] = _forms(field)
                if field.oneof:
                    oneofs[field.oneof] = None
        by_number = {field.number: field for field in message.fields}
        for number in (each for group in oneofs for each in group):
            forms[number] = _forms(by_number[number])
        for number in forms:
            field = by_number[number]
            if field.kind == "enum" and self.schema.enums[field.type].closed:
                closed[number] = tuple(self.schema.enums[field.type].numbers.values())
        return MessageFields(tuple(numbers), tuple(nodes), forms, tuple(oneofs), closed)

    def _node(self, field: ProtobufField, type_: DataType) -> FieldReader:
        entry = self.schema.messages.get(field.type)
        if entry is not None and entry.entry:
            return self._map(field, entry, type_)
        if field.repeated:
            assert isinstance(type_, Array)
            return Repeated(self._items(field, type_.element), arrow(type_), self.defaults)
        if field.kind == "message":
            return self._message(field, type_, always=self.defaults)
        return Single(self._column(field, type_), self._default(field, type_))

    def _default(self, field: ProtobufField, type_: DataType) -> pa.Scalar:
        """Return what stands for a value that is not written."""
        if field.presence and not self.defaults:
            return pa.scalar(None, arrow(type_))
        value: Any = field.default
        if field.kind == "enum" and is_text(type_):
            names = {number: name for name, number in reversed([*self.schema.enums[field.type].numbers.items()])}
            value = names[value]
        elif isinstance(type_, Decimal) or type_ == Simple("DATE"):
            value = Number(value) if field.kind != "string" else None
        elif isinstance(value, str) and not is_text(type_):
            value = value.encode()
        elif isinstance(value, bytes) and is_text(type_):
            value = value.decode(errors="replace")
        try:
            return pa.scalar(value, arrow(type_))
        except (pa.ArrowInvalid, OverflowError) as error:
            raise Misfit(f'the default of the field "{field.name}", {value}, is no {flink(type_)}') from error

    def _map(self, field: ProtobufField, entry: ProtobufMessage, type_: DataType) -> FieldReader:
        assert isinstance(type_, Map)
        inner = MessageResolver(self.schema, defaults=True)
        key, value = entry.field("key"), entry.field("value")
        assert key is not None
        assert value is not None
        always = value.kind == "message"
        fields = inner._fields(entry, ("key", "value"), (type_.key, type_.value))
        if always:  # the entry's message is there always; what it lacks is as elsewhere
            node = self._message(value, type_.value, always=True)
            fields = MessageFields(fields.numbers, (fields.nodes[0], node), fields.forms, fields.oneofs, fields.closed)
        return Entries(fields, arrow(type_), self.defaults)

    def _items(self, field: ProtobufField, type_: DataType) -> Items:
        if field.kind == "message":
            return MessageItems(self._message(field, type_, always=True))
        column = self._column(field, type_)
        return TextItems(column) if field.kind in ("string", "bytes") else NumberItems(field.kind, column)

    def _message(self, field: ProtobufField, type_: DataType, *, always: bool) -> FieldReader:
        message = self.schema.messages[field.type]
        if isinstance(type_, Row):
            return Struct(self._fields(message, type_.names, type_.types), arrow(type_), always)
        inner = MessageResolver(self.schema, defaults=True)
        if field.type == TIMESTAMP and isinstance(type_, Timestamp | TimestampLtz):
            fields = inner._fields(message, ("seconds", "nanos"), (Simple("BIGINT"), Simple("INT")))
            return Instant(fields, type_.precision, always)
        return Wrapped(inner._fields(message, ("value",), (type_,)), always)

    def _column(self, field: ProtobufField, type_: DataType) -> Column:
        match field.kind:
            case "bool":
                return values.booleans
            case "float" | "double":
                return values.floats(field.kind, type_)
            case "enum" if is_text(type_):
                return values.enum_names(self.schema.enums[field.type])
            case "string" | "bytes" if is_text(type_):
                return values.text
            case "string" | "bytes" if is_bytes(type_):
                return values.plain_bytes
            case "string":
                return values.parsed(type_)
            case _:
                return values.whole_numbers(field.kind, type_)


def _forms(field: ProtobufField) -> frozenset[int]:
    """Return how a field may be written: numbers of a repeated field packed or one by one, whatever its schema says."""
    if field.kind in VARINTS:
        alone = VARINT
    elif field.kind in FIXED:
        alone = EIGHT if FIXED[field.kind] == 8 else FOUR
    else:
        return frozenset({GROUP if field.kind == "group" else BYTES})
    return frozenset({alone, BYTES} if field.repeated else {alone})
