"""The fastest way to read a flat value: DuckDB takes it out as text, Arrow casts the whole column, numpy checks it.

Arrow's casts are strict where DuckDB's are lenient ('3.7' is no integer, '2024-1-1' no date), so a column is verified
at a few nanoseconds a row. Each function answers None when some row is not plainly right: the column is then read again
with the suspicions of `columns`, row by row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from service.formats.json.buffers import Flags, Rows, characters, raw, words
from service.formats.json.columns import key_pattern
from service.formats.json.keys import Keys
from service.formats.json.lossy_numbers import has_negative_zero, negative_zeros
from service.formats.json.options import JsonOptions
from service.plan.types import DataType, Decimal, Simple, Text, Timestamp, TimestampLtz, arrow


class Key(NamedTuple):
    """The key of a value; `outermost` says that it is one of the record, not of an object within."""

    name: str
    outermost: bool


_SEARCHED = 8
"""The part of a block (one in eight) that is searched for single keys before all of them are found."""


class Texts:
    """The texts of the records of a block, which are asked where the values do not tell.

    `searched` says that keys were looked for by a pattern: one that is written with escapes may have been overlooked.
    `zeros` are the records in which a DOUBLE is zero, or may be: whether it is -0, the texts tell.
    """

    def __init__(self, block: pa.Array) -> None:
        self.block = block
        self.searched = False
        self.zeros: Flags = np.zeros(len(block), dtype=bool)
        self._left_to_search = block.nbytes // _SEARCHED

    @cached_property
    def keys(self) -> Keys:
        """The keys of the texts."""
        self.searched = True
        return Keys(self.block)

    def negative_zeros(self) -> Flags:
        """Return the records in which a DOUBLE may be the number -0."""
        rows = np.flatnonzero(self.zeros)
        if len(rows) < len(self.block) // _SEARCHED:
            found = np.zeros(len(self.block), dtype=bool)
            found[rows] = has_negative_zero(self.block.take(pa.array(rows)))
            return found
        return self.keys.negative_zeros() if "keys" in self.__dict__ else negative_zeros(self.block)

    def any_match(self, rows: Rows, pattern: str) -> bool:
        """Return whether one of these rows has a match of `pattern`."""
        self.searched = True
        some = self.block.take(pa.array(rows))
        self._left_to_search -= some.nbytes
        return bool(pc.any(pc.match_substring_regex(some, pattern)).as_py())

    def any_boolean(self, rows: Rows, key: Key) -> bool:
        """Return whether in one of these rows, where the number of `key` is 0 or 1, it may be written as true or
        false."""
        if not len(rows):
            return False
        if key.outermost and self._begin_with(rows, f"{{{json.dumps(key.name, ensure_ascii=False)}:".encode()):
            return False
        # Of many columns it costs less to look at all keys at once.
        if self._left_to_search < 0 and not self.keys.may_be_boolean(key.name):
            return False
        return self.any_match(rows, key_pattern(key.name) + r"\s*:\s*[tf]")

    def _begin_with(self, rows: Rows, head: bytes) -> bool:
        """Whether these rows begin with `head` and a digit: quick to see, of a key that stands first and only once."""
        data, edges = raw(self.block)
        if data[edges[rows[0]] :][: len(head)].tobytes() != head:
            return False
        starts = edges[rows]
        if (edges[rows + 1] - starts).min() <= len(head):
            return False
        digits = data[starts + len(head)] - ord("0") < 10  # what is below the digits wraps around
        return bool(digits.all()) and all(
            bool((words(data, len(part))[starts + place] == int.from_bytes(part, "little")).all())
            for place, part in _in_words(head)
        )


FastValue = Callable[[pa.Array, Texts], pa.Array | None]
"""From a column as DuckDB took it out, and the records' texts, to the column's values."""

_DECIMAL_DIGITS = 38
"""The digits of Arrow's decimals of 128 bits."""
_EXACT = 2**53
"""Whole numbers below are all different as DOUBLE."""
INTEGERS = frozenset(map(Simple, ("TINYINT", "SMALLINT", "INT", "BIGINT")))

_NUMBER = r"^-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$"
_WHOLE_NUMBER = r"^([1-9][0-9]*|-[1-9][0-9]*)$"
_SUSPICIOUS = np.zeros(256, dtype=bool)
_SUSPICIOUS[[ord(c) for c in "-0123456789[{"]] = True
_ODD = _SUSPICIOUS.copy()
"""The first bytes of what is suspicious, or may be one of the words NaN and Infinity."""
_ODD[[ord(c) for c in "NnIi"]] = True


def fast(key: Key, type_: DataType, options: JsonOptions) -> FastValue | None:
    """Return the fast way for the value of `key`, if its type has one."""
    match type_:
        case Simple("TINYINT" | "SMALLINT" | "INT" | "BIGINT"):
            return partial(_integers, arrow(type_))
        case Simple("FLOAT" | "DOUBLE"):
            return partial(_floats, arrow(type_), key)
        case Simple("STRING") | Text():
            return partial(_texts, key_pattern(key.name) + r"\s*:\s*[-0-9{\[NnIi]")
        case Simple("BOOLEAN"):
            return _booleans
        case Decimal():
            return partial(_decimals, type_)
        case Simple("DATE"):
            return _dates
        case Timestamp(precision):
            return partial(_moments, precision, "T" if options.standard == "ISO-8601" else " ", False)
        case TimestampLtz(precision):
            return partial(_moments, precision, "T" if options.standard == "ISO-8601" else " ", True)
        case _:
            return None


def whole_numbers(key: Key, type_: DataType) -> FastValue:
    """Return the fast way for an integer that was taken as DOUBLE."""
    return partial(_whole_numbers, arrow(type_), key)


def taken_as(type_: DataType, *, strict: bool) -> str:
    """Return the type that from_json gives a column that is read fast. As text, NULL is never a value of another type;
    as a number it is, but in a strict statement."""
    return "DOUBLE" if strict and type_ in (Simple("DOUBLE"), Simple("FLOAT")) else "VARCHAR"


def _integers(wanted: pa.DataType, column: pa.Array, _: Texts) -> pa.Array | None:
    data = characters(column)
    if b"x" in data or b"X" in data:
        return None
    return _cast(column, wanted)


def _whole_numbers(wanted: pa.DataType, key: Key, column: pa.Array, texts: Texts) -> pa.Array | None:
    values = _cast(column, wanted)
    if values is None:
        return None
    plain, rows = _present(values)
    if wanted == pa.int64() and len(plain) and (plain.max() >= _EXACT or plain.min() <= -_EXACT):
        return None
    # Below zero the unsigned number is large.
    zeros_and_ones = np.flatnonzero(plain.view(f"u{plain.itemsize}") <= 1)
    return None if texts.any_boolean(zeros_and_ones if rows is None else rows[zeros_and_ones], key) else values


def _present(values: pa.Array) -> tuple[np.ndarray[Any, np.dtype[Any]], Rows | None]:
    """The numbers of a column without its NULLs, and the rows they are in (None: all)."""
    if not values.null_count:
        return values.to_numpy(), None
    rows = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    numbers = np.frombuffer(values.buffers()[1], values.type.to_pandas_dtype())
    return numbers[values.offset :][rows], rows


def _floats(wanted: pa.DataType, key: Key, column: pa.Array, texts: Texts) -> pa.Array | None:
    doubles = _cast(column, pa.float64())
    if doubles is None:
        texts.zeros[:] = True
        return None
    values = doubles.to_numpy(zero_copy_only=False)
    zeros = values == 0
    texts.zeros |= zeros
    # A FLOAT by way of a DOUBLE, wherever it is read: to round once gives another number at times.
    floats = doubles.cast(wanted)
    if not _all_finite(floats):
        return None
    if pa.types.is_string(column.type):
        return floats
    return None if texts.any_boolean(np.flatnonzero(zeros | (values == 1)), key) else floats


def _texts(number_or_container: str, column: pa.Array, texts: Texts) -> pa.Array | None:
    data, edges = raw(column)
    if len(data) == 0:
        return column
    rows = np.flatnonzero(edges[1:] > edges[:-1])
    first = data[edges[rows]]
    odd = _ODD[first]
    suspects, first = rows[odd], first[odd]
    lengths = edges[suspects + 1] - edges[suspects]
    suspects = suspects[_SUSPICIOUS[first] | (lengths == 3) | (lengths == 8)]
    if len(suspects) == 0:
        return column
    values = column.take(pa.array(suspects))
    lost = pc.or_(
        pc.and_not(pc.match_substring_regex(values, _NUMBER), pc.match_substring_regex(values, _WHOLE_NUMBER)),
        pc.match_substring_regex(values, r"^([{\[]|-?(?i:nan|inf|infinity)$)"),
    )
    rewritten = suspects[lost.fill_null(False).to_numpy(zero_copy_only=False)]
    return None if len(rewritten) and texts.any_match(rewritten, number_or_container) else column


def _decimals(type_: Decimal, column: pa.Array, _: Texts) -> pa.Array | None:
    """Text of 16 characters has 15 digits beside its point at most, which a double keeps. Of a number that does not fit
    into 38 digits, its scale included, Arrow makes another one."""
    data, edges = raw(column)
    longest = int(np.diff(edges).max()) if len(column) else 0
    if longest + type_.scale > _DECIMAL_DIGITS or (longest > 16 and (data == ord(".")).any()):
        return None
    return None if b"e" in characters(column).lower() else _cast(column, arrow(type_))


def _booleans(column: pa.Array, _: Texts) -> pa.Array | None:
    values = pc.equal(column, "true")
    return values if pc.all(pc.or_(values, pc.equal(column, "false"))).as_py() is not False else None


def _dates(column: pa.Array, _: Texts) -> pa.Array | None:
    days = _cast(column, pa.date32())
    return None if days is None or _before_year_1(days) else days


def _before_year_1(times: pa.Array) -> bool:
    """Whether one of some dates or times is in the year 0, which Arrow takes and the rules do not know."""
    return bool(pc.less(pc.min(times), pa.scalar(date.min, pa.date32()).cast(times.type)).as_py())


def _moments(precision: int, separator: str, zoned: bool, column: pa.Array, _: Texts) -> pa.Array | None:
    """Text of one shape: Arrow also takes a date alone, minutes without seconds, either separator and any offset."""
    present = len(column) - column.null_count
    if present == 0:
        return column.cast(pa.timestamp("us"))
    data, edges = raw(column)
    data, lengths = data[edges[0] : edges[-1]], np.diff(edges)
    if column.null_count:
        lengths = lengths[column.is_valid().to_numpy(zero_copy_only=False)]
    whole = 20 if zoned else 19
    if lengths.min() < whole:
        return None
    if np.count_nonzero(data == ord(separator)) != present or (zoned and np.count_nonzero(data == ord("Z")) != present):
        return None
    moments = _cast(column, pa.timestamp("us", "UTC") if zoned else pa.timestamp("us"))
    if moments is None or _before_year_1(moments):
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


def _in_words(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Parts of eight, four, two or one bytes that cover `text`, each with its place; they may overlap."""
    width = next(width for width in (8, 4, 2, 1) if width <= len(text))
    for place in range(0, len(text), width):
        first = min(place, len(text) - width)
        yield first, text[first : first + width]
