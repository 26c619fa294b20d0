"""Conversion of a driver's values to the declared types; lossy conversions are refused.

Two conversions are as for records: a time is cut to the declared digits, and a number is rounded to DOUBLE or FLOAT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal as Number
from decimal import InvalidOperation
from typing import Any
from uuid import UUID

from service.databases.looked_up_table import ReadColumn
from service.plan.types import Array, Binary, DataType, Decimal, Simple, Text, Time, Timestamp, TimestampLtz, flink

_RANGES = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_SHOWN = 60
"""Characters of a value that a message quotes."""


class ValueUnreadable(Exception):
    """A value is not of the declared type; the text says which, and of which column."""


def read_row(row: Sequence[Any], columns: Sequence[ReadColumn], readers: Sequence[Callable[[Any], Any]]) -> list[Any]:
    """Read the values of a row. Raises ValueUnreadable."""
    values: list[Any] = []
    for value, column, read in zip(row, columns, readers, strict=True):
        if value is None:
            if not column.nullable:
                raise ValueUnreadable(f'column "{column.name}" is declared NOT NULL, and is NULL')
            values.append(None)
            continue
        try:
            values.append(read(value))
        except (ValueError, TypeError, ArithmeticError):
            shown = repr(value)
            shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
            raise ValueUnreadable(
                f'column "{column.name}" is declared {flink(column.type)}, and is {shown} ({type(value).__name__})'
            ) from None
    return values


def reader(kind: DataType) -> Callable[[Any], Any]:
    """Return the function that converts a value that is not NULL; it raises ValueError, TypeError or
    ArithmeticError."""
    match kind:
        case Simple(name) if name in _RANGES:
            return _integer(_RANGES[name])
        case Simple("BOOLEAN"):
            return _boolean
        case Simple("FLOAT" | "DOUBLE"):
            return _float
        case Simple("STRING"):
            return _text
        case Text(length):
            return lambda value: _at_most(_text(value), length)
        case Simple("BYTES"):
            return _bytes
        case Binary(length):
            return lambda value: _at_most(_bytes(value), length)
        case Simple("DATE"):
            return _date
        case Decimal(precision, scale):
            return _decimal(precision, scale)
        case Time(precision):
            return lambda value: _cut(_time(value), precision)
        case Timestamp(precision):
            return lambda value: _cut(_timestamp(value), precision)
        case TimestampLtz(precision):
            return lambda value: _cut(_instant(value), precision)
        case Array(element):
            each = reader(element)
            return lambda value: [None if v is None else each(v) for v in _list(value)]
        case _:
            raise TypeError(f"{flink(kind)} is not read from a database")


def _integer(bits: int) -> Callable[[Any], int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | Number) or value != int(value):
            raise TypeError
        if not low <= value <= high:
            raise ValueError
        return int(value)

    return read


def _boolean(value: Any) -> bool:
    """SQLite has 0 and 1 for it."""
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise TypeError


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, float | int | Number):
        raise TypeError
    return float(value)


def _text(value: Any) -> str:
    if isinstance(value, UUID):
        return str(value)
    if not isinstance(value, str):
        raise TypeError
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError
    return bytes(value)


def _at_most(value: Any, length: int) -> Any:
    if len(value) > length:
        raise ValueError
    return value


def _decimal(precision: int, scale: int) -> Callable[[Any], Number]:
    unit = Number(1).scaleb(-scale)

    def read(value: Any) -> Number:
        if isinstance(value, bool) or not isinstance(value, Number | int | float | str):
            raise TypeError
        try:
            number = Number(repr(value) if isinstance(value, float) else value)
            exact = number.quantize(unit)
        except InvalidOperation:
            raise ValueError from None
        if exact != number or len(exact.as_tuple().digits) > precision:
            raise ValueError
        return exact

    return read


def _date(value: Any) -> date:
    """SQLite has texts for dates and times."""
    if isinstance(value, str):
        return date.fromisoformat(value)
    if isinstance(value, datetime) or not isinstance(value, date):
        raise TypeError
    return value


def _time(value: Any) -> time:
    value = time.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(value, time) or value.tzinfo is not None:
        raise TypeError
    return value


def _timestamp(value: Any) -> datetime:
    value = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(value, datetime) or value.tzinfo is not None:
        raise TypeError
    return value


def _instant(value: Any) -> datetime:
    """As a wall clock in UTC, as blocks have it."""
    value = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise TypeError
    return value.astimezone(UTC).replace(tzinfo=None)


def _cut(value: Any, precision: int) -> Any:
    """A time cut to the declared digits of its second."""
    unit = 10 ** max(0, 6 - precision)
    return value.replace(microsecond=value.microsecond // unit * unit)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value
