"""Records that lack names, sorted by which ones: those of each shape are read strictly, without what they lack.

DuckDB is asked once which of the wanted names each record has. A name that is not there is left out of the statement
that reads such records, and is NULL in what comes out. An object of which none of the wanted names is there is taken to
be null: if it is not, the strict statement fails, as it does for all that is odd in another way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.sql import NOT_COMPUTABLE, Sql
from service.formats.json.buffers import Flags, Rows
from service.formats.json.columns import quoted
from service.formats.json.options import JsonOptions
from service.formats.json.parse import FastResult, Fields, ParseMode, Statement, whole
from service.plan.types import DataType, Row, arrow

Path = tuple[str, ...]

_WORTH = 50
"""Records from which on a shape is read by a statement of its own."""

_MOST = 24
"""Shapes that are read so in one block, those of most records."""

_REMEMBERED = 200
"""Shapes whose statements are kept."""

_WIDEST = 200
"""Names for which each record is asked: that costs as many looks into each."""

_WORD = 62
"""Flags that are put together in one number."""


class Group(NamedTuple):
    """Records of one shape, by position; `shape` is None where they are to be read in another way."""

    shape: RecordShape | None
    rows: Rows


class Shapes:
    """Picklable: sorts the records of a block by the names that they lack of those of `fields`."""

    def __init__(self, fields: Fields, options: JsonOptions) -> None:
        self._fields = fields
        self._options = options
        self._paths = list(_paths((), fields.names, fields.types))
        listed = ", ".join(quoted("$" + "".join(f'."{name}"' for name in path)) for path in self._paths)
        self._statement = f"SELECT json_exists(v, [{listed}]) AS p FROM records"
        self._where_valid = f"SELECT CASE WHEN json_valid(v) THEN json_exists(v, [{listed}]) END AS p FROM records"
        self._known: dict[frozenset[Path], RecordShape] = {}

    def groups(self, block: pa.Array, sql: Sql) -> list[Group]:
        """Return the records of `block` by their shape; those of the last group have none that is worth it."""
        records = {"records": pa.table({"v": block})}
        try:
            answer = sql(self._statement, records)
        except NOT_COMPUTABLE:
            answer = sql(self._where_valid, records)
        there = whole(answer["p"])
        sound = np.flatnonzero(there.is_valid().to_numpy(zero_copy_only=False))
        flags = there.flatten().to_numpy(zero_copy_only=False).reshape(len(sound), len(self._paths))
        by_shape: dict[frozenset[Path], list[Rows]] = {}
        # Where columns are sparse nearly every record has a shape of its own: the sizes are asked first.
        alike = sorted((rows for rows in _equal_rows(flags) if len(rows) >= _WORTH), key=len, reverse=True)
        for members in alike[:_MOST]:
            lacking = self._lacking(flags[members[0]])
            if lacking is not None:
                by_shape.setdefault(lacking, []).append(sound[members])
        found = [(lacking, np.sort(np.concatenate(rows))) for lacking, rows in by_shape.items()]
        found.sort(key=lambda each: -len(each[1]))
        worth = [Group(self._shape(lacking), rows) for lacking, rows in found]
        left: Flags = np.ones(len(block), dtype=bool)
        for group in worth:
            left[group.rows] = False
        return [*worth, Group(None, np.flatnonzero(left))]

    def _lacking(self, flags: Flags) -> frozenset[Path] | None:
        """The paths that records with these flags lack; None where that is all, or must not be."""
        there = {path for path, flag in zip(self._paths, flags.tolist(), strict=True) if flag}
        lacking = frozenset(_lacking((), self._fields.names, self._fields.types, there))
        if not there or (lacking and self._options.fail_on_missing):
            return None
        return lacking

    def _shape(self, lacking: frozenset[Path]) -> RecordShape:
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        return self._known.setdefault(lacking, RecordShape(self._fields, self._options, lacking))


class RecordShape:
    """Picklable: reads records that lack some names strictly."""

    def __init__(self, fields: Fields, options: JsonOptions, lacking: frozenset[Path]) -> None:
        self._fields = fields
        self._lacking = lacking
        kept = _without((), fields.names, fields.types, lacking)
        narrow = Fields(kept.names, kept.types, fields.repeats)
        statements = [Statement(narrow, options, mode) for mode in (ParseMode.NUMBERS, ParseMode.STRICT)]
        self._statements = list({s.text: s for s in statements}.values())

    def read(self, block: pa.Array, sql: Sql) -> FastResult | None:
        """Return the fields of each text of `block`, or None if one of them is odd in another way."""
        for statement in self._statements:
            answer = statement.read(block, sql)
            if answer is not None:
                names, types = self._fields.names, self._fields.types
                columns = _filled((), names, types, answer.columns, self._lacking, len(block))
                return FastResult(columns, answer.suspect)
        return None


def expressible(names: Sequence[str], types: Sequence[DataType]) -> bool:
    """Return whether a path can lead to each of these names, and they are few enough to ask for each."""
    paths = list(_paths((), names, types))
    return len(paths) <= _WIDEST and not any({'"', "\\", "*"} & set(name) for path in paths for name in path)


def _paths(at: Path, names: Sequence[str], types: Sequence[DataType]) -> Iterator[Path]:
    """The paths of all names, those within a ROW behind that of the ROW."""
    for name, type_ in zip(names, types, strict=True):
        yield (*at, name)
        if isinstance(type_, Row):
            yield from _paths((*at, name), type_.names, type_.types)


def _lacking(at: Path, names: Sequence[str], types: Sequence[DataType], there: set[Path]) -> Iterator[Path]:
    for name, type_ in zip(names, types, strict=True):
        path = (*at, name)
        if path not in there:
            yield path
        elif isinstance(type_, Row) and any((*path, inner) in there for inner in type_.names):
            yield from _lacking(path, type_.names, type_.types, there)


def _without(at: Path, names: Sequence[str], types: Sequence[DataType], lacking: frozenset[Path]) -> Row:
    kept = [(n, t) for n, t in zip(names, types, strict=True) if (*at, n) not in lacking]
    narrow = [_without((*at, n), t.names, t.types, lacking) if isinstance(t, Row) else t for n, t in kept]
    return Row(tuple(n for n, _ in kept), tuple(narrow))


def _filled(
    at: Path,
    names: Sequence[str],
    types: Sequence[DataType],
    columns: Sequence[pa.Array],
    lacking: frozenset[Path],
    count: int,
) -> list[pa.Array]:
    """The columns of all names, NULL where the name is lacking."""
    found: list[pa.Array] = []
    given = iter(columns)
    for name, type_ in zip(names, types, strict=True):
        path = (*at, name)
        if path in lacking:
            found.append(pa.nulls(count, arrow(type_)))
            continue
        column = next(given)
        if isinstance(type_, Row) and column.type != arrow(type_):
            fields = [column.field(i) for i in range(column.type.num_fields)]
            inner = _filled(path, type_.names, type_.types, fields, lacking, count)
            column = pa.StructArray.from_arrays(inner, fields=list(arrow(type_)), mask=column.is_null())
        found.append(column)
    return found


def _equal_rows(flags: Flags) -> list[Rows]:
    """The rows of a matrix, by position, those that are equal together."""
    code = np.zeros(len(flags), dtype=np.int64)
    for first in range(0, flags.shape[1], _WORD):
        part = flags[:, first : first + _WORD]
        word = part @ (np.int64(1) << np.arange(part.shape[1], dtype=np.int64))
        _, ranks = np.unique(word, return_inverse=True)
        _, code = np.unique(code * (len(flags) + 1) + ranks, return_inverse=True)
    order = np.argsort(code, kind="stable")
    return [rows for rows in np.split(order, np.flatnonzero(np.diff(code[order])) + 1) if len(rows)]
