"""CAST and TRY_CAST: values change their type as in Flink SQL, whose rules often differ from DuckDB's.

A fraction is cut off where DuckDB rounds, text is read and written as Java does it, CHAR(n) pads and cuts. What
does not fit its type fails the row: it raises in CAST and is NULL in TRY_CAST.
"""

from __future__ import annotations

from collections.abc import Mapping

from service.plan import types
from service.plan.expressions import Call, Expression, Literal
from service.plan.types import (
    Array,
    Binary,
    DataType,
    Decimal,
    Interval,
    Map,
    Row,
    Text,
    Time,
    Timestamp,
    TimestampLtz,
    flink,
)
from service.sql.errors import SqlError
from service.sql.expressions import casts_text, casts_time
from service.sql.expressions.sharing import shared
from service.sql.expressions.type_rules import (
    assignable,
    common_type,
    is_approximate,
    is_binary,
    is_integer,
    is_numeric,
    is_text,
)

__all__ = ["assignable", "cast", "common_type"]


def cast(
    expression: Expression, to: DataType, *, try_: bool = False, implicit: bool = False, zone: str = "UTC"
) -> Expression:
    """Return `expression` as a value of type `to`.

    `implicit` is the cast that INSERT and CASE make on their own: text is neither cut nor padded. `zone` is that of the
    session, through which TIMESTAMP and TIMESTAMP_LTZ are converted. Raises SqlError where Flink SQL knows no such
    cast.
    """
    source = expression.type
    if source == to:
        return expression
    if source == types.NULL:
        return Literal(f"CAST(NULL AS {types.duckdb(to)})", to, "NULL")
    template = template_of(source, to, implicit, zone)
    if template is None:
        raise SqlError(
            f"a value of type {flink(source)} cannot be cast to {flink(to)}",
            hint=_hint(source, to),
        )
    name = "TRY_CAST" if try_ else "CAST"
    text = f"TRY({template})" if try_ and template != "{0}" else template
    constants = ("whole",) if implicit and _has_length(to) else ()
    version = _VERSIONS.get((type(source), type(to)), 1)
    versions = ((name, version),) if version > 1 else ()
    return shared(Call(name, (expression,), to, text, constants=constants, versions=versions))


_VERSIONS: Mapping[tuple[type[DataType], type[DataType]], int] = {}
"""The versions of casts that a mend made give other values, by kinds of types: see `functions.signature.Overload`."""


def _has_length(to: DataType) -> bool:
    """Whether a cast to a type would cut or pad text or bytes somewhere, if it were not implicit."""
    match to:
        case Text() | Binary():
            return True
        case Array(element):
            return _has_length(element)
        case Map(key, value):
            return _has_length(key) or _has_length(value)
        case Row(_, types_):
            return any(map(_has_length, types_))
    return False


def _hint(source: DataType, to: DataType) -> str:
    moment = isinstance(to, Timestamp | TimestampLtz)
    if is_numeric(source) and moment:
        return "use TO_TIMESTAMP_LTZ(number, 3) for milliseconds, or TO_TIMESTAMP(FROM_UNIXTIME(seconds))"
    if is_numeric(to) and isinstance(source, Timestamp | TimestampLtz):
        return "use UNIX_TIMESTAMP(CAST(time AS STRING)) for seconds"
    return ""


def template_of(source: DataType, to: DataType, implicit: bool, zone: str) -> str | None:
    """Return DuckDB text that turns {0}, of type `source`, into `to`; None where there is no such cast."""
    if source == to:
        return "{0}"
    if is_text(to):
        return _fitted(casts_text.to_text(source, zone), source, to, implicit)
    if is_binary(to):
        return _to_binary(source, to, implicit)
    if is_numeric(to):
        return _to_number(source, to)
    match to:
        case types.BOOLEAN:
            if is_text(source):
                return casts_text.to_boolean()
            return "({0} <> 0)" if is_numeric(source) else None
        case types.DATE | Time() | Timestamp() | TimestampLtz():
            return casts_time.to_time(source, to, zone)
        case Array() | Map() | Row():
            return _to_nested(source, to, implicit, zone)
        case Interval():
            return None
    return None


def _fitted(text: str | None, source: DataType, to: DataType, implicit: bool) -> str | None:
    """`text` cut to the length of `to`, and padded with blanks if that is fixed."""
    if text is None or implicit or not isinstance(to, Text):
        return text
    if isinstance(source, Text) and source.length <= to.length and (source.fixed or not to.fixed) and not to.fixed:
        return text
    return f"rpad({text}, {to.length}, ' ')" if to.fixed else f"left({text}, {to.length})"


def _to_binary(source: DataType, to: DataType, implicit: bool) -> str | None:
    if is_text(source):
        value = "encode({0})"
    elif is_binary(source):
        value = "{0}"
    else:
        return None
    if implicit or not isinstance(to, Binary) or to == source:
        return value
    digits = f"left(hex({value}), {to.length * 2})"
    return f"unhex(rpad({digits}, {to.length * 2}, '0'))" if to.fixed else f"unhex({digits})"


def _to_number(source: DataType, to: DataType) -> str | None:
    target = types.duckdb(to)
    if is_text(source):
        return casts_text.to_number(to)
    if source == types.BOOLEAN:
        return f"CAST({{0}} AS {target})"
    if not is_numeric(source):
        return None
    if is_integer(to) and not is_integer(source):
        return f"CAST(trunc({{0}}) AS {target})"
    if isinstance(to, Decimal) and is_approximate(source):
        # By the shortest text of the number, as Java does it, and not by its binary value.
        return f"CAST(CAST({{0}} AS VARCHAR) AS {target})"
    if to == types.FLOAT and isinstance(source, Decimal):
        return "CAST(CAST({0} AS VARCHAR) AS FLOAT)"
    if to == types.DOUBLE and isinstance(source, Decimal):
        return "CAST(CAST({0} AS VARCHAR) AS DOUBLE)"
    if to == types.DOUBLE and source == types.FLOAT:
        return "CAST({0} AS DOUBLE)"
    return f"CAST({{0}} AS {target})"


def _to_nested(source: DataType, to: DataType, implicit: bool, zone: str) -> str | None:
    """Arrays, maps and rows are cast part by part."""
    match source, to:
        case (Array(a), Array(b)):
            inner = _lambda(a, b, implicit, zone)
            return None if inner is None else f"list_transform({{0}}, {inner})"
        case (Map(k, v), Map(m, w)):
            keys, values = _lambda(k, m, implicit, zone), _lambda(v, w, implicit, zone)
            if keys is None or values is None:
                return None
            made = f"map(list_transform(map_keys({{0}}), {keys}), list_transform(map_values({{0}}), {values}))"
            return f"CASE WHEN {{0}} IS NOT NULL THEN {made} END"
        case (Row(_, xs), Row(names, ys)) if len(xs) == len(ys):
            parts = [template_of(x, y, implicit, zone) for x, y in zip(xs, ys, strict=True)]
            if any(p is None for p in parts):
                return None
            fields = [
                f"{identifier(n)} := {_within(p or '', f'struct_extract_at({{0}}, {i})')}"
                for i, (n, p) in enumerate(zip(names, parts, strict=True), 1)
            ]
            return f"CASE WHEN {{0}} IS NOT NULL THEN struct_pack({', '.join(fields)}) END"
    return None


def _lambda(a: DataType, b: DataType, implicit: bool, zone: str) -> str | None:
    template = template_of(a, b, implicit, zone)
    if template is None:
        return None
    # A lambda inside hides the variable of the one outside, which is not used there: it stands in the list only.
    return f"lambda v: {_within(template, 'v')}"


def _within(template: str, argument: str) -> str:
    return template.replace("{0}", argument)


def identifier(name: str) -> str:
    """Return a field's name in DuckDB, in a template."""
    return '"' + name.replace('"', '""').replace("{", "{{").replace("}", "}}") + '"'
