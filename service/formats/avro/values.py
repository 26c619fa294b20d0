"""Conversion of Avro's primitives to the values of SQL columns, each a function of whole arrays."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from service.formats.avro.cursor import Cursor, Flags, Places
from service.formats.varints import Ints
from service.plan.types import DataType, arrow, flink

OfInts = Callable[[Ints, Cursor, Places], pa.Array]
"""Makes a column of ints or longs; a value that the column's type does not have makes its record wrong."""

OfBytes = Callable[[pa.Array, Cursor, Places], pa.Array]
"""Makes a column of bytes."""

_RANGES = {"TINYINT": 1 << 7, "SMALLINT": 1 << 15, "INT": 1 << 31}
_MICROS = {"timestamp-nanos": -1000, "timestamp-micros": 1, "timestamp-millis": 1000}
_DAY = 86_400_000_000
_FIRST, _END = -62_135_596_800_000_000, 253_402_300_800_000_000
"""Microseconds of the years 1 and 10000: every TIMESTAMP is from the one on and before the other."""

_WIDEST = 16
"""Bytes of the widest DECIMAL, one of 38 digits."""


def integers(type_: DataType) -> OfInts:
    """Return ints or longs as numbers of `type_`, a TINYINT to DOUBLE."""
    wanted = arrow(type_)
    bound = _RANGES.get(flink(type_))

    def column(found: Ints, cursor: Cursor, places: Places) -> pa.Array:
        if bound is not None:
            _check(found, (found >= -bound) & (found < bound), f"{{}} is no {flink(type_)}", cursor, places)
        return pa.array(found.astype(wanted.to_pandas_dtype()))

    return column


def dates(found: Ints, cursor: Cursor, places: Places) -> pa.Array:
    """Return days since 1970 as a DATE."""
    _check(found, (found >= _FIRST // _DAY) & (found < _END // _DAY), "the day {} is no DATE", cursor, places)
    return pa.array(found.astype(np.int32)).view(pa.date32())


def times(unit: int) -> OfInts:
    """Return times of day in units of this many microseconds."""

    def column(found: Ints, cursor: Cursor, places: Places) -> pa.Array:
        _check(found, (found >= 0) & (found < _DAY // unit), "{} is no time of a day", cursor, places)
        return pa.array(found * unit).view(pa.time64("us"))

    return column


def timestamps(logical: str, precision: int) -> OfInts:
    """Return times since 1970 in the unit of `logical`; digits beyond the precision of the column are cut off."""
    unit = _MICROS[logical.removeprefix("local-")]
    step = 10 ** (6 - precision) if precision < 6 else 1

    def column(found: Ints, cursor: Cursor, places: Places) -> pa.Array:
        if unit > 0:
            good = (found >= _FIRST // unit) & (found < _END // unit)
            _check(found, good, "{} is no TIMESTAMP", cursor, places)
        micros = found * unit if unit > 0 else found // -unit
        return pa.array(micros // step * step if step > 1 else micros).view(pa.timestamp("us"))

    return column


def _check(found: Ints, good: Flags, why: str, cursor: Cursor, places: Places) -> None:
    """Note the records of values that are not `good`; the values become 0."""
    if good.all():
        return
    for index in np.flatnonzero(~good & ~cursor.failed[places.record]):
        one = np.zeros(len(found), dtype=np.bool_)
        one[index] = True
        cursor.fail(places, one, why.format(int(found[index])), "wrong-type")
    found[~good] = 0


def plain_bytes(found: pa.Array, cursor: Cursor, places: Places) -> pa.Array:
    """Return bytes as they are."""
    return found


def text(found: pa.Array, cursor: Cursor, places: Places) -> pa.Array:
    """Return bytes as UTF-8 text."""
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:
        texts: list[str] = []
        broken = np.zeros(len(found), dtype=np.bool_)
        for index, value in enumerate(found.to_pylist()):
            try:
                texts.append(value.decode())
            except UnicodeDecodeError:
                broken[index] = True
                texts.append("")
        cursor.fail(places, broken, "a text is not UTF-8", "bad-utf8")
        return pa.array(texts, pa.string())


def hexadecimal(found: pa.Array, cursor: Cursor, places: Places) -> pa.Array:
    """Return the 16 bytes of a UUID as text."""
    digits = (value.hex() for value in found.to_pylist())
    return pa.array([f"{d[:8]}-{d[8:12]}-{d[12:16]}-{d[16:20]}-{d[20:]}" for d in digits], pa.string())


def decimals(type_: DataType, scale: int) -> OfBytes:
    """Return two's complement numbers, the highest byte first, of this scale as DECIMALs of a scale that is not
    smaller."""
    wanted = arrow(type_)

    def column(found: pa.Array, cursor: Cursor, places: Places) -> pa.Array:
        unscaled = pa.Array.from_buffers(
            pa.decimal128(38, scale), len(found), [None, pa.py_buffer(_widened(found, cursor, places))]
        )
        try:
            return unscaled.cast(wanted)
        except pa.ArrowInvalid:
            return _one_by_one(unscaled, wanted, f"{{}} is no {flink(type_)}", cursor, places)

    return column


def _widened(found: pa.Array, cursor: Cursor, places: Places) -> Any:
    """Numbers of any width as numbers of 16 bytes, the lowest byte first."""
    offsets = np.frombuffer(found.buffers()[1], np.int32)[found.offset : found.offset + len(found) + 1].astype(np.int64)
    lengths = np.diff(offsets)
    data = found.buffers()[2]
    raw = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    wide = np.zeros((len(found), _WIDEST), dtype=np.uint8)
    if len(found) == 0:
        return wide
    filled = lengths > 0
    sign = np.where(filled & (raw[np.minimum(offsets[:-1], len(raw) - 1)] >= 0x80), 0xFF, 0).astype(np.uint8)
    too_wide = lengths > _WIDEST
    if too_wide.any():
        cursor.fail(places, too_wide, "a DECIMAL has more than 16 bytes")
    for place in range(min(_WIDEST, int(lengths.max()))):
        there = lengths > place
        at = np.where(there, offsets[1:] - 1 - place, 0)
        wide[:, place] = np.where(there, raw[at], sign)
    wide[:, min(_WIDEST, int(lengths.max())) :] = sign[:, None]
    wide[too_wide] = 0
    return wide


def _one_by_one(unscaled: pa.Array, wanted: pa.DataType, why: str, cursor: Cursor, places: Places) -> pa.Array:
    kept: list[Any] = []
    for index, value in enumerate(unscaled.to_pylist()):
        try:
            kept.append(pa.scalar(value, wanted).as_py())
        except pa.ArrowInvalid:
            one = np.zeros(len(unscaled), dtype=np.bool_)
            one[index] = True
            cursor.fail(places, one, why.format(value), "wrong-type")
            kept.append(decimal.Decimal(0))
    return pa.array(kept, wanted)
