"""The values of CSV cells, as DuckDB text: from a text to a value, and from a value to a text."""

from __future__ import annotations

from typing import assert_never

from service.formats.csv.options import CsvOptions
from service.formats.json.columns import quoted
from service.formats.json.options import JsonOptions
from service.formats.json.text import json_text
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
    duckdb,
)

_WHOLE = r"[+-]?[0-9]+"
_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
_BASE64 = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"


def value_of(x: str, type_: DataType, options: CsvOptions) -> str:
    """Return DuckDB text for the value of the text `x`; NULL where it is NULL or not written as such a value is."""
    match type_:
        case Simple("STRING") | Text():
            return x
        case Simple("BOOLEAN"):
            return f"CASE lower({x}) WHEN 'true' THEN true WHEN 'false' THEN false END"
        case Simple("TINYINT" | "SMALLINT" | "INT" | "BIGINT"):
            return _cast(x, _WHOLE, type_)
        case Simple("FLOAT" | "DOUBLE"):
            return _cast(x, rf"{_NUMBER}|NaN|-?Infinity", type_)
        case Decimal():
            return _cast(x, _NUMBER, type_)
        case Simple("BYTES") | Binary():
            return f"CASE WHEN regexp_full_match({x}, '{_BASE64}') THEN from_base64({x}) END"
        case Simple("DATE"):
            return _cast(x, _DAY, type_)
        case Time():
            return _cast(x, _CLOCK, type_)
        case Timestamp():
            return f"CASE WHEN regexp_full_match({x}, '{_DAY}[ T]{_CLOCK}') THEN TRY_CAST({x} AS TIMESTAMP) END"
        case TimestampLtz():
            plain = f"rtrim({x}, 'Z')"
            return f"CASE WHEN regexp_full_match({x}, '{_DAY}[ T]{_CLOCK}Z') THEN TRY_CAST({plain} AS TIMESTAMP) END"
        case Array(element):
            return _array_of(x, element, options)
        case Simple("NULL"):
            return "CAST(NULL AS INTEGER)"
        case Map() | Row() | Interval() | Simple():
            raise ValueError(f"a cell of CSV cannot hold a {type_}")
        case _:
            assert_never(type_)


def _array_of(x: str, element: DataType, options: CsvOptions) -> str:
    """As Flink reads an ARRAY: a blank text is an empty one, and an element that is the null literal is NULL."""
    cells = f"string_split({x}, {quoted(options.element_delimiter)})"
    cells = f"CASE WHEN regexp_full_match({x}, '\\s*') THEN CAST([] AS VARCHAR[]) ELSE {cells} END"
    null = "false" if options.null is None else f"e = {quoted(options.null)}"
    text = "e" if isinstance(element, Text) or element == Simple("STRING") else "trim(e)"
    value = f"CASE WHEN NOT ({null}) THEN {value_of(text, element, options)} END"
    # DuckDB has no value for the list of an empty array, which is whole.
    whole = f"coalesce(list_bool_and(list_transform({cells}, lambda e: ({null}) OR ({value}) IS NOT NULL)), true)"
    return f"CASE WHEN {x} IS NOT NULL AND {whole} THEN list_transform({cells}, lambda e: {value}) END"


def unreadable(x: str, value: str) -> str:
    """Return DuckDB text for whether `x` is there and `value` is not."""
    return f"({x} IS NOT NULL AND {value} IS NULL)"


def text_of(x: str, type_: DataType, options: CsvOptions) -> str:
    """Return DuckDB text for the text of the value `x`, NULL where the value is; quotes are not its concern."""
    json_options = JsonOptions(plain_decimals=not options.scientific)
    match type_:
        case Simple("STRING") | Text():
            return x
        case Array(element):
            inner = f"coalesce({text_of('e', element, options)}, {quoted(options.null or '')})"
            return f"array_to_string(list_transform({x}, lambda e: {inner}), {quoted(options.element_delimiter)})"
        case _:
            # As JSON writes it, without the quotes around a text.
            return f"trim({json_text(x, type_, json_options)}, '\"')"


def _cast(x: str, shape: str, type_: DataType) -> str:
    return f"CASE WHEN regexp_full_match({x}, {quoted(shape)}) THEN TRY_CAST({x} AS {duckdb(type_)}) END"
