"""The fast way to read a JSON value of each type: DuckDB text for the value, and for whether it is suspect.

Law: where `suspect` is false, `value` is what `reference` reads; where it is true, the row goes to `reference`.
DuckDB's from_json is lenient (3.7 becomes the INT 4, true becomes 1, 1.50 becomes the STRING 1.5), so a scalar is
mostly taken as text, cast, and believed only if it is written the one usual way.

In a *strict* statement (from_json_strict) a missing, repeated or ill-typed name has already failed the statement, so
NULL means null. In a lenient one NULL also stands for what is missing or wrong, and the text itself is asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

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
    duckdb,
)

_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
_FLOATS = frozenset({"FLOAT", "DOUBLE"})
_NUMBER = r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?"
_NO_NULL = r"(?:[^n\s]|n[^u])"
"""The first characters of a value that is not null: DuckDB knows the word nan, too."""
_BASE64 = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(?:\.[0-9]{0,9})?"
_YEARS = "TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999'"
"""The times whose text DuckDB begins with four digits."""


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """The reading of one value: the type that from_json gives it, its value, whether it is suspect."""

    taken_as: str
    value: str
    suspect: str = "false"


def reading(expression: str, name: str, type_: DataType, options: JsonOptions, *, strict: bool) -> ColumnReading:
    """Return how the value of the key `name` is read, once from_json has taken it as `taken_as` and `expression` names
    it."""
    return _Reader(options, strict).read(expression, name, type_, 0)


def readable(type_: DataType) -> bool:
    """Return whether DuckDB can read `type_`: the fields of a ROW need names that differ in more than case."""
    match type_:
        case Row(names, types):
            distinct = len({n.lower() for n in names}) == len(names) and all(names) and bool(names)
            return distinct and all(readable(t) for t in types)
        case Array(element):
            return readable(element)
        case Map(key, value):
            return readable(key) and readable(value)
        case _:
            return True


def quoted(text: str) -> str:
    """Return `text` as a DuckDB string literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return `name` as a DuckDB identifier."""
    return '"' + name.replace('"', '""') + '"'


def key_pattern(name: str) -> str:
    """Return a regular expression for the key `name` as JSON text may write it: plainly, or with \\u escapes."""
    plain = json.dumps(name, ensure_ascii=False)[1:-1]
    escaped = json.dumps(name)[1:-1]
    if plain == escaped:
        return f'"{re.escape(plain)}"'
    return f'"(?:{re.escape(plain)}|(?i:{re.escape(escaped)}))"'


def found(pattern: str) -> str:
    """Return whether the record's text matches `pattern`."""
    return f"regexp_matches(v, {quoted(pattern)})"


def row_suspect(x: str, name: str | None, fields: Sequence[str]) -> str:
    """Return whether a ROW in a lenient statement may have been another thing than an object, and so has nothing but
    NULLs."""
    nothing = " AND ".join(f"{f} IS NULL" for f in fields)  # which is so too where the ROW itself is NULL
    other = "true" if name is None else found(key_pattern(name) + r"\s*:\s*(?:[^n{\s]|n[^u])")
    return f"(CASE WHEN {nothing} THEN {other} ELSE false END)"


class _Reader:
    def __init__(self, options: JsonOptions, strict: bool) -> None:
        self._options = options
        self._strict = strict

    def read(self, x: str, name: str | None, type_: DataType, depth: int) -> ColumnReading:
        match type_:
            case Simple("BOOLEAN"):
                value = f"CASE lower({x}) WHEN 'true' THEN true WHEN 'false' THEN false END"
                return ColumnReading("VARCHAR", value, f"({x} IS NOT NULL AND lower({x}) NOT IN ('true', 'false'))")
            case Simple(number) if number in _INTEGERS:
                value = f"TRY_CAST({x} AS {duckdb(type_)})"
                return ColumnReading("VARCHAR", value, _unless_canonical(x, value))
            case Simple(number) if number in _FLOATS:
                return self._float(x, name, type_)
            case Simple("STRING") | Text():
                return ColumnReading("VARCHAR", x, self._text_suspect(x, name))
            case Simple("BYTES") | Binary():
                value = f"CASE WHEN regexp_full_match({x}, '{_BASE64}') THEN from_base64({x}) END"
                # A number or a word may look like base64 once it is text.
                other = "true" if name is None else found(key_pattern(name) + r'\s*:\s*[^"\s]')
                word = f"regexp_full_match({x}, '(?i:true|false|[0-9][0-9e+]*|infinity)') AND {other}"
                wrong = f"NOT regexp_full_match({x}, '{_BASE64}') OR {word}"
                return ColumnReading("VARCHAR", value, f"(CASE WHEN {x} IS NULL THEN false ELSE {wrong} END)")
            case Simple("DATE"):
                value = f"TRY_CAST({x} AS DATE)"
                # Beyond the year 9999 and before the year 1 DuckDB has other texts, and two dates that are infinite.
                odd = f"strlen({x}) <> 10 OR CAST({value} AS VARCHAR) IS DISTINCT FROM {x}"
                return ColumnReading("VARCHAR", value, f"({x} IS NOT NULL AND ({odd}))")
            case Simple("NULL"):
                return ColumnReading("VARCHAR", "CAST(NULL AS INTEGER)")
            case Simple():
                raise ValueError(f"JSON cannot carry {type_.name}")
            case Decimal():
                value = f"TRY_CAST({x} AS {duckdb(type_)})"
                # The text may have come through a double, which keeps 15 digits; see also parse.long_numbers. Of a
                # number with an exponent that does not fit DuckDB makes another one.
                long = f"strlen({x}) > 16 AND regexp_matches({x}, '[.eE]')"
                wrong = f"{value} IS NULL OR regexp_matches({x}, '_|\\+-|[eE]\\+?[0-9]') OR {long}"
                return ColumnReading("VARCHAR", value, f"(CASE WHEN {x} IS NULL THEN false ELSE {wrong} END)")
            case Time(precision):
                value = f"TRY_CAST({x} AS TIME)"
                kept = value if precision >= 6 else f"TRY_CAST(left({x}, {9 + precision if precision else 8}) AS TIME)"
                odd = f"{value} IS NULL OR NOT regexp_full_match({x}, '{_CLOCK}')"
                return ColumnReading("VARCHAR", kept, f"(CASE WHEN {x} IS NULL THEN false ELSE {odd} END)")
            case Timestamp(precision):
                return self._timestamp(x, precision, "")
            case TimestampLtz(precision):
                return self._timestamp(x, precision, "Z")
            case Array(element):
                return self._array(x, name, element, depth)
            case Map(_, value_type):
                return self._map(x, name, value_type, depth)
            case Row(names, types):
                return self._row(x, name, names, types, depth)
            case Interval():
                raise ValueError("JSON cannot carry an INTERVAL")
            case _:
                assert_never(type_)

    def _float(self, x: str, name: str | None, type_: DataType) -> ColumnReading:
        # A FLOAT by way of a DOUBLE, as in `fast`.
        as_text = name is None or not self._strict
        double = f"TRY_CAST({x} AS DOUBLE)" if as_text else x
        value = double if type_ == Simple("DOUBLE") else f"TRY_CAST({double} AS FLOAT)"
        odd = f"{x} IS NOT NULL AND ({value} IS NULL OR NOT isfinite({value}))"
        if as_text or name is None:
            return ColumnReading("VARCHAR", value, f"({odd})")
        boolean = found(key_pattern(name) + r"\s*:\s*[tf]")
        return ColumnReading("DOUBLE", value, f"(CASE WHEN {x} IN (0, 1) THEN {boolean} ELSE {odd} END)")

    def _text_suspect(self, x: str, name: str | None) -> str:
        """A number or a container that became text has lost how it was written, unless it is a plain whole number."""
        rewritten = f"regexp_full_match({x}, '{_NUMBER}') AND NOT regexp_full_match({x}, '[1-9][0-9]*|-[1-9][0-9]*')"
        constant = f"regexp_full_match({x}, '-?(?i:nan|inf|infinity)')"
        lost = f"(starts_with({x}, '{{') OR starts_with({x}, '[') OR {constant} OR {rewritten})"
        asked = "true" if name is None else found(key_pattern(name) + r"\s*:\s*[-0-9{\[NnIi]")
        return f"(CASE WHEN {x} IS NULL THEN false WHEN {lost} THEN {asked} ELSE false END)"

    def _timestamp(self, x: str, precision: int, zone: str) -> ColumnReading:
        separator = "T" if self._options.standard == "ISO-8601" else " "
        value = f"TRY_CAST({x} AS TIMESTAMP)"
        usual = f"CAST({value} AS VARCHAR)" if separator == " " else f"replace(CAST({value} AS VARCHAR), ' ', 'T')"
        usual = usual if not zone else f"{usual} || 'Z'"
        shape = f"{_DAY}{separator}{_CLOCK}{zone}"
        odd = f"{usual} <> {x} AND NOT regexp_full_match({x}, '{shape}')"
        suspect = f"(CASE WHEN {x} IS NULL THEN false WHEN {value} BETWEEN {_YEARS} THEN {odd} ELSE true END)"
        return ColumnReading("VARCHAR", _truncated(value, precision), suspect)

    def _array(self, x: str, name: str | None, element: DataType, depth: int) -> ColumnReading:
        item = f"e{depth}"
        inner = self.read(item, None, element, depth + 1)
        suspects = [self._null_suspect(x, name), _any(x, item, inner.suspect)]
        value = x if inner.value == item else f"list_transform({x}, lambda {item}: {inner.value})"
        return ColumnReading(f"{inner.taken_as}[]", value, _either(suspects))

    def _map(self, x: str, name: str | None, value_type: DataType, depth: int) -> ColumnReading:
        item = f"e{depth}"
        inner = self.read(f"{item}.value", None, value_type, depth + 1)
        entry = f"struct_pack(k := {item}.key, v := {inner.value})"
        value = f"map_from_entries(list_transform(map_entries({x}), lambda {item}: {entry}))"
        suspects = [self._null_suspect(x, name), _any(f"map_entries({x})", item, inner.suspect)]
        taken_as = f"MAP(VARCHAR, {inner.taken_as})"
        return ColumnReading(taken_as, f"(CASE WHEN {x} IS NULL THEN NULL ELSE {value} END)", _either(suspects))

    def _row(
        self, x: str, name: str | None, names: tuple[str, ...], types: tuple[DataType, ...], depth: int
    ) -> ColumnReading:
        fields = [f"{x}.{identifier(n)}" for n in names]
        inner = [self.read(f, n, t, depth + 1) for f, n, t in zip(fields, names, types, strict=True)]
        packed = ", ".join(f"{identifier(n)} := {r.value}" for n, r in zip(names, inner, strict=True))
        taken = ", ".join(f"{identifier(n)} {r.taken_as}" for n, r in zip(names, inner, strict=True))
        suspects = [r.suspect for r in inner]
        if not self._strict:
            suspects.append(row_suspect(x, name, fields))
        value = f"(CASE WHEN {x} IS NULL THEN NULL ELSE struct_pack({packed}) END)"
        return ColumnReading(f"STRUCT({taken})", value, _either(suspects))

    def _null_suspect(self, x: str, name: str | None) -> str:
        """A NULL container in a lenient statement may be a value of another type."""
        if self._strict:
            return "false"
        if name is None:
            return f"({x} IS NULL)"
        present = found(key_pattern(name) + r"\s*:\s*" + _NO_NULL)
        return f"(CASE WHEN {x} IS NULL THEN {present} ELSE false END)"


def _truncated(value: str, precision: int) -> str:
    """A TIMESTAMP without the digits that its type does not have."""
    match precision:
        case 0:
            return f"date_trunc('second', {value})"
        case 3:
            return f"date_trunc('millisecond', {value})"
        case 1 | 2 | 4 | 5:
            unit = f"INTERVAL {10 ** (6 - precision)} MICROSECONDS"
            return f"time_bucket({unit}, {value}, TIMESTAMP '1970-01-01')"
        case _:
            return value


def _unless_canonical(x: str, value: str) -> str:
    """Suspect unless the value, written back, is the text that was read."""
    return f"({x} IS NOT NULL AND CAST({value} AS VARCHAR) IS DISTINCT FROM {x})"


def _any(elements: str, item: str, suspect: str) -> str:
    if suspect == "false":
        return "false"
    return f"coalesce(list_bool_or(list_transform({elements}, lambda {item}: {suspect})), false)"


def _either(suspects: list[str]) -> str:
    real = [d for d in suspects if d != "false"]
    return "(" + " OR ".join(real) + ")" if real else "false"
