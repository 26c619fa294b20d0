"""The JSON text of a value of each type, as DuckDB text that is NULL where the value is.

Numbers and times are written as Flink writes them, so that a consumer sees no difference: DOUBLE as Java prints it
(1.0E7, "NaN"), DECIMAL without trailing zeros and with an exponent where Java's BigDecimal has one (1E+2, 2.7E-8)
unless 'encode.decimal-as-plain-number' is set, times without trailing zeros of the fraction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import assert_never

from service.formats.json.columns import identifier, quoted
from service.formats.json.options import JsonOptions
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


def object_text(
    expressions: Sequence[str], names: Sequence[str], types: Sequence[DataType], options: JsonOptions, depth: int = 0
) -> str:
    """Return the text of an object with these members. It is never NULL."""
    if not names:
        return "'{}'"
    members = [
        (json.dumps(n, ensure_ascii=False) + ":", json_text(x, t, options, depth))
        for x, n, t in zip(expressions, names, types, strict=True)
    ]
    if options.omit_nulls:
        # A NULL makes the whole member NULL, and concat passes it over.
        joined = ", ".join(f"({quoted(',' + name)} || {text})" for name, text in members)
        return f"concat('{{', substr(concat({joined}), 2), '}}')"
    joined = ", ".join(
        f"{quoted(('{', ',')[i > 0] + name)}, coalesce({text}, 'null')" for i, (name, text) in enumerate(members)
    )
    return f"concat({joined}, '}}')"


def json_text(x: str, type_: DataType, options: JsonOptions, depth: int = 0) -> str:
    """Return the text of the value that `x` names."""
    match type_:
        case Simple("BOOLEAN" | "TINYINT" | "SMALLINT" | "INT" | "BIGINT"):
            return f"CAST({x} AS VARCHAR)"
        case Simple("DOUBLE"):
            return _float(x, f"CAST(to_json({x}) AS VARCHAR)")
        case Simple("FLOAT"):
            return _float(x, f"CAST({x} AS VARCHAR)")
        case Simple("STRING") | Text():
            return f"CAST(to_json({x}) AS VARCHAR)"
        case Simple("BYTES") | Binary():
            return f"'\"' || to_base64({x}) || '\"'"
        case Simple("DATE") | Time():
            return f"'\"' || CAST({x} AS VARCHAR) || '\"'"
        case Simple("NULL"):
            return "CAST(NULL AS VARCHAR)"
        case Decimal(precision, scale):
            text = _digits(x, precision, scale)
            return text if options.plain_decimals else _decimal(x, text, scale)
        case Timestamp():
            return f"'\"' || {_moment(x, options)} || '\"'"
        case TimestampLtz():
            return f"'\"' || {_moment(x, options)} || 'Z\"'"
        case Array(element):
            item = f"e{depth}"
            inner = json_text(item, element, options, depth + 1)
            texts = f"list_transform({x}, lambda {item}: coalesce({inner}, 'null'))"
            return f"'[' || array_to_string({texts}, ',') || ']'"
        case Map(key, value):
            return _map(x, key, value, options, depth)
        case Row(names, types):
            fields = [f"{x}.{identifier(n)}" for n in names]
            return f"(CASE WHEN {x} IS NOT NULL THEN {object_text(fields, names, types, options, depth)} END)"
        case Interval() | Simple():
            raise ValueError("JSON cannot carry an INTERVAL")
        case _:
            assert_never(type_)


def _moment(x: str, options: JsonOptions) -> str:
    text = f"CAST({x} AS VARCHAR)"
    return f"replace({text}, ' ', 'T')" if options.standard == "ISO-8601" else text


def _map(x: str, key: DataType, value: DataType, options: JsonOptions, depth: int) -> str:
    if not isinstance(key, Text) and key != Simple("STRING"):
        raise ValueError("the keys of a MAP in JSON are texts")
    item = f"e{depth}"
    inner = f"coalesce({json_text(f'{item}.value', value, options, depth + 1)}, 'null')"
    entry = f"CAST(to_json({item}.key) AS VARCHAR) || ':' || {inner}"
    entries = f"map_entries({x})"
    if options.omit_nulls:
        entries = f"list_filter({entries}, lambda {item}: {item}.value IS NOT NULL)"
    return f"'{{' || array_to_string(list_transform({entries}, lambda {item}: {entry}), ',') || '}}'"


def _float(x: str, text: str) -> str:
    """As Java: plain from 0.001 to 10 million, else one digit before the point and an exponent; NaN is a text."""
    return (
        f"(CASE WHEN abs({x}) >= 1e-3 AND abs({x}) < 1e7 OR {x} = 0 THEN {text} "
        f"WHEN isnan({x}) THEN '\"NaN\"' "
        f"WHEN isinf({x}) THEN CASE WHEN {x} > 0 THEN '\"Infinity\"' ELSE '\"-Infinity\"' END "
        f"ELSE CASE WHEN {x} < 0 THEN '-' ELSE '' END || {_scientific(x, f'ltrim({text}, chr(45))')} END)"
    )


def _scientific(x: str, text: str) -> str:
    """An absolute value in scientific notation from its shortest text, which may be plain or not."""
    mantissa, exponent = f"split_part({text}, 'e', 1)", f"CAST(split_part({text}, 'e', 2) AS INTEGER)"
    whole, digits = f"split_part({text}, '.', 1)", f"rtrim(replace({text}, '.', ''), '0')"
    fraction = f"split_part({text}, '.', 2)"
    small = f"ltrim({fraction}, '0')"
    return (
        f"CASE WHEN contains({text}, 'e') THEN "
        f"{mantissa} || CASE WHEN contains({mantissa}, '.') THEN '' ELSE '.0' END || 'E' || {exponent} "
        f"WHEN abs({x}) > 1 THEN {_pointed(digits, '0')} || 'E' || (strlen({whole}) - 1) "
        f"ELSE {_pointed(small, '0')} || 'E' || (strlen({small}) - strlen({fraction}) - 1) END"
    )


def _pointed(digits: str, at_least: str) -> str:
    """Digits with a point after the first one, and at least this after the point."""
    if at_least:
        return f"(left({digits}, 1) || '.' || coalesce(nullif(substr({digits}, 2), ''), '{at_least}'))"
    return f"(left({digits}, 1) || coalesce('.' || nullif(substr({digits}, 2), ''), ''))"


def _digits(x: str, precision: int, scale: int) -> str:
    """All digits of a DECIMAL; DuckDB leaves out the zero before the point where the type has no place for it."""
    text = f"CAST({x} AS VARCHAR)"
    return f"replace('0' || {text}, '0-', '-0')" if precision == scale else text


def _decimal(x: str, text: str, scale: int) -> str:
    """As Java's BigDecimal without trailing zeros, from all digits."""
    stripped = f"rtrim(rtrim({text}, '0'), '.')" if scale else text
    sign = f"CASE WHEN {x} < 0 THEN '-' ELSE '' END"
    whole = f"ltrim({stripped}, '-')"
    kept = f"rtrim({whole}, '0')"
    large = f"{sign} || {_pointed(kept, '')} || 'E+' || (strlen({whole}) - 1)"
    if not scale:
        return f"(CASE WHEN {x} = 0 THEN '0' WHEN suffix({text}, '0') THEN {large} ELSE {text} END)"
    fraction = f"split_part({stripped}, '.', 2)"
    digits = f"ltrim({fraction}, '0')"
    small = f"{sign} || {_pointed(digits, '')} || 'E' || (strlen({digits}) - strlen({fraction}) - 1)"
    return (
        f"(CASE WHEN {x} = 0 THEN '0' WHEN abs({x}) < 0.000001 THEN {small} "
        f"WHEN suffix({stripped}, '0') AND NOT contains({stripped}, '.') THEN {large} ELSE {stripped} END)"
    )
