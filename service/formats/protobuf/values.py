"""Conversion of numbers and bytes of single values to SQL columns, each a function of whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.protobuf.schemas.schema import FIXED, ProtobufEnum
from service.formats.protobuf.wire import BYTES, TOO_LONG, TOO_SHORT, FieldValues, MessageBlock
from service.formats.records import texts
from service.formats.varints import LONGEST, Ints, numbers, zigzag
from service.plan.types import DataType, arrow, flink

Column = Callable[[FieldValues, MessageBlock, Ints], pa.Array]
"""From values, the block and the record of each owner to a column of as many; a value that the column's type does not
have makes its record wrong."""

_RANGES = {"TINYINT": 1 << 7, "SMALLINT": 1 << 15, "INT": 1 << 31, "BIGINT": 1 << 63}
_WIDEST = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)


def single(kind: str, values: FieldValues, block: MessageBlock) -> Any:
    """Return numbers of this kind as an array of numpy: of 64 bits, with a sign but for uint64 and fixed64."""
    if kind in FIXED:
        word = block.words[values.at]
        match kind:
            case "float":
                return word.astype(np.uint32).view(np.float32)
            case "double":
                return word.view(np.float64)
            case "fixed32":
                return (word & _WIDEST).view(np.int64)
            case "sfixed32":
                return word.astype(np.uint32).view(np.int32).astype(np.int64)
            case _:
                return word if kind == "fixed64" else word.view(np.int64)
    word = values.number
    match kind:
        case "bool":
            return word != 0
        case "int32" | "enum":
            return word.astype(np.uint32).view(np.int32).astype(np.int64)
        case "uint32":
            return (word & _WIDEST).view(np.int64)
        case "sint32":
            return zigzag(word & _WIDEST)
        case "sint64":
            return zigzag(word)
        case _:
            return word if kind == "uint64" else word.view(np.int64)


def unpacked(kind: str, values: FieldValues, block: MessageBlock, record: Ints) -> FieldValues:
    """Return the items of a repeated field of numbers, each a value; those that are packed lie in one."""
    packed = values.form == BYTES
    if not packed.any():
        return values
    held = values.some(packed)
    width = FIXED.get(kind)
    made = _fixed_items(width, held, block, record) if width else _varint_items(held, block, record)
    if packed.all():
        return made
    alone = values.some(~packed)
    both = FieldValues(
        np.concatenate([alone.at, made.at]),
        np.concatenate([alone.number, made.number]),
        np.concatenate([alone.form, made.form]),
        np.concatenate([alone.owner, made.owner]),
    )
    return both.some(np.argsort(both.at, kind="stable"))


def _fixed_items(width: int, held: FieldValues, block: MessageBlock, record: Ints) -> FieldValues:
    size = held.number.view(np.int64)
    odd = size % width != 0
    if odd.any():
        block.fail(record[held.owner[odd]], TOO_SHORT, held.at[odd])
    counts = size // width
    at = np.repeat(held.at, counts) + width * _within(counts)
    return FieldValues(at, np.zeros(len(at), np.uint64), np.zeros(len(at), np.uint8), np.repeat(held.owner, counts))


def _varint_items(held: FieldValues, block: MessageBlock, record: Ints) -> FieldValues:
    """Return the numbers of parts, each of which ends with its first byte below 128."""
    size = held.number.view(np.int64)
    at = np.repeat(held.at, size) + _within(size)
    part = np.repeat(np.arange(len(held)), size)
    last = block.data[at] < 0x80
    ends = at[last]
    of = part[last]
    # Bytes behind the last number of a part are none.
    final = np.full(len(held), -1, dtype=np.int64)
    final[of] = ends
    open_end = (size > 0) & (final != held.at + size - 1)
    if open_end.any():
        block.fail(record[held.owner[open_end]], TOO_SHORT, held.at[open_end])
    starts = np.empty(len(ends), dtype=np.int64)
    starts[1:] = ends[:-1] + 1
    first = np.ones(len(ends), dtype=np.bool_)
    first[1:] = of[1:] != of[:-1]
    starts[first] = held.at[of[first]]
    long = ends - starts >= LONGEST
    if long.any():
        block.fail(record[held.owner[of[long]]], TOO_LONG, starts[long])
    number = numbers(block.words, starts).values
    return FieldValues(starts, number, np.zeros(len(starts), np.uint8), held.owner[of])


def _within(counts: Ints) -> Ints:
    """Return 0, 1, ... for each of several counts."""
    behind = counts.cumsum()
    made: Ints = np.arange(int(behind[-1]) if len(behind) else 0) - np.repeat(behind - counts, counts)
    return made


def whole_numbers(kind: str, type_: DataType) -> Column:
    """Return numbers of a kind as a TINYINT to BIGINT, or as a DECIMAL."""
    wanted = arrow(type_)
    bound = _RANGES.get(flink(type_))

    def column(values: FieldValues, block: MessageBlock, record: Ints) -> pa.Array:
        found = single(kind, values, block)
        if bound is None:
            return _cast(pa.array(found).cast(pa.decimal128(20, 0)), type_, values, block, record)
        if found.dtype == np.uint64:
            good = found < np.uint64(bound)
        elif bound == 1 << 63:
            return pa.array(found)
        else:
            good = (found >= -bound) & (found < bound)
        if not good.all():
            for place in np.flatnonzero(~good).tolist():
                _wrong(f"{found[place]} is no {flink(type_)}", place, values, block, record)
            found = np.where(good, found, 0)
        return pa.array(found.astype(wanted.to_pandas_dtype()))

    return column


def floats(kind: str, type_: DataType) -> Column:
    """Return a float or double as a FLOAT or DOUBLE that is not narrower."""
    wanted = arrow(type_).to_pandas_dtype()
    return lambda values, block, record: pa.array(single(kind, values, block).astype(wanted))


def booleans(values: FieldValues, block: MessageBlock, record: Ints) -> pa.Array:
    """Return a bool as a BOOLEAN."""
    return pa.array(single("bool", values, block))


def enum_names(enum: ProtobufEnum) -> Column:
    """Return numbers of an enum as their names; one without a name as its digits, as the JSON of Protocol Buffers
    has it."""
    names: dict[int, str] = {}
    for name, number in enum.numbers.items():
        names.setdefault(number, name)

    def column(values: FieldValues, block: MessageBlock, record: Ints) -> pa.Array:
        found, places = np.unique(single("enum", values, block), return_inverse=True)
        known = pa.array([names.get(number, str(number)) for number in found.tolist()], pa.string())
        return known.take(pa.array(places))

    return column


def plain_bytes(values: FieldValues, block: MessageBlock, record: Ints) -> pa.Array:
    """Return bytes as they are."""
    return block.slices(values)


def text(values: FieldValues, block: MessageBlock, record: Ints) -> pa.Array:
    """Return bytes as UTF-8 text."""
    found, bad = texts(pa.chunked_array([block.slices(values)]))
    for place in bad:
        block.fail(
            record[values.owner[place : place + 1]], "a text is not UTF-8", values.at[place : place + 1], "bad-utf8"
        )
    return found.combine_chunks() if found.num_chunks != 1 else found.chunk(0)


def parsed(type_: DataType) -> Column:
    """Return a text as the DECIMAL or DATE that it spells; an empty one as NULL."""

    def column(values: FieldValues, block: MessageBlock, record: Ints) -> pa.Array:
        found = text(values, block, record)
        found = pc.if_else(pc.equal(found, ""), pa.scalar(None, pa.string()), found)
        return _cast(found, type_, values, block, record)

    return column


def _cast(found: pa.Array, type_: DataType, values: FieldValues, block: MessageBlock, record: Ints) -> pa.Array:
    wanted = arrow(type_)
    try:
        return found.cast(wanted)
    except pa.ArrowInvalid:
        kept: list[Any] = []
        for place, value in enumerate(found):
            try:
                kept.append(value.cast(wanted).as_py())
            except pa.ArrowInvalid:
                _wrong(f"{value.as_py()} is no {flink(type_)}", place, values, block, record)
                kept.append(None)
        return pa.array(kept, wanted)


def _wrong(why: str, place: int, values: FieldValues, block: MessageBlock, record: Ints) -> None:
    here = slice(place, place + 1)
    block.fail(record[values.owner[here]], why, values.at[here], "wrong-type")
