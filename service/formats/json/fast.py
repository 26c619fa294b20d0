"""The fastest way to read a flat value: DuckDB takes it out as text, Arrow casts the whole column, numpy checks it.

Arrow's casts are strict where DuckDB's are lenient ('3.7' is no integer, '2024-1-1' no date), so a column is verified
at a few nanoseconds a row. Each function answers None when some row is not plainly right: the column is then read again
with the suspicions of `columns`, row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.json.columns import key_pattern
from service.formats.json.options import JsonOptions
from service.plan.types import DataType, Decimal, Simple, Text, Timestamp, TimestampLtz, arrow, duckdb

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Edges = np.ndarray[Any, np.dtype[np.int32]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

FastValue = Callable[[pa.Array, pa.Array], pa.Array | None]
"""From a column as DuckDB took it out, and the records' texts, to the column's values."""

_EXACT = 2**53
"""Whole numbers below are all different as DOUBLE."""
INTEGERS = frozenset(map(Simple, ("TINYINT", "SMALLINT", "INT", "BIGINT")))

_NUMBER = r"^-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$"
_WHOLE_NUMBER = r"^([1-9][0-9]*|-[1-9][0-9]*)$"
_SUSPICIOUS = np.zeros(256, dtype=bool)
_SUSPICIOUS[[ord(c) for c in "-0123456789[{"]] = True
_LIKE_NAN = np.zeros(256, dtype=bool)
_LIKE_NAN[[ord(c) for c in "NnIi"]] = True


def fast(name: str, type_: DataType, options: JsonOptions) -> FastValue | None:
    """Return the fast way for the key `name`, if its type has one."""
    match type_:
        case Simple("TINYINT" | "SMALLINT" | "INT" | "BIGINT"):
            return partial(_integers, arrow(type_))
        case Simple("FLOAT" | "DOUBLE"):
            return partial(_floats, arrow(type_), key_pattern(name) + r"\s*:\s*[tf]")
        case Simple("STRING") | Text():
            return partial(_texts, key_pattern(name) + r"\s*:\s*[-0-9{\[NnIi]")
        case Simple("BOOLEAN"):
            return _booleans
        case Decimal():
            return partial(_decimals, arrow(type_))
        case Simple("DATE"):
            return _dates
        case Timestamp(precision):
            return partial(_moments, precision, "T" if options.standard == "ISO-8601" else " ", False)
        case TimestampLtz(precision):
            return partial(_moments, precision, "T" if options.standard == "ISO-8601" else " ", True)
        case _:
            return None


def whole_numbers(name: str, type_: DataType) -> FastValue:
    """Return the fast way for an integer that was taken as DOUBLE."""
    return partial(_whole_numbers, arrow(type_), key_pattern(name) + r"\s*:\s*[tf]")


def taken_as(type_: DataType, *, strict: bool) -> str:
    """Return the type that from_json gives a column that is read fast. As text, NULL is never a value of another type;
    as a number it is, but in a strict statement."""
    return duckdb(type_) if strict and type_ in (Simple("DOUBLE"), Simple("FLOAT")) else "VARCHAR"


def _integers(wanted: pa.DataType, column: pa.Array, _: pa.Array) -> pa.Array | None:
    data = characters(column)
    if b"x" in data or b"X" in data:
        return None
    return _cast(column, wanted)


def _whole_numbers(wanted: pa.DataType, boolean: str, column: pa.Array, texts: pa.Array) -> pa.Array | None:
    values = _cast(column, wanted)
    if values is None:
        return None
    plain = values.to_numpy(zero_copy_only=False) if not values.null_count else values.fill_null(2).to_numpy()
    if wanted == pa.int64() and len(plain) and (plain.max() >= _EXACT or plain.min() <= -_EXACT):
        return None
    units = np.flatnonzero((plain == 0) | (plain == 1))
    return None if len(units) and _any_match(texts, units, boolean) else values


def _floats(wanted: pa.DataType, boolean: str, column: pa.Array, texts: pa.Array) -> pa.Array | None:
    if pa.types.is_string(column.type):
        cast = _cast(column, wanted)
        return None if cast is None or not _all_finite(cast) else cast
    if not _all_finite(column):
        return None
    values = column.to_numpy(zero_copy_only=False)
    units = np.flatnonzero((values == 0) | (values == 1))
    return None if len(units) and _any_match(texts, units, boolean) else column


def _texts(number_or_container: str, column: pa.Array, texts: pa.Array) -> pa.Array | None:
    data, edges = raw(column)
    if len(data) == 0:
        return column
    # An empty text borrows its neighbour's first byte, which is harmless: it can only be suspected too much.
    first = data[np.minimum(edges[:-1], len(data) - 1)]
    suspects = np.flatnonzero(_SUSPICIOUS[first] | (_LIKE_NAN[first] & np.isin(np.diff(edges), (3, 8))))
    if len(suspects) == 0:
        return column
    values = column.take(pa.array(suspects))
    lost = pc.or_(
        pc.and_not(pc.match_substring_regex(values, _NUMBER), pc.match_substring_regex(values, _WHOLE_NUMBER)),
        pc.match_substring_regex(values, r"^([{\[]|-?(?i:nan|inf|infinity)$)"),
    )
    rewritten = suspects[lost.fill_null(False).to_numpy(zero_copy_only=False)]
    return None if len(rewritten) and _any_match(texts, rewritten, number_or_container) else column


def _decimals(wanted: pa.DataType, column: pa.Array, _: pa.Array) -> pa.Array | None:
    """Text of 16 characters has 15 digits beside its point at most, which a double keeps."""
    data, edges = raw(column)
    if len(column) and np.diff(edges).max() > 16 and (data == ord(".")).any():
        return None
    return _cast(column, wanted)


def _booleans(column: pa.Array, _: pa.Array) -> pa.Array | None:
    values = pc.equal(column, "true")
    return values if pc.all(pc.or_(values, pc.equal(column, "false"))).as_py() is not False else None


def _dates(column: pa.Array, _: pa.Array) -> pa.Array | None:
    return _cast(column, pa.date32())


def _moments(precision: int, separator: str, zoned: bool, column: pa.Array, _: pa.Array) -> pa.Array | None:
    """Text of one shape: Arrow also takes a date alone, minutes without seconds, either separator and any offset."""
    present = len(column) - column.null_count
    if present == 0:
        return column.cast(pa.timestamp("us"))
    data = characters(column)
    if data.count(separator.encode()) != present:
        return None
    lengths = np.diff(raw(column)[1])
    if column.null_count:
        lengths = lengths[column.is_valid().to_numpy(zero_copy_only=False)]
    if zoned and data.count(b"Z") != present:
        return None
    whole = 20 if zoned else 19
    if lengths.min() < whole:
        return None
    moments = _cast(column, pa.timestamp("us", "UTC") if zoned else pa.timestamp("us"))
    if moments is None:
        return None
    micros = moments.view(pa.int64())
    if precision < 6 and lengths.max() > whole + (precision + 1 if precision else 0):
        unit = 10 ** (6 - precision)
        values = micros.to_numpy(zero_copy_only=False) if not micros.null_count else pc.fill_null(micros, 0).to_numpy()
        micros = pa.array(values - values % unit, mask=micros.is_null().to_numpy(zero_copy_only=False))
    return micros.view(pa.timestamp("us"))


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array | None:
    try:
        return pc.cast(column, wanted)
    except pa.ArrowInvalid:
        return None


def _all_finite(column: pa.Array) -> bool:
    finite = np.isfinite(column.to_numpy(zero_copy_only=False))
    return bool(finite.sum() == len(column) - column.null_count)


def _any_match(texts: pa.Array, rows: np.ndarray[Any, np.dtype[np.int64]], pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts.take(pa.array(rows)), pattern)).as_py())


def characters(column: pa.Array) -> bytes:
    """Return the UTF-8 bytes of a text column, one text after the other."""
    data, edges = raw(column)
    return data[edges[0] : edges[-1]].tobytes()


def raw(column: pa.Array) -> tuple[Bytes, Edges]:
    """Return the bytes that a text column shares, and where in them each text begins and the last one ends."""
    _, offsets, data = column.buffers()
    if offsets is None or data is None:
        return np.zeros(0, dtype=np.uint8), np.zeros(len(column) + 1, dtype=np.int32)
    edges = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data, np.uint8), edges
