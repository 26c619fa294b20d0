"""The operators + - * / % and unary minus.

Integers keep their type: 7 / 2 is 3. DECIMAL results have the precision and scale that Flink gives them, computed
exactly and rounded half up; DuckDB's own division of decimals is a DOUBLE and is not used. An overflow and a division
by zero fail the row.
"""

from __future__ import annotations

from service.plan import types
from service.plan.expressions import Call, Expression
from service.plan.types import DataType, Decimal, Interval, Timestamp, TimestampLtz, flink
from service.sql.errors import SqlError
from service.sql.expressions.casts import cast
from service.sql.expressions.context import Context
from service.sql.expressions.type_rules import arithmetic_type, as_decimal, is_approximate, is_integer
from service.sql.functions.signature import Arguments, Table, built, plain, same


def _numbers(operator: str, arguments: Arguments, context: Context) -> Expression:
    left, right = arguments
    if left.type == types.NULL or right.type == types.NULL:
        known = left.type if right.type == types.NULL else right.type
        left, right = (cast(a, known) if a.type == types.NULL else a for a in arguments)
    result = arithmetic_type(operator, left.type, right.type)
    if isinstance(result, Decimal):
        return _decimals(operator, left, right, result)
    if is_approximate(result):
        if operator == "%":
            raise SqlError(
                "a remainder is defined for exact numbers only",
                detail=f"these are {flink(left.type)} and {flink(right.type)}",
                hint="CAST to DECIMAL",
            )
        if types.DOUBLE in (left.type, right.type) and result == types.FLOAT:
            # The type is that of the left side; the value is computed in full and cut at the end.
            return Call(operator, (left, right), result, f"CAST({{0}} {operator} {{1}} AS FLOAT)")
        return Call(operator, (cast(left, result), cast(right, result)), result, f"({{0}} {operator} {{1}})")
    # DuckDB widens both sides to the larger type; a remainder has the type of its divisor.
    template = f"({{0}} {'//' if operator == '/' else operator} {{1}})"
    if operator == "%" and left.type != right.type:
        template = f"CAST({template} AS {types.duckdb(result)})"
    return Call(operator, (left, right), result, template)


def _decimals(operator: str, left: Expression, right: Expression, result: Decimal) -> Expression:
    a, b = as_decimal(left.type), as_decimal(right.type)
    if operator == "/":
        return Call(operator, (left, right), result, _quotient(left.type, right.type, a, b, result))
    scale, whole = max(a.scale, b.scale), max(a.precision - a.scale, b.precision - b.scale)
    if operator == "%" and whole + scale > 38:
        # DuckDB would take such a remainder of DOUBLEs.
        x, y = _at_scale("{0}", left.type, a, scale), _at_scale("{1}", right.type, b, scale)
        return Call(operator, (left, right), result, _pointed(f"({x} % {y})", Decimal(38, scale), result))
    wide = result.precision > 18 and operator != "%"
    x, y = _operand("{0}", left.type, a, wide), _operand("{1}", right.type, b, wide)
    template = f"CAST({x} {operator} {y} AS {types.duckdb(result)})"
    # Where the result gives up scale, what DuckDB computes before it is rounded may not fit 38 digits.
    if operator == "*" and a.scale + b.scale > 38:
        raise SqlError(
            f"the product of {types.flink(a)} and {types.flink(b)} has more than 38 digits after the point",
            hint="CAST one side to a DECIMAL of a smaller scale",
        )
    if operator == "*" and result.scale < a.scale + b.scale:
        template = _narrow_or(template, x, y, 38 - a.scale - b.scale, _wide_product(x, y, result))
    elif operator in "+-" and result.scale < scale:
        units, parts = f"(trunc({x}) {operator} trunc({y}))", f"(({x} - trunc({x})) {operator} ({y} - trunc({y})))"
        # Their signs may differ, and a fraction is rounded rightly only with the sign of the sum.
        carry = f"CAST((sign({units}) - sign({parts})) // 2 AS DECIMAL(1, 0))"
        rounded = _rounded(f"({units} - {carry})", f"({parts} + {carry})", result)
        template = _narrow_or(template, x, y, 2 * (37 - scale), rounded)
    return Call(operator, (left, right), result, template)


def _narrow_or(narrow: str, x: str, y: str, digits: int, otherwise: str) -> str:
    """`narrow` where the whole parts of both sides share `digits` digits between them, else `otherwise`."""
    if digits < 8:
        return otherwise
    limit = f"CAST({10 ** (digits // 2)} AS DECIMAL(38, 0))"
    return f"CASE WHEN abs({x}) < {limit} AND abs({y}) < {limit} THEN {narrow} ELSE {otherwise} END"


def _operand(value: str, type_: DataType, decimal: Decimal, wide: bool) -> str:
    """A side of an operation as DECIMAL; wide, because DuckDB keeps a result of narrow sides within 18 digits."""
    if wide and decimal.precision <= 18:
        return f"CAST({value} AS DECIMAL({19 if decimal.scale < 19 else 38}, {decimal.scale}))"
    return f"CAST({value} AS {types.duckdb(decimal)})" if is_integer(type_) else value


def _wide_product(a: str, b: str, result: Decimal) -> str:
    """A product of more than 38 digits before it is rounded: both sides are split at the point, and all parts have the
    sign of the product."""
    ah, bh = f"CAST(trunc({a}) AS DECIMAL(38, 0))", f"CAST(trunc({b}) AS DECIMAL(38, 0))"
    al, bl = f"({a} - trunc({a}))", f"({b} - trunc({b}))"
    middle = f"({ah} * {bl} + {al} * {bh})"
    whole = f"({ah} * {bh} + CAST(trunc({middle}) AS DECIMAL(38, 0)))"
    return _rounded(whole, f"({middle} - trunc({middle}) + {al} * {bl})", result)


def _rounded(whole: str, fraction: str, result: Decimal) -> str:
    """A whole number and a fraction (less than two) of the same sign, added and rounded half up."""
    target = types.duckdb(result)
    return (
        f"CAST(CAST({whole} AS {target}) + CAST({fraction} AS DECIMAL({result.scale + 2}, {result.scale})) AS {target})"
    )


def _quotient(left: DataType, right: DataType, a: Decimal, b: Decimal, result: Decimal) -> str:
    """Integers are divided: the digits of both sides, without their points, scaled so that the quotient has the digits
    that are asked for. With half of the divisor added to the numerator, cutting off rounds half up."""
    shift = result.scale + b.scale - a.scale
    numerator, divisor = _digits("{0}", left, a), _digits("{1}", right, b)
    if shift > 0:
        numerator = f"({numerator} * CAST({10**shift} AS HUGEINT))"
    if shift < 0:
        divisor = f"({divisor} * CAST({10**-shift} AS HUGEINT))"
    signed = f"(CASE WHEN {{0}} < 0 THEN -abs({divisor}) ELSE abs({divisor}) END)"
    if a.precision + max(shift, 0) < 38:
        return _pointed(f"(({numerator} * 2 + {signed}) // ({divisor} * 2))", result)
    return _pointed(f"(({numerator} + {signed} // 2) // {divisor})", result)


def _at_scale(value: str, type_: DataType, decimal: Decimal, scale: int) -> str:
    """The digits of a decimal with `scale` of them after the point."""
    return f"({_digits(value, type_, decimal)} * CAST({10 ** (scale - decimal.scale)} AS HUGEINT))"


def _digits(value: str, type_: DataType, decimal: Decimal) -> str:
    """A decimal without its point, as HUGEINT: 12.50 is 1250."""
    if is_integer(type_) or decimal.scale == 0:
        return f"CAST({value} AS HUGEINT)"
    if decimal.scale > 37:
        raise SqlError(f"{types.flink(decimal)} has too many digits after the point to be divided", hint="CAST it")
    power = f"CAST({10**decimal.scale} AS DECIMAL({decimal.scale + 1}, 0))"
    if decimal.precision + decimal.scale + 1 <= 18:
        return f"CAST(CAST({value} * {power} AS BIGINT) AS HUGEINT)"
    if decimal.precision + decimal.scale <= 38:
        wide = f"CAST({value} AS DECIMAL(38, {decimal.scale}))"
        return f"CAST({wide} * {power} AS HUGEINT)"
    whole = f"CAST(trunc({value}) AS HUGEINT) * CAST({10**decimal.scale} AS HUGEINT)"
    fraction = f"CAST(CAST({value} - trunc({value}) AS DECIMAL(38, {decimal.scale})) * {power} AS HUGEINT)"
    return f"({whole} + {fraction})"


def _pointed(digits: str, type_: Decimal, result: Decimal | None = None) -> str:
    """The inverse of `_digits`, of type `result`."""
    if type_.scale == 0:
        return f"CAST({digits} AS {types.duckdb(result or type_)})"
    unit = f"CAST('0.{'1'.zfill(type_.scale)}' AS DECIMAL({type_.scale}, {type_.scale}))"
    return f"CAST(CAST({digits} AS DECIMAL(38, 0)) * {unit} AS {types.duckdb(result or type_)})"


def shifted(operator: str, arguments: Arguments, context: Context) -> Expression:
    """Return a time plus or minus an interval. Months keep the day, or take the last one of a shorter month.

    Days of an interval are 24 hours: an instant is moved on the time line, whatever the clocks of the zone do.
    """
    moment, interval = arguments if isinstance(arguments[1].type, Interval) else arguments[::-1]
    template = f"({{0}} {operator} {{1}})"
    match moment.type:
        case types.DATE:
            template = f"CAST({template} AS DATE)"
        case Timestamp(p) if p < 3:
            return Call(operator, (moment, interval), Timestamp(3), template)
        case TimestampLtz(p) if p < 3:
            return Call(operator, (moment, interval), TimestampLtz(3), template)
    return Call(operator, (moment, interval), moment.type, template)


def _intervals(operator: str, arguments: Arguments, context: Context) -> Expression:
    return Call(operator, arguments, arguments[0].type, f"({{0}} {operator} {{1}})")


def _times(operator: str, arguments: Arguments, context: Context) -> Expression:
    """An interval times an integer."""
    interval, number = arguments if isinstance(arguments[0].type, Interval) else arguments[::-1]
    return Call(operator, (interval, number), interval.type, "({0} * {1})")


_SHIFTS = ("DATE, INTERVAL", "TIME, INTERVAL", "MOMENT, INTERVAL")

OPERATORS: Table = {
    "+": (
        built("NUMERIC, NUMERIC", _numbers),
        *(built(p, shifted) for p in _SHIFTS),
        *(built(", ".join(p.split(", ")[::-1]), shifted) for p in _SHIFTS),
        built("INTERVAL, INTERVAL", _intervals),
    ),
    "-": (
        built("NUMERIC, NUMERIC", _numbers),
        *(built(p, shifted) for p in _SHIFTS),
        built("INTERVAL, INTERVAL", _intervals),
    ),
    "*": (
        built("NUMERIC, NUMERIC", _numbers),
        built("INTERVAL, INTEGER", _times),
        built("INTEGER, INTERVAL", _times),
    ),
    "/": (built("NUMERIC, NUMERIC", _numbers),),
    "%": (built("NUMERIC, NUMERIC", _numbers),),
    "MOD": (built("NUMERIC, NUMERIC", lambda name, arguments, context: _numbers("%", arguments, context)),),
    "unary -": (plain("NUMERIC", same, "(-{0})"), plain("INTERVAL", same, "(-{0})")),
}
