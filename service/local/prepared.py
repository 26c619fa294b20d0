"""The decoder of a `.rows` file: its rows are parsed once, then found by the number of their line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from operators.names import WEIGHT
from operators.sql import Sql
from service.formats.contract import DEAD_RECORD, RECORD, Decoded
from service.formats.metadata import metadata_column
from service.local import cells, text_table
from service.local.errors import CaseError
from service.local.inputs import InputRows
from service.plan.properties import carries_changes
from service.plan.table import ColumnKind, Table
from service.plan.types import arrow

_WEIGHTS = {"": 1, "+": 1, "+I": 1, "+U": 1, "-": -1, "-U": -1, "-D": -1}
_SHORT = {"": "+I", "+": "+I", "-": "-D"}


class PreparedRows:
    """Gives the columns at `columns` of the table: those of the file's head, METADATA ones from the record, else NULL.

    A column of the head without a name holds the kind of change. Raises CaseError for one that the table cannot have.
    """

    def __init__(self, table: Table, columns: tuple[int, ...], input: InputRows, sql: Sql) -> None:
        self._table = table
        self._columns = columns
        lines = input.lines
        rows = [text_table.cells(line) for line in lines]
        self._places = {str(line.number).encode(): i for i, line in enumerate(lines)}
        _check_shape(table, input, rows)
        by_name = {
            name: [(line.number, row[i]) for line, row in zip(lines, rows, strict=True)]
            for i, name in enumerate(input.head)
        }
        self._given: Mapping[int, pa.Array] = {
            c: _parsed(table, c, by_name[table.columns[c].name], input, sql)
            for c in columns
            if table.columns[c].name in by_name
        }
        kinds = by_name.get("")
        self._weights = _weights(kinds, len(rows), input)
        _check_kinds(table, kinds or (), input)
        # The row before an update is left out if the table is read as upserts.
        self._kept = pa.array([not (table.upserts and kinds and kinds[i][1] == "-U") for i in range(len(rows))])

    def needs(self) -> tuple[str, ...]:
        """Return the number of the line, and whatever a METADATA column may ask for."""
        return tuple(RECORD.names)

    def decode(self, records: pa.Table, sql: Sql) -> Decoded:
        """Return the rows of these lines."""
        chosen = pa.array([self._places[v] for v in records["value"].to_pylist()], pa.int64())
        kept = self._kept.take(chosen)
        records, chosen = records.filter(kept), chosen.filter(kept)
        named = {f"c{i}": self._values(c, records, chosen) for i, c in enumerate(self._columns)}
        return Decoded(pa.table({**named, WEIGHT: self._weights.take(chosen)}), DEAD_RECORD.empty_table())

    def _values(self, index: int, records: pa.Table, chosen: pa.Array) -> pa.Array | pa.ChunkedArray:
        column = self._table.columns[index]
        if index in self._given:
            return self._given[index].take(chosen)
        if column.kind is ColumnKind.METADATA:
            return metadata_column(records, column)
        return pa.nulls(len(chosen), arrow(column.type))


def _check_shape(table: Table, input: InputRows, rows: Sequence[tuple[str, ...]]) -> None:
    stored = [c.name for c in table.columns if c.kind is not ColumnKind.COMPUTED]
    for name in input.head:
        if name and name not in stored:
            message = f'"{name}" is no physical or METADATA column of table "{table.name}"'
            raise CaseError(f"{input.path}: {message}; there are {', '.join(stored)}")
    for line, row in zip(input.lines, rows, strict=True):
        if len(row) != len(input.head):
            message = f"the row has {len(row)} cells, the head has {len(input.head)}"
            raise CaseError.at(input.path, line.number, message)


def _parsed(table: Table, index: int, texts: Sequence[tuple[int, str]], input: InputRows, sql: Sql) -> pa.Array:
    column = table.columns[index]
    try:
        return cells.parse([text for _, text in texts], column.type, sql)
    except cells.CellError as error:
        raise CaseError.at(input.path, texts[error.index][0], f'column "{column.name}": {error}') from None


def _weights(kinds: Sequence[tuple[int, str]] | None, count: int, input: InputRows) -> pa.Array:
    if kinds is None:
        return pa.array([1] * count, pa.int64())
    for line, kind in kinds:
        if kind not in _WEIGHTS:
            raise CaseError.at(input.path, line, f'"{kind}" is no kind of change; there are +I, -U, +U, -D')
    return pa.array([_WEIGHTS[kind] for _, kind in kinds], pa.int64())


def _check_kinds(table: Table, kinds: Sequence[tuple[int, str]], input: InputRows) -> None:
    """Check that each kind is one of a record that the table could read, or of a row in its database."""
    connector = table.connector
    if connector.kind == "upsert-kafka":
        refused = {"-U"}
        reason = "connector 'upsert-kafka' has no row before an update"
        hint = "write only the row after the update, +U"
    elif carries_changes(table) or table.lookup is not None:
        return
    else:
        form = connector.value_format
        refused = {"-U", "+U", "-D"}
        reason = f"format '{form.kind}' only adds rows" if form else f"connector '{connector.kind}' only adds rows"
        hint = (
            "write +I, or no kind; changes need a format that carries them, such as 'changelog-json',"
            " or connector 'upsert-kafka'"
        )
    for line, kind in kinds:
        if _SHORT.get(kind, kind) in refused:
            message = f'"{kind}" is no kind of change that table "{table.name}" can have: {reason}'
            raise CaseError.at(input.path, line, message, hint)
