"""Read wanted fields out of blocks of JSON text: with DuckDB and Arrow, and suspect rows by the reference parser.

A block is read in the modes of `parse.ParseMode`, the fastest first. Where its records are not alike, those are
believed of which every value was taken out (`counted`); the others are sorted by the names that they lack (`shapes`),
and the last mode is left to what is odd in another way. After a failure the next blocks begin where this one ended for
a while, since a topic with optional fields has them everywhere. Each mode
marks the rows whose values may differ from what `reference` reads: these *suspect* rows are read again by `reference`,
one by one. So the mode never changes what is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from operators.sql import Sql
from service.formats.contract import PASSED_OVER, DeadLetter
from service.formats.json.buffers import Rows
from service.formats.json.columns import readable
from service.formats.json.options import JsonOptions
from service.formats.json.parse import FastResult, Fields, ParseMode, Statement, whole
from service.formats.json.reference import Unreadable, reference_record
from service.formats.json.shapes import Shapes, expressible
from service.plan.types import Row, arrow

_REMEMBERED_BLOCKS = 64
"""Blocks that begin with the mode after one that has failed: where that never fits, one block in 64 pays for an
attempt in vain."""

_FEW = 1_000
"""Records below which it costs more to sort them than to read them as they are."""

_STRICT = (ParseMode.NUMBERS, ParseMode.STRICT)
_COUNTED = (ParseMode.COUNTED_NUMBERS, ParseMode.COUNTED)

_TOO_DEEP = DeadLetter("bad-json", "its objects and arrays are nested too deep to be read")


class ReadFields(NamedTuple):
    """The fields of a block, one column a field, and the rows (by position) that could not be read; theirs are NULL."""

    columns: list[pa.ChunkedArray]
    bad: dict[int, DeadLetter]


class Document:
    """Picklable: a compiled reader of `fields`."""

    def __init__(self, fields: Fields, options: JsonOptions) -> None:
        self._fields = fields
        self._options = options
        self._schema = [arrow(t) for t in fields.types]
        fast = bool(fields.names) and readable(Row(fields.names, fields.types))
        # Where a name that is missing is an error, NULL has to be distinguished from it.
        counted = fast and not options.fail_on_missing
        self._strict = _Attempts([Statement(fields, options, mode) for mode in _STRICT] if fast else [])
        self._counted = _Attempts([Statement(fields, options, mode) for mode in _COUNTED] if counted else [])
        self._lenient = Statement(fields, options, ParseMode.LENIENT) if fast else None
        self._shapes = Shapes(fields, options) if fast and expressible(fields.names, fields.types) else None
        self._blocks_looked_at = 0
        self._blocks_unsorted = 0

    def read_at_once(self, values: pa.ChunkedArray, sql: Sql) -> ReadFields | None:
        """Return the fields of each value, or None if they are not all alike; none of them is NULL.

        Values are bytes that nobody has looked at: what is no UTF-8 is no JSON, and fails with the block.
        """
        if len(values) == 0:
            return None
        if self._blocks_looked_at > 0:
            self._blocks_looked_at -= 1
            return None
        known = self._strict.next
        block = whole(values.cast(pa.binary())).view(pa.string())
        answer = self._strict.read(block, sql)
        if answer is None:
            # It may be the bytes of one record: then the others are alike once it is set apart.
            self._strict.next = known
            self._blocks_looked_at = _REMEMBERED_BLOCKS
            return None
        return self._with_suspects_read(answer, block)

    def read(self, texts: pa.ChunkedArray, sql: Sql) -> ReadFields:
        """Return the fields of each text; no text is NULL."""
        if len(texts) == 0:
            return ReadFields([pa.chunked_array([], type=t) for t in self._schema], {})
        block = whole(texts)
        answer = self._strict.read(block, sql) or self._read_apart(block, sql)
        return self._with_suspects_read(answer, block)

    def _read_apart(self, block: pa.Array, sql: Sql) -> FastResult:
        """Read a block whose records are not alike."""
        answer = self._counted.read(block, sql)
        if answer is None or answer.uncounted is None:
            return self._read_sorted(block, sql)
        left = np.flatnonzero(answer.uncounted)
        if 2 * len(left) > len(block):
            # They have values that are not wanted, for example, and so will those of the next blocks.
            self._counted.give_up()
        if len(left) == 0:
            return answer
        if len(left) == len(block):
            return self._read_sorted(block, sql)
        others = self._read_sorted(block.take(pa.array(left)), sql)
        answer.suspect[left] = others.suspect
        return FastResult(_replaced(answer.columns, left, others.columns), answer.suspect)

    def _read_sorted(self, block: pa.Array, sql: Sql) -> FastResult:
        """Read the records of each shape by themselves, and what is odd leniently."""
        if self._shapes is None or len(block) < _FEW:
            return self._read_odd(block, sql)
        if self._blocks_unsorted > 0:
            self._blocks_unsorted -= 1
            return self._read_odd(block, sql)
        found: list[tuple[FastResult, Rows]] = []
        odd: list[Rows] = []
        for shape, rows in self._shapes.groups(block, sql):
            part = block if len(rows) == len(block) else block.take(pa.array(rows))
            answer = None if shape is None else shape.read(part, sql)
            if answer is None:
                odd.append(rows)
            else:
                found.append((answer, rows))
        left = np.sort(np.concatenate(odd))
        if 2 * len(left) > len(block):
            # Of sparse columns there are too many shapes: to sort the next blocks would cost more than it saves.
            self._blocks_unsorted = _REMEMBERED_BLOCKS
        if len(left):
            found.append((self._read_odd(block.take(pa.array(left)), sql), left))
        if len(found) == 1:
            return found[0][0]
        places = np.empty(len(block), dtype=np.int64)
        places[np.concatenate([rows for _, rows in found])] = np.arange(len(block))
        taken = pa.array(places)
        parts = zip(*(answer.columns for answer, _ in found), strict=True)
        columns = [pa.concat_arrays(column).take(taken) for column in parts]
        return FastResult(columns, np.concatenate([answer.suspect for answer, _ in found])[places])

    def _read_odd(self, block: pa.Array, sql: Sql) -> FastResult:
        answer = None if self._lenient is None else self._lenient.read(block, sql)
        return self._read_valid(block, sql) if answer is None else answer

    def _read_valid(self, block: pa.Array, sql: Sql) -> FastResult:
        """Read what is valid JSON leniently; all else is suspect."""
        nothing = FastResult([pa.nulls(len(block), t) for t in self._schema], np.ones(len(block), dtype=bool))
        if self._lenient is None:
            return nothing
        valid = sql("SELECT json_valid(v) AS ok FROM records", {"records": pa.table({"v": block})})["ok"].to_numpy()
        sound = np.flatnonzero(valid)
        answer = self._lenient.read(block.take(pa.array(sound)), sql)
        if answer is None:
            return nothing
        source = np.full(len(block), len(sound))
        source[sound] = np.arange(len(sound))
        taken = pa.array(source, mask=~valid)
        nothing.suspect[sound] = answer.suspect
        return FastResult([column.take(taken) for column in answer.columns], nothing.suspect)

    def _with_suspects_read(self, fast_result: FastResult, block: pa.Array) -> ReadFields:
        """Replace the suspect rows by what the reference reads."""
        suspects = np.flatnonzero(fast_result.suspect)
        if len(suspects) == 0:
            return ReadFields([pa.chunked_array([c]) for c in fast_result.columns], {})
        columns: list[list[Any]] = [[] for _ in self._schema]
        bad: dict[int, DeadLetter] = {}
        nothing = [None] * len(self._schema)
        for index, text in zip(suspects, block.take(pa.array(suspects)).to_pylist(), strict=True):
            try:
                values = reference_record(text, self._fields.names, self._fields.types, self._options)
            except Unreadable as error:
                ignored = self._options.ignore_errors
                bad[int(index)] = PASSED_OVER if ignored else DeadLetter(error.reason, error.detail)
                values = nothing
            except RecursionError:
                bad[int(index)] = PASSED_OVER if self._options.ignore_errors else _TOO_DEEP
                values = nothing
            for column, value in zip(columns, values, strict=True):
                column.append(value)
        reference = [pa.array(values, type=t) for t, values in zip(self._schema, columns, strict=True)]
        replaced = _replaced(fast_result.columns, suspects, reference)
        return ReadFields([pa.chunked_array([column]) for column in replaced], bad)


class _Attempts:
    """Statements, tried one after the other. After a failure the next blocks begin with the one that did not fail."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        # Two modes may be the same statement.
        self._statements = tuple({s.text: s for s in statements}.values())
        self.next = 0, 0
        """The statement to begin with, and for how many blocks."""

    def read(self, block: pa.Array, sql: Sql) -> FastResult | None:
        """Return what the first statement that can reads of `block`; None if none can, or could of blocks before."""
        first, left = self.next
        first, left = (first, left - 1) if left > 0 else (0, 0)
        self.next = first, left
        for number, statement in enumerate(self._statements[first:], first):
            answer = statement.read(block, sql)
            if answer is not None:
                return answer
            self.next = number + 1, _REMEMBERED_BLOCKS
        return None

    def give_up(self) -> None:
        """Try none for the next blocks."""
        self.next = len(self._statements), _REMEMBERED_BLOCKS


def _replaced(columns: Sequence[pa.Array], rows: Rows, others: Sequence[pa.Array]) -> list[pa.Array]:
    """Columns with other values in some rows."""
    if not columns:
        return []
    source = np.arange(len(columns[0]))
    source[rows] = len(source) + np.arange(len(rows))
    taken = pa.array(source)
    return [pa.concat_arrays([column, other]).take(taken) for column, other in zip(columns, others, strict=True)]
