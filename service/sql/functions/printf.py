"""PRINTF(format, ...): values in a text, by a constant format of Java's.

Known are %s, %d, %x, %X, %f, %b, %% and %n, with a width, a precision and the flags -, 0, + and a comma. NULL is
written as `null`. Java writes a DOUBLE rounded half up, from its shortest digits.
"""

from __future__ import annotations

import re

from service.plan import types
from service.plan.expressions import Call, Expression
from service.plan.types import BOOLEAN, STRING, flink
from service.sql.errors import SqlError
from service.sql.expressions.casts import cast
from service.sql.expressions.context import Context
from service.sql.expressions.type_rules import is_approximate, is_integer, is_text
from service.sql.functions.signature import Arguments, constant_text, template_text

_SPECIFIER = re.compile(r"%(?P<flags>[-0+,]*)(?P<width>[1-9]\d{0,2})?(?:\.(?P<precision>\d{1,2}))?(?P<kind>[sdxXfb%n])")
_DEFAULT_FRACTION = 6
"""Digits behind the point where none are asked for: as in Java."""


def printf(name: str, arguments: Arguments, context: Context) -> Expression:
    """Return the format with a value in each place; arguments too many are passed over, as in Java. Raises SqlError for
    a format that is not constant, has an unknown place, or more places than values."""
    format_ = constant_text(arguments[0])
    if format_ is None:
        raise SqlError(f"the format of {name} must be a constant")
    values, pieces, at, used = list(arguments[1:]), [], 0, 0
    while at < len(format_):
        if format_[at] != "%":
            end = format_.find("%", at)
            end = len(format_) if end < 0 else end
            pieces.append(template_text(format_[at:end]))
            at = end
            continue
        found = _SPECIFIER.match(format_, at)
        if found is None:
            raise SqlError(
                f"{format_[at : at + 4]!r} in the format of {name} is not supported",
                detail="known are %s, %d, %x, %X, %f, %b, %% and %n, with a width, a precision, and -, 0, + or a comma",
            )
        at = found.end()
        if found["kind"] in "%n":
            pieces.append("'%'" if found["kind"] == "%" else "chr(10)")
            continue
        if used == len(values):
            raise SqlError(f"{name} has fewer values than places in its format")
        values[used], text = _written(values[used], found, context)
        pieces.append(text.replace("{0}", f"{{{used}}}"))
        used += 1
    template = f"({' || '.join(pieces)})" if pieces else "''"
    return Call(name, tuple(values[:used]), STRING, template)


def _written(value: Expression, specifier: re.Match[str], context: Context) -> tuple[Expression, str]:
    """`value`, perhaps cast, and the DuckDB text of how it is written, in which it is {0}."""
    kind, flags, precision = specifier["kind"], specifier["flags"], specifier["precision"]
    if kind == "s" or kind == "b":
        value = cast(value, STRING, zone=context.zone) if kind == "s" or value.type == BOOLEAN else value
        text = "{0}"
        if kind == "b":
            text = "lower({0})" if is_text(value.type) else "CASE WHEN {0} IS NOT NULL THEN 'true' END"
            text = f"coalesce({text}, 'false')"
        text = f"coalesce({text}, 'null')"
        return value, _wide(f"left({text}, {precision})" if precision else text, specifier)
    if kind in "dxX":
        if not is_integer(value.type):
            raise SqlError(f"%{kind} takes a whole number, not {flink(value.type)}", hint="use CAST, or write %s")
        digits = f"printf('%{kind}', {{0}})"
        if kind == "d":
            absolute = "abs(CAST({0} AS HUGEINT))"
            digits = f"format('{{{{:,}}}}', {absolute})" if "," in flags else f"CAST({absolute} AS VARCHAR)"
        elif value.type != types.BIGINT:
            # A negative number is that of its own width.
            bits = 8 if value.type == types.TINYINT else 16 if value.type == types.SMALLINT else 32
            digits = f"printf('%{kind}', CAST({{0}} AS BIGINT) & {2**bits - 1})"
        negative = "{0} < 0" if kind == "d" else "FALSE"
    else:
        if not is_approximate(value.type):
            raise SqlError(f"%f takes a DOUBLE, not {flink(value.type)}", hint="use CAST, or write %s")
        value = cast(value, types.DOUBLE)
        places = int(precision) if precision else _DEFAULT_FRACTION
        form = f"'{{{{:{',' if ',' in flags else ''}.{places}f}}}}'"
        exact = f"CAST(CAST(CAST(abs({{0}}) AS VARCHAR) AS DECIMAL(38, 15)) AS DECIMAL(38, {min(places, 15)}))"
        # A DECIMAL rounds half up; what does not fit it has no fraction.
        digits = f"CASE WHEN abs({{0}}) < 1e20 THEN format({form}, {exact}) ELSE format({form}, abs({{0}})) END"
        negative = "{0} < 0"
    sign = f"CASE WHEN {negative} THEN '-' ELSE '{'+' if '+' in flags else ''}' END"
    if "0" in flags and (width := specifier["width"]):
        body = f"lpad({digits}, CAST(greatest({width} - length({sign}), length({digits})) AS INTEGER), '0')"
        written = f"{sign} || {body}"
    else:
        written = f"{sign} || {digits}"
    return value, _wide(f"coalesce({written}, 'null')", specifier)


def _wide(text: str, specifier: re.Match[str]) -> str:
    """`text` in the width that is asked for; what is longer stays whole."""
    width = specifier["width"]
    if not width:
        return text
    side = "rpad" if "-" in specifier["flags"] else "lpad"
    return f"{side}({text}, CAST(greatest(length({text}), {width}) AS INTEGER), ' ')"
