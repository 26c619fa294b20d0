"""Functions of numbers: rounding, powers, logarithms, angles, chance."""

from __future__ import annotations

from service.plan import types
from service.plan.expressions import Call, Expression
from service.plan.types import DOUBLE, INT, DataType, Decimal
from service.sql.errors import SqlError
from service.sql.expressions.context import Context
from service.sql.expressions.type_rules import is_approximate, is_integer
from service.sql.functions.signature import Arguments, Table, built, constant_integer, plain, same


def _rounded(name: str, arguments: Arguments, context: Context) -> Expression:
    """ROUND (half up, away from zero) and TRUNCATE (towards zero)."""
    value, function = arguments[0], "round" if name == "ROUND" else "trunc"
    digits = 0 if len(arguments) == 1 else constant_integer(arguments[1])
    if digits is None:
        raise SqlError(f"the number of digits of {name} must be a constant")
    if isinstance(value.type, Decimal):
        return _rounded_decimal(name, value, value.type, digits, function)
    if is_integer(value.type):
        if digits >= 0:
            return value
        template = f"CAST({function}(CAST({{0}} AS DECIMAL(38, 0)), {digits}) AS {types.duckdb(value.type)})"
        return Call(name, (value,), value.type, template)
    # A binary number is rounded by its shortest decimal text, as in Java: 1.005 to two digits is 1.01.
    small, large = (_by_text(function, f"DECIMAL(38, {scale})", digits, value.type) for scale in (20, 0))
    template = (
        f"CASE WHEN abs({{0}}) < 1e17 THEN {small} WHEN abs({{0}}) < 1e37 THEN {large}"
        f" ELSE {function}({{0}}, {digits}) END"
    )
    return Call(name, (value,), value.type, template)


def _by_text(function: str, decimal: str, digits: int, type_: DataType) -> str:
    exact = f"{function}(CAST(CAST({{0}} AS VARCHAR) AS {decimal}), {digits})"
    return f"CAST(CAST({exact} AS VARCHAR) AS {types.duckdb(type_)})"


def _rounded_decimal(name: str, value: Expression, type_: Decimal, digits: int, function: str) -> Expression:
    if digits >= type_.scale:
        return value
    if digits < 0:
        result = Decimal(min(38, 1 + type_.precision - type_.scale), 0)
        if -digits > type_.precision - type_.scale:
            return Call(name, (value,), result, f"CAST({{0}} - {{0}} AS {types.duckdb(result)})")
    else:
        result = Decimal(1 + type_.precision - type_.scale + digits, digits)
    return Call(name, (value,), result, f"CAST({function}({{0}}, {digits}) AS {types.duckdb(result)})")


def to_whole(name: str, value: Expression) -> Expression:
    """Return CEIL or FLOOR of a number, of the number's own type; a DECIMAL loses its scale."""
    if is_integer(value.type):
        return value
    result = Decimal(value.type.precision, 0) if isinstance(value.type, Decimal) else value.type
    return Call(name, (value,), result, f"CAST({name.lower()}({{0}}) AS {types.duckdb(result)})")


def _sign(name: str, arguments: Arguments, context: Context) -> Expression:
    (value,) = arguments
    template = f"CAST(sign({{0}}) AS {types.duckdb(value.type)})"
    if is_approximate(value.type):
        template = f"CASE WHEN isnan({{0}}) THEN {{0}} ELSE {template} END"
    return Call(name, arguments, value.type, template)


def _random_integer(name: str, arguments: Arguments, context: Context) -> Expression:
    """RAND_INTEGER([seed,] n)."""
    *seed, bound = arguments
    drawn = Call("RAND", tuple(seed), DOUBLE, "random()", deterministic=False)
    return Call(name, (bound, drawn), INT, "CAST(floor({1} * {0}) AS INTEGER)")


_DOUBLES = {
    "EXP": "exp({0})",
    "LN": "ln({0})",
    "LOG10": "log10({0})",
    "LOG2": "(ln({0}) / ln(CAST(2 AS DOUBLE)))",
    "SQRT": "sqrt({0})",
    "SIN": "sin({0})",
    "COS": "cos({0})",
    "TAN": "tan({0})",
    "COT": "(CAST(1 AS DOUBLE) / tan({0}))",
    "ASIN": "asin({0})",
    "ACOS": "acos({0})",
    "ATAN": "atan({0})",
    "SINH": "sinh({0})",
    "COSH": "cosh({0})",
    "TANH": "tanh({0})",
    "DEGREES": "degrees({0})",
    "RADIANS": "radians({0})",
}

MATHEMATICS: Table = {
    **{name: (plain("DOUBLE", DOUBLE, template),) for name, template in _DOUBLES.items()},
    "LOG": (plain("DOUBLE", DOUBLE, "ln({0})"), plain("DOUBLE, DOUBLE", DOUBLE, "(ln({1}) / ln({0}))")),
    "POWER": (plain("DOUBLE, DOUBLE", DOUBLE, "pow({0}, {1})"),),
    "ATAN2": (plain("DOUBLE, DOUBLE", DOUBLE, "atan2({0}, {1})"),),
    "PI": (plain("", DOUBLE, "pi()"),),
    "E": (plain("", DOUBLE, "CAST('2.718281828459045' AS DOUBLE)"),),
    "ABS": (plain("NUMERIC", same, "abs({0})"),),
    "SIGN": (built("NUMERIC", _sign),),
    "ROUND": (built("NUMERIC", _rounded), built("NUMERIC, INT", _rounded)),
    "TRUNCATE": (built("NUMERIC", _rounded), built("NUMERIC, INT", _rounded)),
    "RAND": tuple(plain(seed, DOUBLE, "random()", deterministic=False) for seed in ("", "INT")),
    "RAND_INTEGER": (built("INT", _random_integer), built("INT, INT", _random_integer)),
}
