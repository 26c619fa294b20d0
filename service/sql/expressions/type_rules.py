"""The common type of several types, as in Flink SQL: in arithmetic, in CASE and UNION, and in INSERT."""

from __future__ import annotations

from collections.abc import Sequence

from service.plan import types
from service.plan.types import (
    Array,
    Binary,
    DataType,
    Decimal,
    Interval,
    Map,
    Row,
    Simple,
    Text,
    Time,
    Timestamp,
    TimestampLtz,
)

INTEGERS: tuple[DataType, ...] = (types.TINYINT, types.SMALLINT, types.INT, types.BIGINT)
_DIGITS: dict[DataType, int] = {types.TINYINT: 3, types.SMALLINT: 5, types.INT: 10, types.BIGINT: 19}
_MAX = 38
"""Digits of a DECIMAL at most, in Flink and in DuckDB."""

_MIN_ADJUSTED_SCALE = 6
"""Digits of the fraction that are kept where a result has too many digits: Flink's rule."""


def is_integer(type_: DataType) -> bool:
    """Return whether a type has whole numbers only: TINYINT to BIGINT."""
    return type_ in INTEGERS


def is_approximate(type_: DataType) -> bool:
    """Return whether a type is FLOAT or DOUBLE."""
    return type_ in (types.FLOAT, types.DOUBLE)


def is_numeric(type_: DataType) -> bool:
    """Return whether a type has numbers."""
    return is_integer(type_) or is_approximate(type_) or isinstance(type_, Decimal)


def is_text(type_: DataType) -> bool:
    """Return whether a type has character strings."""
    return type_ == types.STRING or isinstance(type_, Text)


def is_binary(type_: DataType) -> bool:
    """Return whether a type has byte strings."""
    return type_ == types.BYTES or isinstance(type_, Binary)


def is_moment(type_: DataType) -> bool:
    """Return whether values are points in time to the fraction of a second."""
    return isinstance(type_, Timestamp | TimestampLtz)


def as_decimal(type_: DataType) -> Decimal:
    """Return the DECIMAL that holds all values of an exact type."""
    return type_ if isinstance(type_, Decimal) else Decimal(_DIGITS[type_], 0)


def adjusted(precision: int, scale: int) -> Decimal:
    """Return DECIMAL(precision, scale); of more than 38 digits it gives up scale, down to 6, to keep the whole part.

    >>> adjusted(45, 10)
    Decimal(precision=38, scale=6)
    """
    if precision <= _MAX:
        return Decimal(precision, scale)
    return Decimal(_MAX, max(_MAX - (precision - scale), min(scale, _MIN_ADJUSTED_SCALE)))


def arithmetic_type(operator: str, left: DataType, right: DataType) -> DataType:
    """Return the type of `left operator right` for two numeric types and one of + - * / %."""
    if is_approximate(left) or is_approximate(right):
        if is_approximate(left) and is_approximate(right):
            return left
        return types.FLOAT if all(t == types.FLOAT or is_integer(t) for t in (left, right)) else types.DOUBLE
    if is_integer(left) and is_integer(right):
        # A remainder is no larger than the divisor.
        return right if operator == "%" else max(left, right, key=INTEGERS.index)
    a, b = as_decimal(left), as_decimal(right)
    scale, whole = max(a.scale, b.scale), (a.precision - a.scale, b.precision - b.scale)
    match operator:
        case "+" | "-":
            return adjusted(max(whole) + scale + 1, scale)
        case "*":
            return adjusted(a.precision + b.precision + 1, a.scale + b.scale)
        case "/":
            scale = max(6, a.scale + b.precision + 1)
            return adjusted(whole[0] + b.scale + scale, scale)
        case _:
            return adjusted(min(whole) + scale, scale)


def common_type(of: Sequence[DataType]) -> DataType | None:
    """Return the type that values of all these types can take without loss, or None."""
    known = [t for t in of if t != types.NULL]
    if not known:
        return types.NULL
    result: DataType | None = known[0]
    for type_ in known[1:]:
        if result is None:
            return None
        result = _common(result, type_)
    return result


def _common(a: DataType, b: DataType) -> DataType | None:
    if a == b:
        return a
    if is_numeric(a) and is_numeric(b):
        return _common_number(a, b)
    match a, b:
        case (Timestamp(p), Timestamp(q)):
            return Timestamp(max(p, q))
        case (TimestampLtz(p), TimestampLtz(q)):
            return TimestampLtz(max(p, q))
        case (Time(p), Time(q)):
            return Time(max(p, q))
        case (Simple("DATE"), Timestamp()):
            return b
        case (Timestamp(), Simple("DATE")):
            return a
        case (Array(x), Array(y)):
            element = common_type((x, y))
            return None if element is None else Array(element)
        case (Map(k, v), Map(m, w)):
            key, value = common_type((k, m)), common_type((v, w))
            return None if key is None or value is None else Map(key, value)
        case (Row(names, xs), Row(_, ys)) if len(xs) == len(ys):
            fields = [common_type(pair) for pair in zip(xs, ys, strict=True)]
            found = tuple(f for f in fields if f is not None)
            return Row(names, found) if len(found) == len(fields) else None
    if is_text(a) and is_text(b):
        return Text(max(a.length, b.length)) if isinstance(a, Text) and isinstance(b, Text) else types.STRING
    if is_binary(a) and is_binary(b):
        return Binary(max(a.length, b.length)) if isinstance(a, Binary) and isinstance(b, Binary) else types.BYTES
    return None


def _common_number(a: DataType, b: DataType) -> DataType:
    if is_approximate(a) or is_approximate(b):
        single = all(t == types.FLOAT or is_integer(t) for t in (a, b))
        return types.FLOAT if single else types.DOUBLE
    if is_integer(a) and is_integer(b):
        return max(a, b, key=INTEGERS.index)
    x, y = as_decimal(a), as_decimal(b)
    scale = max(x.scale, y.scale)
    return Decimal(min(_MAX, max(x.precision - x.scale, y.precision - y.scale) + scale), scale)


def assignable(source: DataType, target: DataType) -> bool:
    """Return whether INSERT stores a `source` in a column of type `target` without being asked to CAST it."""
    if source in (target, types.NULL):
        return True
    if is_text(target):
        return is_text(source)
    if is_binary(target):
        return is_binary(source)
    match source, target:
        case (Array(x), Array(y)):
            return assignable(x, y)
        case (Map(k, v), Map(m, w)):
            return assignable(k, m) and assignable(v, w)
        case (Row(_, xs), Row(_, ys)):
            return len(xs) == len(ys) and all(map(assignable, xs, ys))
        case (Timestamp() | TimestampLtz(), Timestamp() | TimestampLtz()) | (Time(), Time()):
            return True
        case (Timestamp() | TimestampLtz(), Simple("DATE") | Time()) | (Interval(), Interval()):
            return isinstance(source, Timestamp) or source == target
    if is_integer(target):
        return is_integer(source) and INTEGERS.index(source) <= INTEGERS.index(target)
    if target == types.FLOAT:
        return is_numeric(source) and source != types.DOUBLE
    return is_numeric(target) and is_numeric(source)
