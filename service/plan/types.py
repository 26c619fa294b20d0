"""The SQL types of a pipeline: how Flink SQL writes them, how DuckDB computes them, how Arrow carries them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import assert_never

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Simple:
    """A type without parameters, such as BOOLEAN, INT, DOUBLE, STRING, BYTES, DATE or NULL."""

    name: str


@dataclass(frozen=True, slots=True)
class Text:
    """CHAR(n) or VARCHAR(n); a length limits what a sink accepts and what a CAST keeps."""

    length: int
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Binary:
    """BINARY(n) or VARBINARY(n)."""

    length: int
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Decimal:
    """DECIMAL(precision, scale), precision 1 to 38."""

    precision: int = 10
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Time:
    """TIME(precision): a time of day."""

    precision: int = 0


@dataclass(frozen=True, slots=True)
class Timestamp:
    """TIMESTAMP(precision): a wall-clock time without a zone. Microseconds in Arrow; 7 to 9 digits are refused."""

    precision: int = 6


@dataclass(frozen=True, slots=True)
class TimestampLtz:
    """TIMESTAMP_LTZ(precision): an instant. In blocks and in DuckDB it is a plain TIMESTAMP in UTC; a conversion to or
    from wall-clock time or text names the session's zone explicitly, where it is compiled."""

    precision: int = 6


@dataclass(frozen=True, slots=True)
class Interval:
    """A literal interval: `months` for YEAR and MONTH units, else `milliseconds` units. Never a column of a table."""

    months: bool


@dataclass(frozen=True, slots=True)
class Array:
    """ARRAY<element>."""

    element: DataType


@dataclass(frozen=True, slots=True)
class Map:
    """MAP<key, value>."""

    key: DataType
    value: DataType


@dataclass(frozen=True, slots=True)
class Multiset(Map):
    """MULTISET<element>: carried as a MAP from each element (`key`) to how often it is there (`value`, an INT)."""


@dataclass(frozen=True, slots=True)
class Row:
    """ROW<name type, ...>."""

    names: tuple[str, ...]
    types: tuple[DataType, ...]


DataType = Simple | Text | Binary | Decimal | Time | Timestamp | TimestampLtz | Interval | Array | Map | Row

BOOLEAN = Simple("BOOLEAN")
TINYINT = Simple("TINYINT")
SMALLINT = Simple("SMALLINT")
INT = Simple("INT")
BIGINT = Simple("BIGINT")
FLOAT = Simple("FLOAT")
DOUBLE = Simple("DOUBLE")
STRING = Simple("STRING")
BYTES = Simple("BYTES")
DATE = Simple("DATE")
NULL = Simple("NULL")

_ARROW: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "DATE": pa.date32(),
    "NULL": pa.int32(),
}

_DUCKDB = {
    "INT": "INTEGER",
    "STRING": "VARCHAR",
    "BYTES": "BLOB",
    "NULL": "INTEGER",
}


def multiset(element: DataType) -> Multiset:
    """Return the type MULTISET<element>."""
    return Multiset(element, INT)


def arrow(type_: DataType) -> pa.DataType:
    """Return the Arrow type that carries `type_` in a block."""
    match type_:
        case Simple(name):
            return _ARROW[name]
        case Text():
            return pa.string()
        case Binary():
            return pa.binary()
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Time():
            return pa.time64("us")
        case Timestamp() | TimestampLtz():
            return pa.timestamp("us")
        case Interval():
            return pa.month_day_nano_interval()
        case Array(element):
            return pa.list_(arrow(element))
        case Map(key, value):
            return pa.map_(arrow(key), arrow(value))
        case Row(names, types):
            return pa.struct([pa.field(n, arrow(t)) for n, t in zip(names, types, strict=True)])
        case _:
            assert_never(type_)


def duckdb(type_: DataType) -> str:
    """Return how DuckDB writes `type_`, as in CAST(x AS ...)."""
    match type_:
        case Simple(name):
            return _DUCKDB.get(name, name)
        case Text():
            return "VARCHAR"
        case Binary():
            return "BLOB"
        case Decimal(precision, scale):
            return f"DECIMAL({precision}, {scale})"
        case Time():
            return "TIME"
        case Timestamp() | TimestampLtz():
            return "TIMESTAMP"
        case Interval():
            return "INTERVAL"
        case Array(element):
            return f"{duckdb(element)}[]"
        case Map(key, value):
            return f"MAP({duckdb(key)}, {duckdb(value)})"
        case Row(names, types):
            inner = ", ".join(
                f'"{n.replace(chr(34), chr(34) * 2)}" {duckdb(t)}' for n, t in zip(names, types, strict=True)
            )
            return f"STRUCT({inner})"
        case _:
            assert_never(type_)


_FULL_NAMES = {"STRING": "VARCHAR(2147483647)", "BYTES": "VARBINARY(2147483647)"}


def flink(type_: DataType, *, in_full: bool = False) -> str:
    """Return how Flink SQL writes `type_`, for messages and `explain`; `in_full` without its short names, as it stores
    a type.

    >>> flink(Array(STRING)), flink(Array(STRING), in_full=True)
    ('ARRAY<STRING>', 'ARRAY<VARCHAR(2147483647)>')
    """
    inner = partial(flink, in_full=in_full)
    match type_:
        case Simple(name):
            return _FULL_NAMES.get(name, name) if in_full else name
        case Text(length, fixed):
            return f"{'CHAR' if fixed else 'VARCHAR'}({length})"
        case Binary(length, fixed):
            return f"{'BINARY' if fixed else 'VARBINARY'}({length})"
        case Decimal(precision, scale):
            return f"DECIMAL({precision}, {scale})"
        case Time(precision):
            return f"TIME({precision})"
        case Timestamp(precision):
            return f"TIMESTAMP({precision})"
        case TimestampLtz(precision):
            return f"TIMESTAMP({precision}) WITH LOCAL TIME ZONE" if in_full else f"TIMESTAMP_LTZ({precision})"
        case Interval(months):
            return "INTERVAL YEAR TO MONTH" if months else "INTERVAL DAY TO SECOND(3)"
        case Array(element):
            return f"ARRAY<{inner(element)}>"
        case Multiset(element):
            return f"MULTISET<{inner(element)}>"
        case Map(key, value):
            return f"MAP<{inner(key)}, {inner(value)}>"
        case Row(names, types):
            return "ROW<" + ", ".join(f"`{n}` {inner(t)}" for n, t in zip(names, types, strict=True)) + ">"
        case _:
            assert_never(type_)
