"""Cells of a text table as values of SQL types, and back.

NULL, or an empty cell, is NULL. Text stands as it is; in double quotes, with JSON's escapes, where it would be taken
for something else. ARRAY, MAP and ROW are JSON, BYTES is text or x'00ff', an instant (TIMESTAMP_LTZ) is in UTC and may
end in Z. Times are written as in ISO 8601, with a space: 2024-01-01 00:00:05.25.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from operators.sql import Sql
from service.plan import types
from service.plan.types import Array, DataType, Map, Row, Simple, Timestamp, TimestampLtz, arrow, duckdb, flink

NULL = "NULL"

_DIGITS = Context(prec=38)
"""The digits of a DECIMAL; Python's own context has fewer."""


class CellError(Exception):
    """A cell that is no value of its column's type; `index` is its position among the parsed ones."""

    def __init__(self, index: int, text: str, type_: DataType) -> None:
        super().__init__(f'"{text}" is no {flink(type_)}')
        self.index = index


def parse(texts: Sequence[str], type_: DataType, sql: Sql) -> pa.Array:
    """Return the values of one column."""
    if isinstance(type_, Array | Map | Row):
        return _parse_nested(texts, type_, sql)
    read = _reader(type_)
    values = []
    for index, text in enumerate(texts):
        try:
            values.append(pa.scalar(None if text in ("", NULL) else read(text), arrow(type_)))
        except (ValueError, ArithmeticError, KeyError, pa.ArrowException):
            raise CellError(index, text, type_) from None
    return pa.array([v.as_py() for v in values], arrow(type_))


def render(column: pa.ChunkedArray, type_: DataType, sql: Sql) -> list[str]:
    """Return the texts of one column; parsing them gives the same values."""
    if isinstance(type_, Array | Map | Row):
        answer = sql("SELECT CAST(to_json(c) AS VARCHAR) AS t FROM cells", {"cells": pa.table({"c": column})})
        return [NULL if t is None else t for t in answer["t"].to_pylist()]
    end = "Z" if isinstance(type_, TimestampLtz) else ""
    return [NULL if v is None else _written(v) + end for v in column.to_pylist()]


def _parse_nested(texts: Sequence[str], type_: DataType, sql: Sql) -> pa.Array:
    plain = [None if t in ("", NULL) else t for t in texts]
    table = pa.table({"t": pa.array(plain, pa.string())})
    answer = sql(f"SELECT TRY_CAST(CAST(t AS JSON) AS {duckdb(type_)}) AS v FROM cells", {"cells": table})
    values = answer["v"].combine_chunks()
    for index, (text, valid) in enumerate(zip(plain, values.is_valid().to_pylist(), strict=True)):
        if text is not None and not valid:
            raise CellError(index, text, type_)
    return values.cast(arrow(type_))


def _reader(type_: DataType) -> Callable[[str], Any]:
    match type_:
        case Simple(name) if name in _READERS:
            return _READERS[name]
        case types.Text():
            return _unquoted
        case types.Binary():
            return _bytes
        case types.Decimal(_, scale):
            return lambda text: Decimal(text).quantize(Decimal(1).scaleb(-scale), context=_DIGITS)
        case Timestamp() | TimestampLtz():
            return lambda text: datetime.fromisoformat(text.removesuffix("Z").rstrip())
        case types.Time():
            return time.fromisoformat
        case _:
            return int


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        return str(json.loads(text))
    return text


def _bytes(text: str) -> bytes:
    if text.startswith("x'") and text.endswith("'"):
        return bytes.fromhex(text[2:-1])
    return _unquoted(text).encode()


_READERS: Mapping[str, Callable[[str], Any]] = {
    "BOOLEAN": {"true": True, "false": False}.__getitem__,
    "FLOAT": float,
    "DOUBLE": float,
    "STRING": _unquoted,
    "BYTES": _bytes,
    "DATE": date.fromisoformat,
}


def _written(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case bytes():
            return f"x'{value.hex()}'"
        case Decimal():
            return format(value, "f")
        case datetime():
            return _without_zeros(value.isoformat(" "))
        case time():
            return _without_zeros(value.isoformat())
        case _:
            return str(value)


def _without_zeros(text: str) -> str:
    return text.rstrip("0") if "." in text else text


def _quoted(text: str) -> str:
    plain = text == text.strip() and text.isprintable() and text not in ("", NULL) and text[0] not in '"#@-'
    return text if plain else json.dumps(text, ensure_ascii=False)
