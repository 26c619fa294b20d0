"""Constants: what type Flink gives a literal, and how DuckDB writes its value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from math import isinf

from sqlglot import exp

from service.plan import types
from service.plan.expressions import Literal
from service.plan.types import DataType
from service.sql.errors import SqlError

MONTHS: Mapping[str, int] = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
MILLISECONDS: Mapping[str, int] = {
    "MILLISECOND": 1,
    "SECOND": 1_000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
    "WEEK": 604_800_000,
}

# The fields of a compound interval, from the largest on, and the text between each and the next.
_COMPOUND = (("DAY", " "), ("HOUR", ":"), ("MINUTE", ":"), ("SECOND", ""))
_INTEGERS: tuple[tuple[DataType, int], ...] = ((types.INT, 2**31), (types.BIGINT, 2**63))


def quoted(text: str) -> str:
    """Return `text` as a string constant of DuckDB."""
    return "'" + text.replace("'", "''") + "'"


def string(text: str) -> Literal:
    """Return a string constant: CHAR(n), as the standard has it."""
    return Literal(quoted(text), types.Text(len(text), fixed=True), quoted(text))


def number(text: str) -> Literal:
    """Return a number: INT, BIGINT or DECIMAL by its digits, DOUBLE if it has an exponent. Raises SqlError for more
    than 38 digits, or beyond the range of DOUBLE.

    >>> [types.flink(number(text).type) for text in ("7", "3000000000", "1.50", "1e3")]
    ['INT', 'BIGINT', 'DECIMAL(3, 2)', 'DOUBLE']
    """
    if "e" in text.lower():
        if not re.fullmatch(r"(\d+\.?\d*|\.\d+)[eE][+-]?\d+", text):
            raise SqlError(f'"{text}" is not a number', hint="write the digits of the exponent, as in 1e3")
        if isinf(float(text)):
            raise SqlError(f"the number {text} is too large for a DOUBLE")
        return Literal(f"CAST('{text}' AS DOUBLE)", types.DOUBLE, text)
    whole, point, fraction = text.partition(".")
    if not fraction:
        value = int(whole or "0")
        for type_, limit in _INTEGERS:
            if value < limit:
                return Literal(f"CAST({value} AS {types.duckdb(type_)})", type_, text)
    digits = len(whole + fraction) if point else len(whole)
    if digits > 38:
        raise SqlError(
            f"the number {text} has more than 38 digits", hint="write it with an exponent to make it a DOUBLE"
        )
    type_ = types.Decimal(max(digits, 1), len(fraction))
    return Literal(f"CAST('{text}' AS {types.duckdb(type_)})", type_, text)


def boolean(value: bool) -> Literal:
    """Return TRUE or FALSE."""
    return Literal(str(value).upper(), types.BOOLEAN, str(value).upper())


def null(type_: DataType = types.NULL) -> Literal:
    """Return NULL of a type."""
    return Literal(f"CAST(NULL AS {types.duckdb(type_)})", type_, "NULL")


def unicode(node: exp.Expr) -> Literal:
    r"""Return the text of U&'caf\00e9', also with UESCAPE: characters by their code points, in four hexadecimal digits,
    or six behind a plus. Raises SqlError for any other escape."""
    escape = node.args.get("escape")
    mark = escape.name if isinstance(escape, exp.Expr) else "\\"
    if len(mark) != 1 or mark in "+'\"0123456789abcdefABCDEF ":
        raise SqlError(f"UESCAPE takes one character that is not a digit, not '{mark}'", at=node)
    sign = re.escape(mark)

    def character(found: re.Match[str]) -> str:
        return mark if found[1] == mark else chr(int(found[1].removeprefix("+"), 16))

    text, code = node.name, rf"{sign}({sign}|[0-9A-Fa-f]{{4}}|\+[0-9A-Fa-f]{{6}})"
    if mark in re.sub(code, "", text):
        raise SqlError(f"'{text}' is not a text with code points", hint="write U&'\\00e9', or U&'\\+01f600'", at=node)
    try:
        # Halves of one character become that character.
        return string(re.sub(code, character, text).encode("utf-16", "surrogatepass").decode("utf-16"))
    except (ValueError, OverflowError):
        raise SqlError(f"'{text}' names a code point that is not a character", at=node) from None


def binary(digits: str) -> Literal:
    """Return X'0AFF' as BINARY of that length. Raises SqlError for anything but pairs of hexadecimal digits."""
    if len(digits) % 2 or not re.fullmatch(r"[0-9A-Fa-f]*", digits):
        raise SqlError(f"X'{digits}' is not a binary constant", hint="write an even number of hexadecimal digits")
    type_ = types.Binary(len(digits) // 2, fixed=True)
    return Literal(f"unhex('{digits}')", type_, f"X'{digits}'")


def to_microseconds(text: str) -> str:
    """Return a time without what stands behind the sixth digit after the second."""
    whole, point, fraction = text.partition(".")
    return f"{whole}{point}{fraction[:6]}" if fraction.isdigit() else text


def typed(name: str, text: str) -> Literal:
    """Return the constant DATE '...', TIME '...' or TIMESTAMP '...'; `name` is the first word. Raises SqlError for a
    text that is not one."""
    shown = f"{name} {quoted(text)}"
    try:
        if name == "DATE":
            date.fromisoformat(text)
            return Literal(f"CAST({quoted(text)} AS DATE)", types.DATE, shown)
        digits = len(text.partition(".")[2])
        if name == "TIME":
            time.fromisoformat(text)
            return Literal(f"CAST({quoted(text)} AS TIME)", types.Time(digits), shown)
        datetime.fromisoformat(text)
        if "T" in text or len(text) < 19:
            raise ValueError(text)
        return Literal(f"CAST({quoted(text)} AS TIMESTAMP)", types.Timestamp(digits), shown)
    except ValueError:
        form = {"DATE": "2024-12-31", "TIME": "23:59:59", "TIMESTAMP": "2024-12-31 23:59:59.999"}[name]
        raise SqlError(f"{shown} is not a valid {name}", hint=f"write {name} '{form}'") from None


MOST_YEARS = 10_000
"""The longest interval: a TIMESTAMP ends with the year 9999, and the milliseconds of ten times as many years are added
up without an overflow."""


def interval_value(node: exp.Expr) -> tuple[types.Interval, int]:
    """Return the type and the length, in months or in milliseconds, of INTERVAL '...' UNIT [TO UNIT]. Raises SqlError
    for a text that is none, or is longer than `MOST_YEARS`."""
    type_, value = _interval(node)
    if abs(value) > MOST_YEARS * (12 if type_.months else _YEAR):
        raise SqlError(
            "the interval is too long", detail=f"the longest is {MOST_YEARS:,} years: times end with 9999", at=node
        )
    return type_, value


_YEAR = 365 * MILLISECONDS["DAY"] + MILLISECONDS["DAY"] // 4


def _interval(node: exp.Expr) -> tuple[types.Interval, int]:
    if isinstance(node, exp.Paren):
        return _interval(node.this)
    if isinstance(node, exp.Neg):
        type_, value = _interval(node.this)
        return type_, -value
    if not isinstance(node, exp.Interval):
        raise SqlError("an interval is expected here", hint="write INTERVAL '5' SECOND, for example", at=node)
    sign, constant = 1, node.this
    while isinstance(constant, exp.Neg):
        sign, constant = -sign, constant.this
    if not isinstance(constant, exp.Literal):
        raise SqlError("the length of an interval must be a constant", hint="write INTERVAL '5' SECOND", at=node)
    text = constant.name.strip()
    if text[:1] in ("-", "+"):
        sign, text = (-sign if text[0] == "-" else sign), text[1:]
    unit = node.args.get("unit")
    if isinstance(unit, exp.IntervalSpan):
        return _span(node, sign, text, _unit(unit.this), _unit(unit.expression))
    name = _unit(unit)
    if re.fullmatch(r"\d+", text) and name in MONTHS:
        return types.Interval(months=True), sign * int(text) * MONTHS[name]
    if re.fullmatch(r"\d+(\.\d+)?" if name == "SECOND" else r"\d+", text) and name in MILLISECONDS:
        return types.Interval(months=False), sign * int(Decimal(text) * MILLISECONDS[name])
    if name not in MONTHS and name not in MILLISECONDS:
        known = ", ".join((*MILLISECONDS, *MONTHS))
        raise SqlError(f'"{name}" is not a unit of an interval', detail=f"the units are {known}", at=node)
    raise SqlError(
        f"'{constant.name}' is not a length of an interval in {name}", hint=f"write INTERVAL '5' {name}", at=node
    )


def _unit(node: exp.Expr | None) -> str:
    """The unit, without its precision and its plural: SECONDS(3) is SECOND."""
    name = node.name.upper() if node is not None else ""
    return name[:-1] if name.endswith("S") else name


def _span(node: exp.Expr, sign: int, text: str, first: str, last: str) -> tuple[types.Interval, int]:
    if (first, last) == ("YEAR", "MONTH"):
        found = re.fullmatch(r"(\d+)-(\d+)", text)
        if found and int(found[2]) < 12:
            return types.Interval(months=True), sign * (int(found[1]) * 12 + int(found[2]))
        raise SqlError(
            f"'{text}' is not a length of an interval YEAR TO MONTH", hint="write INTERVAL '1-6' YEAR TO MONTH", at=node
        )
    names = [name for name, _ in _COMPOUND]
    if first not in names or last not in names or names.index(first) >= names.index(last):
        raise SqlError(f"an interval cannot be {first} TO {last}", at=node)
    fields = _COMPOUND[names.index(first) : names.index(last) + 1]
    digits = [r"(\d+(?:\.\d+)?)" if name == "SECOND" else r"(\d+)" for name, _ in fields]
    pattern = "".join(
        d + (between if i < len(fields) - 1 else "")
        for i, (d, (_, between)) in enumerate(zip(digits, fields, strict=True))
    )
    found = re.fullmatch(pattern, text)
    if not found:
        raise SqlError(f"'{text}' is not a length of an interval {first} TO {last}", at=node)
    total = sum(int(Decimal(n) * MILLISECONDS[name]) for n, (name, _) in zip(found.groups(), fields, strict=True))
    return types.Interval(months=False), sign * total


def literal_interval(node: exp.Expr) -> Literal:
    """Return an interval constant."""
    type_, value = interval_value(node)
    unit = "months" if type_.months else "milliseconds"
    return Literal(f"INTERVAL '{value} {unit}'", type_, node.sql())


def negated(positive: Literal) -> Literal:
    """Return a number with a minus before it."""
    return Literal(f"(-{positive.duckdb})", positive.type, f"-{positive.text}")


def negative(absolute: int, type_: DataType) -> Literal:
    """Return an integer below zero."""
    return Literal(f"CAST('-{absolute}' AS {types.duckdb(type_)})", type_, f"-{absolute}")
