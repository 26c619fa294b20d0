"""Writes columns as Avro, a whole block at a time.

Every part of a schema makes `Cells`: the bytes of each value, one after the other, and how many bytes each has. A
record puts the cells of its fields together, a list those of its items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.avro.cursor import Ints
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

Octets = np.ndarray[Any, np.dtype[np.uint8]]

_DAY_UNITS = {"time-millis": 1000, "time-micros": 1}
_TIME_UNITS = {"timestamp-millis": 1000, "timestamp-micros": 1}


@dataclass(frozen=True, slots=True)
class Cells:
    """The bytes of values, one after the other, and how many each has."""

    lengths: Ints
    data: Octets

    def binary(self) -> pa.Array:
        """The values as an Arrow array."""
        offsets = np.zeros(len(self.lengths) + 1, dtype=np.int64)
        self.lengths.cumsum(out=offsets[1:])
        if offsets[-1] >= 1 << 31:
            raise pa.ArrowCapacityError("the records of a block have more than 2 GiB")
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.binary(), len(self.lengths), buffers)


def encode(schema: Schema, document: ParsedSchema, column: pa.Array) -> Cells:
    """Return the bytes of each value. Raises AvroSchemaError where the schema cannot take the column."""
    schema = document.resolved(schema)
    if isinstance(schema, UnionOf):
        return _union(schema, document, column)
    if schema == Primitive("null"):
        return Cells(np.zeros(len(column), dtype=np.int64), np.zeros(0, dtype=np.uint8))
    if column.null_count:
        raise AvroSchemaError(f"a value is NULL, but the schema {_named(schema)} has no null")
    match schema:
        case Primitive("boolean"):
            return _even(column.cast(pa.uint8()).to_numpy(zero_copy_only=False), 1)
        case Primitive("int" | "long"):
            return varints(_whole_numbers(schema, column))
        case Primitive("float"):
            return _even(column.to_numpy(zero_copy_only=False).astype("<f4"), 4)
        case Primitive("double"):
            return _even(column.to_numpy(zero_copy_only=False).astype("<f8"), 8)
        case Primitive() if pa.types.is_decimal(column.type):
            return _behind_lengths(_unscaled(column, schema.logical.scale if schema.logical else 0))
        case Primitive():
            return _behind_lengths(_slices(column))
        case Enumeration(_, symbols):
            places = pc.index_in(column, pa.array(symbols, pa.string()))
            if places.null_count:
                raise AvroSchemaError(f"the enum {schema.name} has no symbol for a value")
            return varints(places.to_numpy().astype(np.int64))
        case Fixed():
            return _fixed(schema, column)
        case ListOf(items):
            return _list(column, encode(items, document, column.flatten()))
        case MapOf(values):
            flat = _flat_map(column)
            keys = encode(Primitive("string"), document, flat[0])
            return _list(column, joined([keys, encode(values, document, flat[1])]))
        case Record(_, members):
            places = {column.type.field(i).name: i for i in range(column.type.num_fields)}
            lacking = [m.name for m in members if m.name not in places]
            if lacking:
                raise AvroSchemaError(f'the schema has the field "{lacking[0]}", for which there is no column')
            fields = column.flatten()
            return joined([encode(m.schema, document, fields[places[m.name]]) for m in members])
        case _:
            raise AssertionError("references are resolved")


def varints(values: Ints) -> Cells:
    """Numbers as ints or longs of Avro."""
    rest = ((values << 1) ^ (values >> 63)).view(np.uint64)
    if len(rest) == 0:
        return Cells(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint8))
    most = max(1, (int(rest.max()).bit_length() + 6) // 7)
    if most == 1:
        return Cells(np.ones(len(rest), dtype=np.int64), rest.astype(np.uint8))
    made = np.empty((len(rest), most), dtype=np.uint8)
    lengths = np.ones(len(rest), dtype=np.int64)
    for place in range(most):
        more = rest > np.uint64(0x7F)
        made[:, place] = (rest & np.uint64(0x7F)).astype(np.uint8) | (more.view(np.uint8) << 7)
        lengths += more
        rest >>= np.uint64(7)
    return Cells(lengths, made[np.arange(most) < lengths[:, None]])


def joined(cells: Sequence[Cells]) -> Cells:
    """The bytes of each of several cells behind each other."""
    if len(cells) == 1:
        return cells[0]
    if not cells:
        raise AvroSchemaError("a record without fields cannot be written")
    lengths = np.sum([each.lengths for each in cells], axis=0)
    starts = lengths.cumsum() - lengths
    made = np.empty(int(lengths.sum()), dtype=np.uint8)
    for each in cells:
        _put(made, starts, each)
        starts = starts + each.lengths
    return Cells(lengths, made)


def constant(data: bytes, count: int) -> Cells:
    """The same bytes for every value."""
    return Cells(np.full(count, len(data)), np.tile(np.frombuffer(data, np.uint8), count))


def _put(made: Octets, starts: Ints, cells: Cells) -> None:
    """Write cells at these places."""
    if len(cells.data) == 0:
        return
    width = int(cells.lengths[0])
    if (cells.lengths == width).all():
        source = cells.data.reshape(len(starts), width)
        for place in range(width) if width <= 16 else ():
            made[starts + place] = source[:, place]
        if width <= 16:
            return
    own = cells.lengths.cumsum() - cells.lengths
    made[np.repeat(starts - own, cells.lengths) + np.arange(len(cells.data))] = cells.data


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
    lengths = np.zeros(len(column), dtype=np.int64)
    lengths[valid] = inner.lengths
    return joined([varints(np.where(valid, others[0], null or 0).astype(np.int64)), Cells(lengths, inner.data)])


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


def _even(values: Any, width: int) -> Cells:
    return Cells(np.full(len(values), width), np.frombuffer(values.tobytes(), np.uint8))


def _slices(column: pa.Array) -> Cells:
    """Texts or bytes as they are."""
    if len(column) == 0:
        return Cells(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint8))
    column = column.cast(pa.binary())
    _, where, data = column.buffers()
    offsets = np.frombuffer(where, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    raw = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    return Cells(np.diff(offsets), raw[offsets[0] : offsets[-1]])


def _behind_lengths(cells: Cells) -> Cells:
    return joined([varints(cells.lengths), cells])


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
        return _even(np.ascontiguousarray(wide), schema.size)
    cells = _slices(column)
    if (cells.lengths != schema.size).any():
        raise AvroSchemaError(f"a value has not the {schema.size} bytes of {schema.name}")
    return cells


def _flat_map(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    offsets = column.offsets
    first, last = (int(offsets[i].as_py()) for i in (0, len(column)))
    return column.keys.slice(first, last - first), column.items.slice(first, last - first)


def _list(column: pa.Array, items: Cells) -> Cells:
    """Items as one block with their number in front, and the empty block behind."""
    counts = np.diff(column.offsets.to_numpy()).astype(np.int64)
    edges = np.zeros(len(counts) + 1, dtype=np.int64)
    counts.cumsum(out=edges[1:])
    ends = np.zeros(len(items.lengths) + 1, dtype=np.int64)
    items.lengths.cumsum(out=ends[1:])
    held = Cells(np.diff(ends[edges]), items.data)
    there = counts > 0
    number = varints(counts[there])
    lengths = np.zeros(len(counts), dtype=np.int64)
    lengths[there] = number.lengths
    return joined([Cells(lengths, number.data), held, constant(b"\0", len(counts))])


def _named(schema: Schema) -> str:
    return getattr(schema, "name", type(schema).__name__)
