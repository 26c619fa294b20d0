"""The statements that take fields out of JSON records, and what Arrow and numpy do with the columns that come out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, assert_never

import numpy as np
import pyarrow as pa

from operators.sql import NOT_COMPUTABLE, Sql
from service.formats.json.buffers import Flags
from service.formats.json.columns import ColumnReading, identifier, quoted, reading, row_suspect
from service.formats.json.counted import Presence, uncounted
from service.formats.json.escaped_keys import EscapedKeys, every_name
from service.formats.json.fast import INTEGERS, FastValue, Key, Texts, fast, taken_as, whole_numbers
from service.formats.json.lossy_numbers import has_decimal, has_float, long_numbers, negative_zeros
from service.formats.json.malformed import malformed
from service.formats.json.options import JsonOptions
from service.formats.json.repeats import Repeats
from service.plan.types import DataType, Row, arrow

_BATCH_BYTES = 1 << 20
"""What is parsed at a time: what DuckDB makes of it takes several times as much, and is looked up column by column."""
_FEWEST = 256
"""Rows below which each column of a batch has a price of its own."""
_VECTOR = 2048
"""Rows that DuckDB takes at a time by itself."""


class ParseMode(Enum):
    """The ways in which a block is read, fastest first.

    STRICT fails as a whole when one record lacks a name, repeats one or has a value of another kind, so that what comes
    out is nearly certain. NUMBERS is as strict and takes integers as DOUBLE, which is quicker; it fails too when one is
    not whole or beyond 2^53. COUNTED believes records that have as many values as came out, whatever they lack, and
    says which others are to be read in another way; COUNTED_NUMBERS too, and takes integers as DOUBLE. LENIENT has to
    ask the texts what NULL means, and fails only on a text that is not JSON.
    """

    NUMBERS = "numbers"
    STRICT = "strict"
    COUNTED_NUMBERS = "counted-numbers"
    COUNTED = "counted"
    LENIENT = "lenient"


_STRICT = (ParseMode.NUMBERS, ParseMode.STRICT)
_NUMBERS = (ParseMode.NUMBERS, ParseMode.COUNTED_NUMBERS)
_COUNTED = (ParseMode.COUNTED_NUMBERS, ParseMode.COUNTED)


@dataclass(frozen=True, slots=True)
class Fields:
    """The wanted names of a record and their types. `repeats`: how often a name may stand in a record's text, which is
    twice for the columns of a change that shows the row before and after."""

    names: tuple[str, ...]
    types: tuple[DataType, ...]
    repeats: int = 1


class FastResult(NamedTuple):
    """Columns as DuckDB and Arrow read them, and the rows in which they are not to be believed: `suspect` ones are for
    the reference, `uncounted` ones for another statement (none if None)."""

    columns: list[pa.Array]
    suspect: Flags
    uncounted: Flags | None = None


@dataclass(frozen=True, slots=True)
class _Flat:
    """A column that is read fast. Where that fails it is read with the suspicions of `slow` over the column `x`;
    without `slow` the whole block is."""

    column: int
    name: str
    wanted: pa.DataType
    fast: FastValue
    slow: ColumnReading | None


@dataclass(frozen=True, slots=True)
class _Finished:
    """A column that the statement itself reads."""

    column: int
    name: str
    wanted: pa.DataType


@dataclass(frozen=True, slots=True)
class _Group:
    """A ROW, put together from its fields; `absent` is the column that says where there is none."""

    absent: int
    name: str
    wanted: pa.DataType
    fields: tuple[_Part, ...]


_Part = _Flat | _Finished | _Group


class _Unsure(Exception):
    """Raised within a block that has to be read in another way."""


class Statement:
    """Picklable: one way to read `fields`."""

    def __init__(self, fields: Fields, options: JsonOptions, mode: ParseMode) -> None:
        self._way = mode
        self._fields = fields
        self._options = options
        self._decimals = any(has_decimal(type_) for type_ in fields.types)
        self._inner_floats = False
        self._selected: list[str] = []
        self._suspects: dict[str, None] = {}
        structure: dict[str, Any] = {}
        self._parts = [
            self._part(f"s.{identifier(n)}", Key(n, True), t, structure)
            for n, t in zip(fields.names, fields.types, strict=True)
        ]
        self._suspects.pop("false", None)
        selected = list(self._selected)
        if self._suspects:
            selected.append(f"({' OR '.join(self._suspects)}) AS _suspect")
        self.text = f"SELECT {', '.join(selected)} FROM ({_inner(structure, mode)})"
        self._repeats = Repeats(fields.names, fields.types, fields.repeats)
        self._escaped = EscapedKeys(every_name(fields.names, fields.types))

    def _part(self, place: str, key: Key, type_: DataType, structure: dict[str, Any]) -> _Part:
        """How the value at `place` is read; what from_json takes it as goes into `structure`."""
        name, strict = key.name, self._way in _STRICT
        if isinstance(type_, Row):
            inner: dict[str, Any] = {}
            structure[name] = inner
            absent = self._select(f"{place} IS NULL")
            places = [f"{place}.{identifier(n)}" for n in type_.names]
            if self._way is ParseMode.LENIENT:
                self._suspects[row_suspect(place, name, places)] = None
            named = zip(places, type_.names, type_.types, strict=True)
            return _Group(
                absent, name, arrow(type_), tuple(self._part(p, Key(n, False), t, inner) for p, n, t in named)
            )
        if self._way in _NUMBERS and type_ in INTEGERS:
            structure[name] = "DOUBLE"
            return _Flat(self._select(place), name, arrow(type_), whole_numbers(key, type_), None)
        fast_value = fast(key, type_, self._options)
        if fast_value is not None:
            # As a number, NULL may be a value of another kind; where values are counted that is seen.
            certain = self._way is not ParseMode.LENIENT
            structure[name] = taken_as(type_, strict=certain)
            slow = reading("x", name, type_, self._options, strict=certain)
            return _Flat(self._select(place), name, arrow(type_), fast_value, slow)
        whole_reading = reading(place, name, type_, self._options, strict=strict)
        structure[name] = whole_reading.taken_as
        self._suspects[whole_reading.suspect] = None
        self._inner_floats |= has_float(type_)
        return _Finished(self._select(whole_reading.value), name, arrow(type_))

    def _select(self, expression: str) -> int:
        self._selected.append(f"{expression} AS f{len(self._selected)}")
        return len(self._selected) - 1

    def read(self, block: pa.Array, sql: Sql) -> FastResult | None:
        """Return the fields of each text of `block`, or None if this way fails for it."""
        try:
            answer = sql(self.text, {"records": pa.table({"v": in_batches(block)})}, by_row=True)
        except NOT_COMPUTABLE:
            return None
        taken = [whole(answer[f"f{i}"]) for i in range(len(self._selected))]
        texts = Texts(block)
        suspect = malformed(block)
        if self._suspects:
            suspect |= answer["_suspect"].to_numpy()
        if self._decimals:
            suspect |= long_numbers(block)
        if self._way is ParseMode.LENIENT:
            suspect |= self._loosely_read(block, taken, sql)
        odd = uncounted(texts.keys, list(_presence(self._parts, taken))) if self._way in _COUNTED else None
        try:
            columns = [self._column(part, taken, texts, suspect, sql) for part in self._parts]
        except _Unsure:
            return None
        if self._inner_floats:
            suspect |= negative_zeros(block)
        elif texts.zeros.any():
            suspect |= texts.negative_zeros()
        if texts.searched or self._suspects or self._way is ParseMode.LENIENT:
            suspect |= self._escaped.found(block)
        return FastResult(columns, suspect, odd)

    def _column(self, part: _Part, taken: Sequence[pa.Array], texts: Texts, suspect: Flags, sql: Sql) -> pa.Array:
        """The values of a part; what they make suspect is added to `suspect`."""
        match part:
            case _Finished():
                values = taken[part.column]
            case _Flat():
                values = part.fast(taken[part.column], texts)
                if values is None:
                    if part.slow is None:
                        raise _Unsure
                    texts.searched = True
                    again = sql(
                        f"SELECT {part.slow.value} AS f, {part.slow.suspect} AS d FROM records",
                        {"records": pa.table({"v": texts.block, "x": taken[part.column]})},
                    )
                    values = whole(again["f"])
                    np.logical_or(suspect, again["d"].to_numpy(), out=suspect)
            case _Group():
                columns = [self._column(each, taken, texts, suspect, sql) for each in part.fields]
                return pa.StructArray.from_arrays(columns, fields=list(part.wanted), mask=taken[part.absent])
            case _:
                assert_never(part)
        return values if values.type == part.wanted else values.cast(part.wanted)

    def _loosely_read(self, block: pa.Array, taken: Sequence[pa.Array], sql: Sql) -> Flags:
        """What a strict statement would have refused: a repeated name, or a missing one that must be there."""
        columns = list(_columns(self._parts))
        present: Counter[str] = Counter()
        for part in columns:
            if isinstance(part, _Flat):
                present[part.name] += len(block) - taken[part.column].null_count
        suspect = self._repeats.found(block, present, sql)
        if self._options.fail_on_missing:
            for part in columns:
                # A name may be missing inside an ARRAY too, where there is no telling from NULL.
                inside = pa.types.is_nested(part.wanted)
                suspect |= inside or taken[part.column].is_null().to_numpy(zero_copy_only=False)
        return suspect


def _columns(parts: Iterable[_Part]) -> Iterator[_Flat | _Finished]:
    for part in parts:
        if isinstance(part, _Group):
            yield from _columns(part.fields)
        else:
            yield part


def _presence(parts: Iterable[_Part], taken: Sequence[pa.Array]) -> Iterator[Presence]:
    """Where each name has a value."""
    for part in parts:
        if isinstance(part, _Group):
            # Of what is no object DuckDB makes a ROW of NULLs: only one with a value is known to be one.
            inner = list(_presence(part.fields, taken))
            flags = [each.there for each in inner if each.there is not None]
            yield Presence(part.name, np.logical_or.reduce(flags) if len(flags) == len(inner) else None)
            yield from inner
        else:
            column = taken[part.column]
            there = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
            yield Presence(part.name, there)


def in_batches(block: pa.Array) -> pa.ChunkedArray:
    """Return a block in parts that are parsed within the cache of a core, if they are large enough to be worth it."""
    rows = _BATCH_BYTES * len(block) // max(1, block.nbytes)
    if not _FEWEST <= rows < min(len(block), _VECTOR):
        return pa.chunked_array([block])
    return pa.chunked_array([block.slice(start, rows) for start in range(0, len(block), rows)])


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _inner(structure: dict[str, Any], mode: ParseMode) -> str:
    shape = quoted(json.dumps(structure, ensure_ascii=False))
    match mode:
        case ParseMode.NUMBERS | ParseMode.STRICT:
            return f"SELECT v, from_json_strict(v, {shape}) AS s FROM records"
        case ParseMode.COUNTED_NUMBERS | ParseMode.COUNTED | ParseMode.LENIENT:
            return f"SELECT v, from_json(v, {shape}) AS s FROM records"
