"""Writes columns as Avro, a whole block at a time."""

from __future__ import annotations

from typing import Any

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
from service.formats.not_encodable import Flags, ValuePlaces
from service.formats.varints import Ints, Octets

Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]

_DAY_UNITS = {"time-millis": 1000, "time-micros": 1}
_TIME_UNITS = {"timestamp-millis": 1000, "timestamp-micros": 1}

_MOST_DIGITS = 38
"""Those of a DECIMAL of 128 bits: a column never has more."""


def encode(schema: Schema, document: ParsedSchema, column: pa.Array, places: ValuePlaces) -> Cells:
    """Return the bytes of each value, which come from these `places`.

    Raises AvroSchemaError where the schema cannot take the column, NotEncodable where it cannot take some of
    its values.

    >>> from service.formats.avro.schema import parse_schema
    >>> from service.formats.not_encodable import all_rows
    >>> document = parse_schema('["null", "string"]')
    >>> cells = encode(document.root, document, pa.array(["é", None]), all_rows(2))
    >>> [value.hex() for value in cells.binary().to_pylist()]  # the branch of the union, the length, the text
    ['0204c3a9', '00']
    """
    schema = document.resolved(schema)
    if isinstance(schema, UnionOf):
        return _union(schema, document, column, places)
    if schema == Primitive("null"):
        return empty(len(column))
    if not _takes(schema, column.type):
        raise AvroSchemaError(f"the schema {_named(schema)} cannot take a column of {column.type}")
    places.refuse(_nulls(column), column, f"but {_named(schema)} in its schema has no null")
    match schema:
        case Primitive("boolean"):
            return even(column.cast(pa.uint8()).to_numpy(zero_copy_only=False), 1)
        case Primitive("int" | "long"):
            return signed(_whole_numbers(schema, column, places))
        case Primitive("float" | "double" as name):
            width = 4 if name == "float" else 8
            return even(_floating(name, column, places).astype(f"<f{width}"), width)
        case Primitive() if pa.types.is_decimal(column.type):
            return _behind_lengths(_unscaled(_decimals(schema, column, places)))
        case Primitive("string") if pa.types.is_binary(column.type):
            return _behind_lengths(bytes_of(places.cast(column, pa.string(), "which is not UTF-8, as a string is")))
        case Primitive():
            return _behind_lengths(bytes_of(column))
        case Enumeration(_, symbols):
            found = pc.index_in(column, pa.array(symbols, pa.string()))
            places.refuse(_nulls(found), column, f"which is no symbol of the enum {schema.name}")
            return signed(found.to_numpy().astype(np.int64))
        case Fixed():
            return _fixed(schema, column, places)
        case ListOf(items):
            inside = places.inside("element", np.repeat(places.rows, _counts(column)))
            return _list(column, encode(items, document, column.flatten(), inside))
        case MapOf(values):
            rows = np.repeat(places.rows, _counts(column))
            flat = flat_map(column)
            keys = encode(Primitive("string"), document, flat[0], places.inside("key", rows))
            return _list(column, joined([keys, encode(values, document, flat[1], places.inside("value", rows))]))
        case Record(_, members):
            where = {column.type.field(i).name: i for i in range(column.type.num_fields)}
            lacking = [m.name for m in members if m.name not in where]
            if lacking:
                raise AvroSchemaError(f'the schema has the field "{lacking[0]}", for which there is no column')
            if not members:
                raise AvroSchemaError("a record without fields cannot be written")
            fields = column.flatten()
            return joined([encode(m.schema, document, fields[where[m.name]], places.inside(m.name)) for m in members])
        case _:
            raise AssertionError("references are resolved")


def _takes(schema: Schema, type_: pa.DataType) -> bool:
    """Whether a schema that is no union can hold values of a column of this type."""
    is_ = pa.types
    match schema:
        case Primitive("boolean"):
            return bool(is_.is_boolean(type_))
        case Primitive("int" | "long"):
            return bool(is_.is_integer(type_) or is_.is_temporal(type_))
        case Primitive("float" | "double"):
            return bool(is_.is_floating(type_) or is_.is_integer(type_))
        case Primitive("string") | Enumeration():
            return bool(is_.is_string(type_) or (is_.is_binary(type_) and isinstance(schema, Primitive)))
        case Primitive() | Fixed():
            return bool(is_.is_string(type_) or is_.is_binary(type_) or is_.is_decimal(type_))
        case ListOf():
            return bool(is_.is_list(type_))
        case MapOf():
            return bool(is_.is_map(type_))
        case _:
            return bool(is_.is_struct(type_))


def _nulls(column: pa.Array) -> Flags:
    if not column.null_count:
        return np.zeros(len(column), dtype=np.bool_)
    found: Flags = column.is_null().to_numpy(zero_copy_only=False)
    return found


def _counts(column: pa.Array) -> Ints:
    """The number of items of each list or map, none of which is NULL."""
    found: Ints = np.diff(column.offsets.to_numpy()).astype(np.int64)
    return found


def _union(schema: UnionOf, document: ParsedSchema, column: pa.Array, places: ValuePlaces) -> Cells:
    """A union of null and one other, in any order, or of one alone: what a column can be."""
    branches = [document.resolved(branch) for branch in schema.branches]
    null = next((i for i, b in enumerate(branches) if b == Primitive("null")), None)
    others = [i for i, b in enumerate(branches) if b != Primitive("null")]
    if len(others) != 1:
        raise AvroSchemaError("a union of several types cannot be written: a value does not say which of them it is")
    valid = ~_nulls(column)
    if null is None:
        places.refuse(~valid, column, "but its union has no null")
    kept = column if valid.all() else column.drop_null()
    inner = encode(branches[others[0]], document, kept, places.where(valid))
    return joined([signed(np.where(valid, others[0], null or 0).astype(np.int64)), spread(inner, valid)])


def _whole_numbers(schema: Primitive, column: pa.Array, places: ValuePlaces) -> Ints:
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
        places.refuse((found < -(1 << 31)) | (found >= 1 << 31), column, "which does not fit in the 32 bits of an int")
    numbers: Ints = found.astype(np.int64)
    return numbers


def _floating(name: str, column: pa.Array, places: ValuePlaces) -> Floats:
    """Numbers as float or double; a number that is no longer one, or a whole one that is another, is refused."""
    found = column.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", invalid="ignore"):
        made: Floats = found.astype(np.float32 if name == "float" else np.float64)
        if pa.types.is_floating(column.type):
            bad = np.isinf(made) & ~np.isinf(found)
        else:
            bad = (made.astype(np.int64) != found) | (made >= 2.0**63)
    places.refuse(bad, column, f"which does not fit in a {name}")
    return made


def _behind_lengths(cells: Cells) -> Cells:
    return joined([signed(cells.lengths), cells])


def _decimals(schema: Primitive | Fixed, column: pa.Array, places: ValuePlaces) -> pa.Array:
    """DECIMALs with the precision and the scale that the schema has."""
    precision, scale = (schema.logical.precision, schema.logical.scale) if schema.logical else (_MOST_DIGITS, 0)
    why = f"which does not fit in a decimal of {precision} digits, {scale} of them after the point"
    return places.cast(column, pa.decimal128(min(precision or _MOST_DIGITS, _MOST_DIGITS), scale), why)


def _unscaled(column: pa.Array) -> Cells:
    """DECIMALs as the fewest bytes of two's complement, the highest first."""
    wide = _wide(column)
    sign = np.where(wide[:, -1] >= 0x80, 0xFF, 0).astype(np.uint8)
    # The highest byte that says anything, and one more where its highest bit is not the sign.
    idle = (wide == sign[:, None])[:, ::-1]
    lengths = np.where(idle.all(axis=1), 1, wide.shape[1] - idle.argmin(axis=1)).astype(np.int64)
    top = wide[np.arange(len(wide)), lengths - 1]
    lengths += ((top ^ sign) >= 0x80).astype(np.int64)
    places = np.arange(wide.shape[1] - 1, -1, -1)
    return Cells(lengths, wide[:, ::-1][places < lengths[:, None]])


def _wide(column: pa.Array) -> Octets:
    """DECIMALs as 17 bytes each, the lowest first: one more than a number of 38 digits needs."""
    data = np.frombuffer(column.buffers()[1], np.uint8)
    wide = data.reshape(-1, 16)[column.offset : column.offset + len(column)]
    sign = np.where(wide[:, -1] >= 0x80, 0xFF, 0).astype(np.uint8)
    return np.concatenate([wide, sign[:, None]], axis=1)


def _fixed(schema: Fixed, column: pa.Array, places: ValuePlaces) -> Cells:
    if pa.types.is_decimal(column.type):
        wide = _wide(_decimals(schema, column, places))[:, ::-1]
        sign = wide[:, :1]
        if schema.size < wide.shape[1]:
            dropped, wide = wide[:, : -schema.size], wide[:, -schema.size :]
            bad = (dropped != sign).any(axis=1) | ((wide[:, 0] ^ sign[:, 0]) >= 0x80)
            places.refuse(bad, column, f"which needs more than the {schema.size} bytes of {schema.name}")
        else:
            wide = np.concatenate([np.repeat(sign, schema.size - wide.shape[1], axis=1), wide], axis=1)
        return even(np.ascontiguousarray(wide), schema.size)
    cells = bytes_of(column)
    places.refuse(cells.lengths != schema.size, column, f"which has not the {schema.size} bytes of {schema.name}")
    return cells


def _list(column: pa.Array, items: Cells) -> Cells:
    """Items as one block with their number in front, and the empty block behind."""
    counts = _counts(column)
    there = counts > 0
    number = spread(signed(counts[there]), there)
    return joined([number, gathered(items, counts), constant(b"\0", len(counts))])


def _named(schema: Schema) -> str:
    return getattr(schema, "name", type(schema).__name__)
