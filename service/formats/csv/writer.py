"""Columns to CSV lines: a cell is quoted where it holds the delimiter, a quote, an escape or a line end."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from service.formats.csv.options import CsvOptions, csv_options
from service.formats.csv.values import text_of
from service.formats.json.columns import quoted
from service.formats.record_parts import Part
from service.plan.table import Format
from service.plan.types import DataType


class CsvWriter:
    """Writes the columns of a part in their order; a NULL is empty, or the null literal. Picklable.

    >>> from service.plan.types import BIGINT, STRING
    >>> from tests.formats.wire import encode, table, values
    >>> print(*values(encode(table({"id": BIGINT, "who": STRING}, "csv"), (1, (7, "ann, the first")))))
    7,"ann, the first"
    """

    def __init__(self, part: Part, form: Format, place: Mapping[int, str]) -> None:
        options = csv_options(form)
        cells = [
            _cell(place.get(column, "NULL"), type_, options)
            for column, type_ in zip(part.columns, part.types, strict=True)
        ]
        self.expression = f"concat({f', {quoted(options.delimiter)}, '.join(cells)})" if cells else "''"

    def finish(self, column: pa.Array) -> pa.Array:
        """Return the lines as they are."""
        return column


def _cell(x: str, type_: DataType, options: CsvOptions) -> str:
    null = quoted(options.null or "")
    if x == "NULL":
        return null
    text = f"CAST({text_of(x, type_, options)} AS VARCHAR)"
    return f"coalesce({_protected(text, options)}, {null})"


def _protected(text: str, options: CsvOptions) -> str:
    """`text` in quotes where a reader would otherwise see another cell."""
    if not options.quote:
        return text
    marks = [options.delimiter, options.quote, "\n", "\r", *([options.escape] if options.escape else [])]
    asks = " OR ".join(f"contains({text}, {_character(mark)})" for mark in dict.fromkeys(marks))
    inner = text
    if options.escape:
        inner = f"replace({inner}, {quoted(options.escape)}, {quoted(2 * options.escape)})"
    doubled = (options.escape or options.quote) + options.quote
    inner = f"replace({inner}, {quoted(options.quote)}, {quoted(doubled)})"
    return f"CASE WHEN {asks} THEN {quoted(options.quote)} || {inner} || {quoted(options.quote)} ELSE {text} END"


def _character(mark: str) -> str:
    return f"chr({ord(mark)})" if mark in "\r\n" else quoted(mark)
