"""CSV to columns: Arrow splits plain lines as a block, lines with quotes are read one by one, DuckDB casts the values.

A value is believed only if it is written the usual way for its type (`3.7` is no INT). An empty text is NULL in every
type but texts.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.sql import Sql
from service.formats.contract import PASSED_OVER, DeadLetter
from service.formats.csv.lines import LineParser, MalformedLineError
from service.formats.csv.options import csv_options
from service.formats.csv.values import unreadable, value_of
from service.formats.record_parts import Part
from service.formats.records import BAD_UTF8, texts
from service.plan.table import Format
from service.plan.types import Array, Simple, Text, arrow, flink


class CsvReader:
    """Reads the columns of a part by their positions in the line. Picklable.

    `part` holds the columns that are wanted, `whole` all columns of the line.
    """

    def __init__(self, part: Part, form: Format, whole: Part) -> None:
        self._options = csv_options(form)
        self._parser = LineParser(self._options)
        self._width = len(whole.columns)
        self._places = [whole.columns.index(column) for column in part.columns]
        self._part = part
        values = [f"{value_of(f'f{i}', t, self._options)} AS v{i}" for i, t in enumerate(part.types)]
        wrong = [f"{unreadable(f'f{i}', f'v{i}')} AS d{i}" for i in range(len(part.types))]
        self._statement = (
            f"SELECT {', '.join([*(f'v{i}' for i in range(len(values))), *wrong])} FROM"
            f" (SELECT *, {', '.join(values)} FROM records)"
        )

    def read(self, values: pa.ChunkedArray, sql: Sql, bad: dict[int, DeadLetter]) -> list[pa.ChunkedArray]:
        """Return a column for each wanted one, NULL where there is none that can be read; `bad` grows."""
        decoded, broken = texts(values)
        found = dict.fromkeys(broken, BAD_UTF8)
        cells = self._cells(decoded.combine_chunks(), found)
        if not self._places:
            bad.update(self._lenient(found))
            return []
        columns = [self._texts(cells[place], i) for i, place in enumerate(self._places)]
        answer = sql(self._statement, {"records": pa.table({f"f{i}": c for i, c in enumerate(columns)})})
        for i, type_ in enumerate(self._part.types):
            for index in np.flatnonzero(answer[f"d{i}"].to_numpy()):
                text = columns[i][int(index)].as_py()
                found.setdefault(
                    int(index),
                    DeadLetter(
                        "wrong-type", f'column "{self._part.names[i]}" is {flink(type_)}, but the record has "{text}"'
                    ),
                )
        bad.update(self._lenient(found))
        return [answer[f"v{i}"].cast(arrow(t)) for i, t in enumerate(self._part.types)]

    def _lenient(self, found: dict[int, DeadLetter]) -> dict[int, DeadLetter]:
        return dict.fromkeys(found, PASSED_OVER) if self._options.ignore_errors else found

    def _texts(self, column: pa.Array, number: int) -> pa.Array:
        """The texts of a column, NULL where the line says so; of an ARRAY only its elements may be NULL."""
        type_ = self._part.types[number]
        if isinstance(type_, Array):
            return column
        if self._options.null is not None:
            column = pc.if_else(pc.equal(column, self._options.null), pa.scalar(None, pa.string()), column)
        if isinstance(type_, Text) or type_ == Simple("STRING"):
            return column
        column = pc.utf8_trim_whitespace(column)
        return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)

    def _cells(self, lines: pa.Array, found: dict[int, DeadLetter]) -> list[pa.Array]:
        """The texts of each column of the line; a line without them, or of another number of columns, is a dead
        letter."""
        odd = self._odd(lines)
        plain = lines if not odd.any() else pc.if_else(pa.array(odd), pa.scalar(None, pa.string()), lines)
        split = pc.split_pattern(plain, self._options.delimiter)
        # Arrow's own numbers cannot be written to.
        counts = pc.fill_null(pc.list_value_length(split), self._width).to_numpy(zero_copy_only=False).copy()
        rows: dict[int, list[str]] = {}
        for index in map(int, np.flatnonzero(odd)):
            line = lines[index].as_py()
            if self._options.comments and line.startswith("#"):
                found.setdefault(index, PASSED_OVER)
                continue
            try:
                cells = self._parser.cells(line)
            except MalformedLineError as error:
                found.setdefault(index, DeadLetter("bad-csv", str(error)))
                continue
            if len(cells) == self._width:
                rows[index] = cells
            else:
                counts[index] = len(cells)
        for index in map(int, np.flatnonzero(counts != self._width)):
            found.setdefault(
                index,
                DeadLetter("bad-csv", f"the table has {self._width} columns, but the record has {int(counts[index])}"),
            )
        if (counts == self._width).all() and not rows and not split.null_count:
            return [pc.list_element(split, place) for place in range(self._width)]
        whole = [
            cells if n == self._width and cells is not None else [None] * self._width
            for cells, n in zip(split.to_pylist(), counts, strict=True)
        ]
        for index, cells in rows.items():
            whole[index] = cells
        return [pa.array([cells[place] for cells in whole], pa.string()) for place in range(self._width)]

    def _odd(self, lines: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Lines that cannot simply be split: with quotes, escapes or line ends, or that may be comments."""
        marks = [m for m in (self._options.quote, self._options.escape, "\n", "\r") if m]
        odd = np.zeros(len(lines), dtype=bool)
        for mark in marks:
            odd |= pc.fill_null(pc.match_substring(lines, mark), False).to_numpy(zero_copy_only=False)
        if self._options.comments:
            odd |= pc.fill_null(pc.starts_with(lines, "#"), False).to_numpy(zero_copy_only=False)
        return odd
