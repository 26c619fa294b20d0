"""Writes columns as Avro, a whole block at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
from service.formats.cells import Cells, bytes_of, constant, empty, even, flat_map, gathered, joined, signed, spread
from service.formats.varints import Ints, Octets

_DAY_UNITS = {"time-millis": 1000, "time-micros": 1}
_TIME_UNITS = {"timestamp-millis": 1000, "timestamp-micros": 1}


def encode(schema: Schema, document: ParsedSchema, column: pa.Array) -> Cells:
    """Return the bytes of each value. Raises AvroSchemaError where the schema cannot take the column."""
    schema = document.resolved(schema)
    if isinstance(schema, UnionOf):
        return _union(schema, document, column)
    if schema == Primitive("null"):
        return empty(len(column))
    if column.null_count:
        raise AvroSchemaError(f"a value is NULL, but the schema {_named(schema)} has no null")
    match schema:
        case Primitive("boolean"):
            return even(column.cast(pa.uint8()).to_numpy(zero_copy_only=False), 1)
        case Primitive("int" | "long"):
            return signed(_whole_numbers(schema, column))
        case Primitive("float"):
            return even(column.to_numpy(zero_copy_only=False).astype("<f4"), 4)
        case Primitive("double"):
            return even(column.to_numpy(zero_copy_only=False).astype("<f8"), 8)
        case Primitive() if pa.types.is_decimal(column.type):
            return _behind_lengths(_unscaled(column, schema.logical.scale if schema.logical else 0))
        case Primitive():
            return _behind_lengths(bytes_of(column))
        case Enumeration(_, symbols):
            places = pc.index_in(column, pa.array(symbols, pa.string()))
            if places.null_count:
                raise AvroSchemaError(f"the enum {schema.name} has no symbol for a value")
            return signed(places.to_numpy().astype(np.int64))
        case Fixed():
            return _fixed(schema, column)
        case ListOf(items):
            return _list(column, encode(items, document, column.flatten()))
        case MapOf(values):
            flat = flat_map(column)
            keys = encode(Primitive("string"), document, flat[0])
            return _list(column, joined([keys, encode(values, document, flat[1])]))
        case Record(_, members):
            places = {column.type.field(i).name: i for i in range(column.type.num_fields)}
            lacking = [m.name for m in members if m.name not in places]
            if lacking:
                raise AvroSchemaError(f'the schema has the field "{lacking[0]}", for which there is no column')
            if not members:
                raise AvroSchemaError("a record without fields cannot be written")
            fields = column.flatten()
            return joined([encode(m.schema, document, fields[places[m.name]]) for m in members])
        case _:
            raise AssertionError("references are resolved")


def _union(schema: UnionOf, document: ParsedSchema, column: pa.Array) -> Cells:
    """A union of null and one other, in any order, or of one alone: what a column can be."""
    branches = [document.resolved(branch) for branch in schema.branches]
    null = next((i for i, b in enumerate(branches) if b == Primitive("null")), None)
    others = [i for i, b in enumerate(branches) if b != Primitive("null")]
    if len(others) != 1:
        raise AvroSchemaError("a union of several types cannot be written: which one a value is cannot be told")
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if null is None and not valid.all():
        raise AvroSchemaError("a value is NULL, but its union has no null")
    inner = encode(branches[others[0]], document, column if valid.all() else column.drop_null())
    return joined([signed(np.where(valid, others[0], null or 0).astype(np.int64)), spread(inner, valid)])


def _whole_numbers(schema: Primitive, column: pa.Array) -> Ints:
    logical = schema.logical.name.removeprefix("local-") if schema.logical else ""
    if pa.types.is_timestamp(column.type):
        found = column.view(pa.int64()).to_numpy() // _TIME_UNITS.get(logical, 1)
    elif pa.types.is_time(column.type):
        found = column.view(pa.int64()).to_numpy() // _DAY_UNITS.get(logical, 1000 if schema.name == "int" else 1)
    elif pa.types.is_date(column.type):
        found = column.view(pa.int32()).to_numpy()
    else:
        found = column.to_numpy(zero_copy_only=False)
    if schema.name == "int" and len(found) and (found.min() < -(1 << 31) or found.max() >= 1 << 31):
        raise AvroSchemaError("a value has more than the 32 bits of an int")
    numbers: Ints = found.astype(np.int64)
    return numbers


def _behind_lengths(cells: Cells) -> Cells:
    return joined([signed(cells.lengths), cells])


def _unscaled(column: pa.Array, scale: int) -> Cells:
    """DECIMALs as the fewest bytes of two's complement, the highest first."""
    wide = _wide(column, scale)
    sign = np.where(wide[:, -1] >= 0x80, 0xFF, 0).astype(np.uint8)
    # The highest byte that says anything, and one more where its highest bit is not the sign.
    idle = (wide == sign[:, None])[:, ::-1]
    lengths = np.where(idle.all(axis=1), 1, wide.shape[1] - idle.argmin(axis=1)).astype(np.int64)
    top = wide[np.arange(len(wide)), lengths - 1]
    lengths += ((top ^ sign) >= 0x80).astype(np.int64)
    places = np.arange(wide.shape[1] - 1, -1, -1)
    return Cells(lengths, wide[:, ::-1][places < lengths[:, None]])


def _wide(column: pa.Array, scale: int) -> Octets:
    """DECIMALs as 17 bytes each, the lowest first: one more than a number of 38 digits needs."""
    column = column.cast(pa.decimal128(38, scale))
    data = np.frombuffer(column.buffers()[1], np.uint8)
    wide = data.reshape(-1, 16)[column.offset : column.offset + len(column)]
    sign = np.where(wide[:, -1] >= 0x80, 0xFF, 0).astype(np.uint8)
    return np.concatenate([wide, sign[:, None]], axis=1)


def _fixed(schema: Fixed, column: pa.Array) -> Cells:
    if pa.types.is_decimal(column.type):
        wide = _wide(column, schema.logical.scale if schema.logical else 0)[:, ::-1]
        sign = wide[:, :1]
        if schema.size < wide.shape[1]:
            dropped, wide = wide[:, : -schema.size], wide[:, -schema.size :]
            if (dropped != sign).any() or ((wide[:, 0] ^ sign[:, 0]) >= 0x80).any():
                raise AvroSchemaError(f"a DECIMAL needs more than the {schema.size} bytes of {schema.name}")
        else:
            wide = np.concatenate([np.repeat(sign, schema.size - wide.shape[1], axis=1), wide], axis=1)
        return even(np.ascontiguousarray(wide), schema.size)
    cells = bytes_of(column)
    if (cells.lengths != schema.size).any():
        raise AvroSchemaError(f"a value has not the {schema.size} bytes of {schema.name}")
    return cells


def _list(column: pa.Array, items: Cells) -> Cells:
    """Items as one block with their number in front, and the empty block behind."""
    counts = np.diff(column.offsets.to_numpy()).astype(np.int64)
    there = counts > 0
    number = spread(signed(counts[there]), there)
    return joined([number, gathered(items, counts), constant(b"\0", len(counts))])


def _named(schema: Schema) -> str:
    return getattr(schema, "name", type(schema).__name__)
