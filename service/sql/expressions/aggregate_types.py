"""The result types of aggregate functions, as in Flink SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from service.plan import types
from service.plan.types import Array, DataType, Decimal, Row, flink
from service.sql.errors import SqlError
from service.sql.expressions.type_rules import adjusted, is_integer, is_numeric, is_text

Rule = Callable[[str, Sequence[DataType]], DataType]


def aggregate_type(function: str, argument_types: Sequence[DataType], distinct: bool = False) -> DataType:
    """Return the type of `function` over arguments of these types (none for COUNT(*)).

    All but COUNT and APPROX_COUNT_DISTINCT are NULL over no rows. Raises SqlError if the function does not take the
    types.
    """
    if distinct and not argument_types:
        raise SqlError(f"{function}(DISTINCT *) has no meaning", hint="name the columns")
    return AGGREGATES[function](function, argument_types)


def _count(function: str, given: Sequence[DataType]) -> DataType:
    _counted(function, given, 0, 1)
    return types.BIGINT


def _number(function: str, given: Sequence[DataType]) -> DataType:
    """The only argument, a number."""
    (type_,) = _counted(function, given, 1, 1)
    if not is_numeric(type_) and type_ != types.NULL:
        raise SqlError(f"{function} takes a number, not {flink(type_)}", hint="use CAST")
    return types.INT if type_ == types.NULL else type_


def _counted(function: str, given: Sequence[DataType], low: int, high: int) -> Sequence[DataType]:
    if not low <= len(given) <= high:
        wanted = str(low) if low == high else f"{low} or {high}"
        raise SqlError(f"{function} takes {wanted} argument{'s' if high > 1 else ''}, not {len(given)}")
    return given


def _sum(function: str, given: Sequence[DataType]) -> DataType:
    type_ = _number(function, given)
    return Decimal(38, type_.scale) if isinstance(type_, Decimal) else type_


def _average(function: str, given: Sequence[DataType]) -> DataType:
    """Of integers the quotient, cut off; of decimals with at least six digits."""
    type_ = _number(function, given)
    if not isinstance(type_, Decimal):
        return type_
    scale = max(6, type_.scale + 21)
    return adjusted(38 - type_.scale + scale, scale)


def _spread(function: str, given: Sequence[DataType]) -> DataType:
    """Deviation and variance have the type of an average."""
    return _average(function, given)


def _one(function: str, given: Sequence[DataType]) -> DataType:
    (type_,) = _counted(function, given, 1, 1)
    return type_


def _ordered(function: str, given: Sequence[DataType]) -> DataType:
    type_ = _one(function, given)
    if isinstance(type_, Array | types.Map | Row):
        raise SqlError(f"{function} takes a value that has an order, not {flink(type_)}")
    return type_


def _text(function: str, given: Sequence[DataType]) -> DataType:
    _counted(function, given, 1, 2)
    wrong = next((t for t in given if not is_text(t) and t != types.NULL), None)
    if wrong is not None:
        raise SqlError(f"{function} takes text, not {flink(wrong)}", hint="use CAST(... AS STRING)")
    return types.STRING


def _percentile(function: str, given: Sequence[DataType]) -> DataType:
    _counted(function, given, 2, 3)
    _number(function, given[:1])
    return Array(types.DOUBLE) if isinstance(given[1], Array) else types.DOUBLE


def _approximate_count(function: str, given: Sequence[DataType]) -> DataType:
    _counted(function, given, 1, 1)
    return types.BIGINT


def _collected(function: str, given: Sequence[DataType]) -> DataType:
    return Array(_one(function, given))


def _multiset(function: str, given: Sequence[DataType]) -> DataType:
    return types.multiset(_one(function, given))


def _bits(function: str, given: Sequence[DataType]) -> DataType:
    (type_,) = _counted(function, given, 1, 1)
    if not is_integer(type_) and type_ != types.NULL:
        raise SqlError(f"{function} takes a whole number, not {flink(type_)}", hint="use CAST")
    return types.INT if type_ == types.NULL else type_


def _json_object(function: str, given: Sequence[DataType]) -> DataType:
    if len(given) != 2:
        raise SqlError(f"{function} takes one key and one value", hint=f"write {function}(KEY name VALUE value)")
    if not is_text(given[0]):
        raise SqlError(f"the key of {function} is a text, not {flink(given[0])}", hint="use CAST(... AS STRING)")
    return types.STRING


def _json_array(function: str, given: Sequence[DataType]) -> DataType:
    _one(function, given)
    return types.STRING


AGGREGATES: Mapping[str, Rule] = {
    "COUNT": _count,
    "SUM": _sum,
    "AVG": _average,
    "MIN": _ordered,
    "MAX": _ordered,
    "STDDEV": _spread,
    "STDDEV_POP": _spread,
    "STDDEV_SAMP": _spread,
    "VARIANCE": _spread,
    "VAR_POP": _spread,
    "VAR_SAMP": _spread,
    "FIRST_VALUE": _one,
    "LAST_VALUE": _one,
    "LISTAGG": _text,
    "ARRAY_AGG": _collected,
    "COLLECT": _multiset,
    "JSON_ARRAYAGG": _json_array,
    "APPROX_COUNT_DISTINCT": _approximate_count,
    "JSON_OBJECTAGG": _json_object,
    "PERCENTILE": _percentile,
    "BIT_AND": _bits,
    "BIT_OR": _bits,
    "BIT_XOR": _bits,
}
