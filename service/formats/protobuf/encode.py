"""Writes columns as messages of Protocol Buffers, a whole block at a time: what stands in a message in the order of the
numbers of its fields, as Protocol Buffers' own libraries write it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.cells import (
    Cells,
    bytes_of,
    constant,
    empty,
    even,
    flat_map,
    gathered,
    joined,
    signed,
    spread,
    unsigned,
)
from service.formats.not_encodable import ValuePlaces
from service.formats.protobuf.schemas.schema import (
    FIXED,
    TIMESTAMP,
    VARINTS,
    WRAPPERS,
    ProtobufField,
    ProtobufMessage,
    ProtobufSchema,
    ProtobufSchemaError,
)
from service.formats.protobuf.wire import BYTES, EIGHT, FOUR, VARINT
from service.formats.varints import Ints

_RANGES = {
    **dict.fromkeys(("int32", "sint32", "sfixed32", "enum"), (-(1 << 31), 1 << 31)),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), (-(1 << 63), 1 << 63)),
    **dict.fromkeys(("uint32", "fixed32"), (0, 1 << 32)),
    **dict.fromkeys(("uint64", "fixed64"), (0, 1 << 64)),
}
"""The first number of a kind of field, and the first beyond."""

_WIDTHS = {"fixed32": "<u4", "sfixed32": "<u4", "fixed64": "<u8", "sfixed64": "<u8", "float": "<f4", "double": "<f8"}

_DEFAULTS = {"string": "", "bytes": b"", "bool": False}
"""What stands for NULL where there must be a value: numbers have 0."""


@dataclass(frozen=True, slots=True)
class MessageEncoder:
    """Writes messages of a schema. `null_text` stands for a text that is NULL in an array or a map.

    >>> from service.formats.not_encodable import all_rows
    >>> from service.formats.protobuf.schemas.compiler import compiled
    >>> schema = compiled('syntax = "proto3"; message Pay { string who = 1; optional int64 n = 2; }')
    >>> rows = pa.array([{"who": "ann", "n": 150}, {"who": "bob", "n": None}])
    >>> cells = MessageEncoder(schema).message(schema.messages["Pay"], rows, all_rows(2))
    >>> [value.hex() for value in cells.binary().to_pylist()]  # each field behind its number; no field for NULL
    ['0a03616e6e109601', '0a03626f62']
    """

    schema: ProtobufSchema
    null_text: str = ""

    def message(self, message: ProtobufMessage, rows: pa.StructArray, at: ValuePlaces) -> Cells:
        """Return the bytes of each row, none of which is NULL.

        Raises ProtobufSchemaError where a column has no field that can hold it, NotEncodable where a field cannot hold
        some of the values.
        """
        places = {rows.type.field(i).name: i for i in range(rows.type.num_fields)}
        for name in places:
            if message.field(name) is None:
                raise ProtobufSchemaError(f'column "{name}" has no field in the message {message.name}')
        lacking = [f.name for f in message.fields if f.required and f.name not in places]
        if lacking:
            raise ProtobufSchemaError(f'the field "{lacking[0]}" of {message.name} is required, and has no column')
        columns = rows.flatten()
        parts = [self._field(f, columns[places[f.name]], at.inside(f.name)) for f in message.fields if f.name in places]
        return joined(parts) if parts else empty(len(rows))

    def _field(self, field: ProtobufField, column: pa.Array, at: ValuePlaces) -> Cells:
        """Return a field of each row, with its tag; nothing where there is none."""
        entry = self.schema.messages.get(field.type)
        if pa.types.is_map(column.type) or (entry is not None and entry.entry):
            return self._map(field, entry, column, at)
        if field.repeated or pa.types.is_list(column.type):
            return self._list(field, column, at)
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        if field.required:
            at.refuse(~valid, column, f'but the field "{field.name}" is required')
        if not field.presence and field.kind != "message":
            # What is the default is not written, as no reader could tell.
            filled = self._filled(field, column)
            there = valid & ~self._plain(field, filled)
        else:
            there = valid
        kept = column if there.all() else column.filter(pa.array(there))
        return spread(joined([_tag(field, _form(field), len(kept)), self._value(field, kept, at.where(there))]), there)

    def _plain(self, field: ProtobufField, column: pa.Array) -> Any:
        """Return whether each value is the default of a field that cannot tell."""
        type_ = column.type
        if pa.types.is_floating(type_):
            # -0.0 is written: its bits are others.
            found = column.to_numpy(zero_copy_only=False)
            return (found == 0) & ~np.signbit(found)
        if pa.types.is_string(type_) or pa.types.is_binary(type_):
            if field.kind != "enum":
                return pc.binary_length(column).to_numpy(zero_copy_only=False) == 0
            names = [name for name, number in self.schema.enums[field.type].numbers.items() if number == field.default]
            return pc.is_in(column, pa.array(names, pa.string())).to_numpy(zero_copy_only=False)
        if pa.types.is_boolean(type_):
            return ~column.to_numpy(zero_copy_only=False)
        if pa.types.is_integer(type_) or (pa.types.is_decimal(type_) and field.kind != "string"):
            return pc.equal(column, pa.scalar(0).cast(type_)).to_numpy(zero_copy_only=False)
        return np.zeros(len(column), dtype=np.bool_)

    def _list(self, field: ProtobufField, column: pa.Array, at: ValuePlaces) -> Cells:
        if not (field.repeated and pa.types.is_list(column.type)):
            raise _misfit(field, column)
        counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
        items = column.flatten()
        inside = at.inside("element", np.repeat(at.rows, counts))
        if field.packed:
            there = counts > 0
            held = gathered(self._value(field, self._filled(field, items), inside), counts)
            kept = Cells(held.lengths[there], held.data)
            front = [_tag(field, BYTES, len(kept.lengths)), unsigned(kept.lengths.astype(np.uint64))]
            return spread(joined([*front, kept]), there)
        values = self._value(field, self._filled(field, items), inside)
        return gathered(joined([_tag(field, _form(field), len(items)), values]), counts)

    def _map(self, field: ProtobufField, entry: ProtobufMessage | None, column: pa.Array, at: ValuePlaces) -> Cells:
        if entry is None or not entry.entry or not pa.types.is_map(column.type):
            raise _misfit(field, column)
        key, value = entry.field("key"), entry.field("value")
        assert key is not None
        assert value is not None
        there = column.drop_null()
        counts = np.zeros(len(column), dtype=np.int64)
        counts[column.is_valid().to_numpy(zero_copy_only=False)] = np.diff(there.offsets.to_numpy())
        parts: list[Cells] = []
        rows = np.repeat(at.rows, counts)
        for each, flat in zip((key, value), flat_map(there), strict=True):
            items = self._filled(each, flat)
            parts += [_tag(each, _form(each), len(items)), self._value(each, items, at.inside(each.name, rows))]
        entries = _behind_lengths(joined(parts))
        return gathered(joined([_tag(field, BYTES, len(entries.lengths)), entries]), counts)

    def _filled(self, field: ProtobufField, column: pa.Array) -> pa.Array:
        """Return a column with a value in place of each NULL: in arrays and maps every item is one."""
        if not column.null_count:
            return column
        if field.kind == "message":
            if not pa.types.is_struct(column.type):
                return column
            fields = [column.type.field(i) for i in range(column.type.num_fields)]
            return pa.StructArray.from_arrays(column.flatten(), fields=fields)
        if pa.types.is_string(column.type):
            enum = self.schema.enums.get(field.type)
            return pc.fill_null(column, next(iter(enum.numbers)) if enum else self.null_text)
        if pa.types.is_decimal(column.type) or pa.types.is_date(column.type):
            return column if field.kind == "string" else pc.fill_null(column, pa.scalar(0).cast(column.type))
        return pc.fill_null(column, _DEFAULTS.get(field.kind, 0))

    def _value(self, field: ProtobufField, column: pa.Array, at: ValuePlaces) -> Cells:
        """Return values without their tags; none is NULL."""
        kind, type_ = field.kind, column.type
        if kind == "message":
            return _behind_lengths(self._message(field, column, at))
        if kind == "string" and (pa.types.is_decimal(type_) or pa.types.is_date(type_)):
            column, type_ = pc.fill_null(column.cast(pa.string()), self.null_text), pa.string()
        if kind in ("string", "bytes"):
            if not (pa.types.is_string(type_) or pa.types.is_binary(type_)):
                raise _misfit(field, column)
            if kind == "string" and pa.types.is_binary(type_):
                column = at.cast(column, pa.string(), f'which is not UTF-8, as the string "{field.name}" is')
            return _behind_lengths(bytes_of(column))
        if kind in ("float", "double"):
            if not pa.types.is_floating(type_) or (kind == "float" and type_ != pa.float32()):
                raise _misfit(field, column)
            return even(column.to_numpy(zero_copy_only=False).astype(_WIDTHS[kind]), FIXED[kind])
        if kind == "bool":
            if not pa.types.is_boolean(type_):
                raise _misfit(field, column)
            return even(column.cast(pa.uint8()).to_numpy(zero_copy_only=False), 1)
        return self._whole(field, column, at)

    def _whole(self, field: ProtobufField, column: pa.Array, at: ValuePlaces) -> Cells:
        """Return whole numbers, and the names of an enum."""
        kind, enum = field.kind, self.schema.enums.get(field.type)
        if enum is not None and pa.types.is_string(column.type):
            column = _numbers_of(enum.name, enum.numbers, column, at)
        why = f'which does not fit in the field "{field.name}", {kind}'
        if pa.types.is_decimal(column.type):
            wanted = pa.uint64() if kind in ("uint64", "fixed64") else pa.int64()
            column = at.cast(at.cast(column, pa.decimal128(38, 0), why), wanted, why)
        if kind not in _RANGES or not pa.types.is_integer(column.type):
            raise _misfit(field, column)
        found = column.to_numpy(zero_copy_only=False)
        first, beyond = _RANGES[kind]
        if len(found) and (int(found.min()) < first or int(found.max()) >= beyond):
            at.refuse(np.array([not first <= int(each) < beyond for each in found]), column, why)
        if found.dtype != np.uint64:
            found = found.astype(np.int64)
        if kind in FIXED:
            return even(found.view(np.uint64).astype(_WIDTHS[kind]), FIXED[kind])
        return signed(found) if kind in ("sint32", "sint64") else unsigned(found.view(np.uint64).copy())

    def _message(self, field: ProtobufField, column: pa.Array, at: ValuePlaces) -> Cells:
        message = self.schema.messages[field.type]
        if pa.types.is_struct(column.type):
            return self.message(message, column, at)
        if field.type == TIMESTAMP and pa.types.is_timestamp(column.type):
            micros = pc.fill_null(column.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
            parts = [pa.array(micros // 1_000_000), pa.array((micros % 1_000_000 * 1000).astype(np.int32))]
            return self.message(message, pa.StructArray.from_arrays(parts, ["seconds", "nanos"]), at)
        if field.type in WRAPPERS:
            return self.message(message, pa.StructArray.from_arrays([column], ["value"]), at)
        raise _misfit(field, column)


def _numbers_of(name: str, numbers: Any, column: pa.Array, at: ValuePlaces) -> pa.Array:
    places = pc.index_in(column, pa.array(list(numbers), pa.string()))
    unknown = places.is_null().to_numpy(zero_copy_only=False)
    at.refuse(unknown, column, f"which is no name of the enum {name}")
    return pa.array(list(numbers.values()), pa.int64()).take(places)


def _form(field: ProtobufField) -> int:
    if field.kind in VARINTS:
        return VARINT
    if field.kind in FIXED:
        return EIGHT if FIXED[field.kind] == 8 else FOUR
    if field.kind == "group":
        raise ProtobufSchemaError(f'the field "{field.name}" is a group, which is not written')
    return BYTES


def _tag(field: ProtobufField, form: int, count: int) -> Cells:
    return constant(unsigned(np.array([field.number << 3 | form], np.uint64)).data.tobytes(), count)


def _behind_lengths(cells: Cells) -> Cells:
    lengths: Ints = cells.lengths
    return joined([unsigned(lengths.astype(np.uint64)), cells])


def _misfit(field: ProtobufField, column: pa.Array) -> ProtobufSchemaError:
    named = field.type or field.kind
    declared = f"{'repeated ' if field.repeated else ''}{named}"
    return ProtobufSchemaError(f'the field "{field.name}", {declared}, cannot take a column of {column.type}')
