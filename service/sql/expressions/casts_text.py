"""The text forms of values: how Flink SQL (that is, Java) writes each type and reads it back."""

from __future__ import annotations

from service.plan import types
from service.plan.types import Array, DataType, Decimal, Map, Row, Time, Timestamp, TimestampLtz
from service.sql.expressions.type_rules import is_approximate, is_binary, is_integer, is_text
from service.sql.expressions.zones import wall_clock

_TRUE = "('t', 'true', 'y', 'yes', '1')"
_FALSE = "('f', 'false', 'n', 'no', '0')"


def to_text(source: DataType, zone: str) -> str | None:
    """Return DuckDB text that writes {0}, of type `source`; None for a type without a text form."""
    if is_text(source):
        return "{0}"
    if is_approximate(source):
        return _java_number()
    if is_integer(source) or isinstance(source, Decimal) or source == types.DATE:
        return "CAST({0} AS VARCHAR)"
    if source == types.BOOLEAN:
        return "upper(CAST({0} AS VARCHAR))"
    if is_binary(source):
        return "decode({0})"
    match source:
        case Time(precision):
            return _time_text(precision)
        case Timestamp(precision):
            return moment_text("{0}", "%Y-%m-%d %H:%M:%S", precision)
        case TimestampLtz(precision):
            return moment_text(wall_clock("{0}", zone), "%Y-%m-%d %H:%M:%S", precision)
        case Array(element):
            return _listed(element, zone)
        case Map(key, value):
            return _mapped(key, value, zone)
        case Row(_, fields):
            return _rowed(fields, zone)
    return None


def moment_text(value: str, pattern: str, precision: int) -> str:
    """Return a time with exactly `precision` digits after the second."""
    if precision == 0:
        return f"strftime({value}, '{pattern}')"
    if precision == 3:
        return f"strftime({value}, '{pattern}.%g')"
    written = f"strftime({value}, '{pattern}.%f')"
    return written if precision == 6 else f"left({written}, -{6 - precision})"


def _time_text(precision: int) -> str:
    """A time of day: its fraction has no more zeros at its end than one."""
    moment = "(DATE '1970-01-01' + {0})"
    if precision == 0:
        return f"strftime({moment}, '%H:%M:%S')"
    digits = f"rtrim(left(strftime({moment}, '%f'), {precision}), '0')"
    return f"strftime({moment}, '%H:%M:%S.') || coalesce(nullif({digits}, ''), '0')"


def _java_number() -> str:
    """Double.toString: plain digits from 1e-3 up to 1e7, else one digit, a point, and an exponent: 1.0E10.

    DuckDB writes the same shortest digits in another layout, which is converted here.
    """
    text = "CAST(abs({0}) AS VARCHAR)"
    sign = "CASE WHEN {0} < 0 THEN '-' ELSE '' END"
    mantissa, exponent = f"split_part({text}, 'e', 1)", f"split_part({text}, 'e', 2)"
    pointed = f"CASE WHEN contains({mantissa}, '.') THEN {mantissa} ELSE {mantissa} || '.0' END"
    whole, fraction = f"split_part({text}, '.', 1)", f"split_part({text}, '.', 2)"
    digits = f"rtrim(replace({text}, '.', ''), '0')"
    small = f"ltrim({fraction}, '0')"
    return (
        "CASE WHEN {0} = 0 OR abs({0}) >= 0.001 AND abs({0}) < 1e7 THEN CAST({0} AS VARCHAR)"
        " WHEN isnan({0}) THEN 'NaN'"
        f" WHEN isinf({{0}}) THEN {sign} || 'Infinity'"
        f" WHEN contains({text}, 'e') THEN {sign} || {pointed} || 'E' || CAST(CAST({exponent} AS INTEGER) AS VARCHAR)"
        f" WHEN abs({{0}}) >= 1 THEN {sign} || {_first_digit(digits)} || 'E' || CAST(length({whole}) - 1 AS VARCHAR)"
        f" WHEN {{0}} IS NOT NULL THEN {sign} || {_first_digit(small)}"
        f" || 'E-' || CAST(length({fraction}) - length({small}) + 1 AS VARCHAR) END"
    )


def _first_digit(digits: str) -> str:
    """The first digit, a point, and the others, or a zero: 12 is 1.2, 5 is 5.0."""
    return f"left({digits}, 1) || '.' || coalesce(nullif(substr({digits}, 2), ''), '0')"


def _part(type_: DataType, zone: str, argument: str) -> str | None:
    template = to_text(type_, zone)
    return None if template is None else f"coalesce({template.replace('{0}', argument)}, 'NULL')"


def _listed(element: DataType, zone: str) -> str | None:
    part = _part(element, zone, "v")
    return None if part is None else f"'[' || array_to_string(list_transform({{0}}, lambda v: {part}), ', ') || ']'"


def _mapped(key: DataType, value: DataType, zone: str) -> str | None:
    keys, values = _part(key, zone, "v.key"), _part(value, zone, "v.value")
    if keys is None or values is None:
        return None
    entries = f"list_transform(map_entries({{0}}), lambda v: {keys} || '=' || {values})"
    return f"'{{{{' || array_to_string({entries}, ', ') || '}}}}'"


def _rowed(fields: tuple[DataType, ...], zone: str) -> str | None:
    parts = [_part(t, zone, f"struct_extract_at({{0}}, {i})") for i, t in enumerate(fields, 1)]
    if any(p is None for p in parts):
        return None
    inner = " || ', ' || ".join(p or "" for p in parts)
    return f"CASE WHEN {{0}} IS NOT NULL THEN '(' || {inner} || ')' END"


_REFUSED = "'\"' || {0} || '\"'"
"""A text in quotation marks, which no cast takes: its error says which text it was."""


def matched(pattern: str, group: int = 0) -> str:
    """Return DuckDB text of what `pattern`, which matches no empty text, finds in {0}; where it finds nothing, of a
    text that cannot be cast."""
    return f"coalesce(nullif(regexp_extract({{0}}, '{pattern}', {group}), ''), {_REFUSED})"


def to_boolean() -> str:
    """Return text as BOOLEAN; what is neither yes nor no fails."""
    text = "lower(trim({0}))"
    known = f"CASE WHEN {text} IN {_TRUE} THEN TRUE WHEN {text} IN {_FALSE} THEN FALSE"
    # The cast of a text that is no boolean is what raises.
    return known + f" ELSE CAST({_REFUSED} AS BOOLEAN) END"


def to_number(to: DataType) -> str:
    """Return text as a number. Blanks around it are ignored; a whole number may have a fraction, which is cut off."""
    number = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    if is_integer(to):
        written = r"^\s*([+-]?[0-9]+)(?:\.[0-9]*)?\s*$"
    elif isinstance(to, Decimal):
        written = rf"^\s*({number})[dDfF]?\s*$"
    else:
        written = rf"^\s*({number}|[+-]?NaN|[+-]?Infinity)[dDfF]?\s*$"
    return f"CAST({matched(written, 1)} AS {types.duckdb(to)})"
