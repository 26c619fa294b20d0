"""Rows of a 'datagen' table: made from their number, so that a replayed batch has the same rows.

Options and defaults are Flink's: `fields.NAME.kind` = random (within min and max, or of a length; max-past for times)
or sequence (from start to end, where the table ends).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pyarrow as pa

from operators.names import WEIGHT
from operators.sql import Sql
from service.durations import milliseconds
from service.formats.contract import DEAD_RECORD, Decoded
from service.plan.table import ColumnKind, Table
from service.plan.types import Binary, DataType, Decimal, Simple, Text, Time, Timestamp, TimestampLtz, arrow, duckdb

RATE = 10_000
"""Rows a second where the table does not say."""

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_LENGTH = 100
"""Characters of a text, or elements of an array, where its length is not given: as in Flink."""


LONGEST = 1_000_000
"""The most of them that are generated: a record of Kafka has no more bytes by default."""


class DatagenError(Exception):
    """A 'datagen' table that cannot be followed. `option` is the one that is wrong; empty where it is none, or one that
    is missing."""

    def __init__(self, text: str, option: str = "") -> None:
        super().__init__(text)
        self.option = option


class _Field(NamedTuple):
    """The options of one column."""

    table: str
    name: str
    options: Mapping[str, str]

    def number(self, option: str, default: float, read: Callable[[str], float] = float) -> str:
        try:
            return str(read(self.options[option])) if option in self.options else str(default)
        except ValueError:
            raise self.wrong(f"= '{self.options[option]}' is no number", option) from None

    def range(self, low: float, high: float, read: Callable[[str], float] = float) -> tuple[str, str]:
        """The least and the greatest number."""
        least, most = self.number("min", low, read), self.number("max", high, read)
        if read(least) > read(most):
            raise self.wrong(f"= '{least}' is more than the greatest number, {most}", "min")
        return least, most

    def wrong(self, what: str, option: str) -> DatagenError:
        """An error about one option of the column."""
        key = f"fields.{self.name}.{option}"
        return DatagenError(f"table \"{self.table}\": '{key}' {what}", key)

    def unfit(self) -> DatagenError:
        """An error about the column."""
        return DatagenError(f'table "{self.table}": column "{self.name}" has a type for which no values can be made')

    def endless(self) -> DatagenError:
        """An error about a sequence without its ends."""
        start, end = (f"'fields.{self.name}.{option}'" for option in ("start", "end"))
        return DatagenError(f'table "{self.table}": a sequence needs {start} and {end}', f"fields.{self.name}.kind")


class DatagenDecoder:
    """Makes the columns at `columns` of each record from its offset; NOW is the record's timestamp."""

    def __init__(self, table: Table, columns: tuple[int, ...]) -> None:
        self._expressions = [_expression(table, c) for c in columns]
        self._types = [arrow(table.columns[c].type) for c in columns]

    def needs(self) -> tuple[str, ...]:
        """Return the timestamp alone: a record is as old as its making."""
        return ("timestamp",)

    def decode(self, records: pa.Table, sql: Sql) -> Decoded:
        """Return a row for each record; none is bad."""
        chosen = ", ".join(f"{e} AS c{i}" for i, e in enumerate([*self._expressions, "CAST(1 AS BIGINT)"]))
        made = pa.table({"n": records["offset"], "now": records["timestamp"].cast(pa.timestamp("us"))})
        rows = sql(f"SELECT {chosen} FROM r", {"r": made})
        arrays = [rows[f"c{i}"].cast(t) for i, t in enumerate(self._types)]
        names = [f"c{i}" for i in range(len(arrays))]
        return Decoded(pa.table([*arrays, rows[f"c{len(arrays)}"]], names=[*names, WEIGHT]), DEAD_RECORD.empty_table())


def rate(table: Table) -> int:
    """Return rows a second."""
    return int(table.connector.options.get("rows-per-second", RATE))


def rows_in_all(table: Table) -> int | None:
    """Return how many rows there are; None = without end. Checks every option of the table's columns."""
    bounds = []
    names = [c.name for c in table.columns if c.kind is ColumnKind.PHYSICAL]
    for key in table.connector.options:
        name = key.removeprefix("fields.").rpartition(".")[0]
        if key.startswith("fields.") and name not in names:
            known = ", ".join(names)
            raise DatagenError(f"table \"{table.name}\": '{key}' names no column; the columns are {known}", key)
    for index, column in enumerate(table.columns):
        if column.kind is not ColumnKind.PHYSICAL:
            continue
        _expression(table, index)
        field = _field(table, index)
        if field.options.get("kind") == "sequence":
            bounds.append(int(field.number("end", 0, int)) - int(field.number("start", 0, int)) + 1)
    if "number-of-rows" in table.connector.options:
        bounds.append(int(table.connector.options["number-of-rows"]))
    return min(bounds) if bounds else None


def _field(table: Table, index: int) -> _Field:
    name = table.columns[index].name
    prefix = f"fields.{name}."
    return _Field(
        table.name,
        name,
        {k[len(prefix) :]: v for k, v in table.connector.options.items() if k.startswith(prefix)},
    )


def _expression(table: Table, index: int) -> str:
    """DuckDB text of a column over `n`, the number of the row, and `now`."""
    if table.columns[index].metadata == "offset":
        return "n"
    field, type_ = _field(table, index), table.columns[index].type
    kind = field.options.get("kind", "random")
    known = {
        "random": {"kind", "null-rate", *_random_options(field, type_)},
        "sequence": {"kind", "start", "end"},
    }.get(kind)
    if known is None:
        raise field.wrong(f"= '{kind}'; it can be random or sequence", "kind")
    if unknown := sorted(field.options.keys() - known):
        raise field.wrong(f"is unknown; {kind} has {', '.join(sorted(known))}", unknown[0])
    if kind == "sequence":
        if not {"start", "end"} <= field.options.keys():
            raise field.endless()
        start, end = (int(field.number(option, 0, int)) for option in ("start", "end"))
        if start > end:
            raise field.wrong(f"= '{start}' is more than the end, {end}", "start")
        return f"CAST(n + {start} AS {duckdb(type_)})"
    value = f"CAST({_random(field, type_, index)} AS {duckdb(type_)})"
    nulls = field.number("null-rate", 0)
    if not 0 <= float(nulls) <= 1:
        raise field.wrong(f"= '{nulls}' is not between 0 and 1", "null-rate")
    return value if float(nulls) == 0 else f"CASE WHEN {_unit(index, 'null')} < {nulls} THEN NULL ELSE {value} END"


def _random_options(field: _Field, type_: DataType) -> tuple[str, ...]:
    match type_:
        case Simple("BOOLEAN" | "DATE") | Time():
            return ()
        case Simple("STRING" | "BYTES") | Text() | Binary():
            return ("length",)
        case Timestamp() | TimestampLtz():
            return ("max-past",)
        case Simple() | Decimal():
            return ("min", "max")
        case _:
            raise field.unfit()


def _random(field: _Field, type_: DataType, index: int) -> str:
    match type_:
        case Simple("BOOLEAN"):
            return f"{_hash(index)} % 2 = 0"
        case Simple("DATE"):
            return "now"
        case Time():
            return "CAST(date_trunc('second', now) AS TIME)"
        case Timestamp() | TimestampLtz():
            past = field.number("max-past", 0, milliseconds)
            return f"date_trunc('millisecond', now) - to_milliseconds(CAST({_unit(index)} * {past} AS BIGINT))"
        case Simple("STRING" | "BYTES") | Text() | Binary():
            length = int(field.number("length", getattr(type_, "length", _LENGTH), int))
            if not 0 <= length <= LONGEST:
                raise field.wrong(f"= '{length}' is not between 0 and {LONGEST:,}", "length")
            parts = " || ".join(f"md5(concat(n, '/{index}/{part}'))" for part in range(-(-length // 32) or 1))
            text = f"left({parts}, {length})"
            return f"encode({text})" if isinstance(type_, Binary) or type_ == Simple("BYTES") else text
        case Simple("FLOAT" | "DOUBLE"):
            low, high = field.range(0, 1)
            return f"{low} + {_unit(index)} * ({high} - {low})"
        case Decimal(precision, scale):
            most = 10 ** (precision - scale) - 1
            low, high = field.range(0, most)
            return f"{low} + {_unit(index)} * ({high} - {low})"
        case Simple(name):
            half = 2 ** (_BITS[name] - 1)
            low, high = field.range(-half, half - 1, int)
            return f"CAST({low} AS HUGEINT) + {_hash(index)} % (CAST({high} AS HUGEINT) - {low} + 1)"
        case _:
            raise field.unfit()


def _hash(index: int, what: str = "value") -> str:
    return f"CAST(hash(n, {index}, '{what}') AS HUGEINT)"


def _unit(index: int, what: str = "value") -> str:
    """A number from 0 up to 1."""
    return f"(CAST({_hash(index, what)} AS DOUBLE) / 18446744073709551616.0)"
