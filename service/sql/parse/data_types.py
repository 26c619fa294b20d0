"""Conversion of a parsed type to a type of the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from service.plan import types
from service.plan.types import DataType

MAX_LENGTH = 2**31 - 1
MAX_DECIMAL = 38
MAX_FRACTION = 6
"""Digits after the second: times are kept to the microsecond."""

_SIMPLE: Mapping[exp.DType, DataType] = {
    exp.DType.BOOLEAN: types.BOOLEAN,
    exp.DType.TINYINT: types.TINYINT,
    exp.DType.SMALLINT: types.SMALLINT,
    exp.DType.INT: types.INT,
    exp.DType.BIGINT: types.BIGINT,
    exp.DType.FLOAT: types.FLOAT,
    exp.DType.DOUBLE: types.DOUBLE,
    exp.DType.TEXT: types.STRING,
    exp.DType.BLOB: types.BYTES,
    exp.DType.DATE: types.DATE,
}


_INSTEAD: Mapping[exp.DType, tuple[str, str]] = {
    exp.DType.TIMESTAMPTZ: ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP_LTZ(3)"),
    exp.DType.DATETIME: ("DATETIME", "TIMESTAMP(3)"),
}
"""Types of other dialects as SQL calls them, and what to write instead."""


def data_type(node: exp.DataType) -> DataType:
    """Return the type that `node` names. Raises ValueError, with a sentence for the user, if it is not supported."""
    simple = _SIMPLE.get(node.this)
    if simple is not None:
        if node.expressions:
            raise ValueError(f"{types.flink(simple)} takes no parameters")
        return simple
    build = _PARAMETRIC.get(node.this)
    if build is None:
        name, instead = _INSTEAD.get(node.this, (node.sql().upper(), ""))
        raise ValueError(f"the type {name} is not supported" + (f": write {instead}" if instead else ""))
    return build(node)


def _number(node: exp.DataType, place: int, default: int, low: int, high: int) -> int:
    """The parameter at `place`, within [low, high]."""
    if place >= len(node.expressions):
        return default
    text = node.expressions[place].name
    if not text.isdigit() or not low <= int(text) <= high:
        raise ValueError(f"{text} is not between {low} and {high}, in {node.sql().upper()}")
    return int(text)


def _text(fixed: bool) -> Callable[[exp.DataType], DataType]:
    def build(node: exp.DataType) -> DataType:
        if not node.expressions and not fixed:
            return types.STRING
        length = _number(node, 0, 1, 1, MAX_LENGTH)
        return types.STRING if length == MAX_LENGTH and not fixed else types.Text(length, fixed)

    return build


def _binary(fixed: bool) -> Callable[[exp.DataType], DataType]:
    def build(node: exp.DataType) -> DataType:
        if not node.expressions and not fixed:
            return types.BYTES
        length = _number(node, 0, 1, 1, MAX_LENGTH)
        return types.BYTES if length == MAX_LENGTH and not fixed else types.Binary(length, fixed)

    return build


def _decimal(node: exp.DataType) -> DataType:
    precision = _number(node, 0, 10, 1, MAX_DECIMAL)
    return types.Decimal(precision, _number(node, 1, 0, 0, precision))


def _fraction(node: exp.DataType, default: int) -> int:
    return min(_number(node, 0, default, 0, 9), MAX_FRACTION)


_TIMES = (exp.DType.TIME, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPLTZ)


def too_fine(node: exp.DataType) -> exp.DataType | None:
    """Return the first time in a type, perhaps inside a ROW, that has more digits after the second than are kept."""
    for each in node.find_all(exp.DataType):
        digits = each.expressions[0].name if each.this in _TIMES and each.expressions else ""
        if digits.isdigit() and int(digits) > MAX_FRACTION:
            return each
    return None


def _array(node: exp.DataType) -> DataType:
    if len(node.expressions) != 1:
        raise ValueError("ARRAY takes the type of its elements: ARRAY<INT>")
    return types.Array(data_type(node.expressions[0]))


MULTISET = "multiset"
"""The mark of a MAP that the parser has made of MULTISET<element>."""


def _map(node: exp.DataType) -> DataType:
    if len(node.expressions) != 2:
        raise ValueError("MAP takes the types of its keys and its values: MAP<STRING, INT>")
    key, value = node.expressions
    if node.meta.get(MULTISET):
        return types.multiset(data_type(key))
    return types.Map(data_type(key), data_type(value))


def _row(node: exp.DataType) -> DataType:
    names, fields = [], []
    for position, field in enumerate(node.expressions):
        named = isinstance(field, exp.ColumnDef)
        names.append(field.name if named else f"f{position}")
        kind = field.args["kind"] if named else field
        fields.append(data_type(kind))
    return types.Row(tuple(names), tuple(fields))


_PARAMETRIC: Mapping[exp.DType, Callable[[exp.DataType], DataType]] = {
    exp.DType.CHAR: _text(fixed=True),
    exp.DType.VARCHAR: _text(fixed=False),
    exp.DType.BINARY: _binary(fixed=True),
    exp.DType.VARBINARY: _binary(fixed=False),
    exp.DType.DECIMAL: _decimal,
    exp.DType.TIME: lambda node: types.Time(_fraction(node, 0)),
    exp.DType.TIMESTAMP: lambda node: types.Timestamp(_fraction(node, 6)),
    exp.DType.TIMESTAMPLTZ: lambda node: types.TimestampLtz(_fraction(node, 6)),
    exp.DType.ARRAY: _array,
    exp.DType.MAP: _map,
    exp.DType.STRUCT: _row,
}
