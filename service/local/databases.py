"""The databases of a case: for each table that is looked up, a SQLite file with the rows of the case.

`customers.rows` holds the changes of the table, batch by batch: a row is inserted, or deleted if the column without a
name says -D or -U. The changes of a batch come before its lookups.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from operators.names import WEIGHT
from operators.sql import Sql
from service.databases.looked_up_table import looked_up_table
from service.databases.lookups import TableLookup
from service.local.errors import CaseError
from service.local.feed import Feed
from service.local.inputs import ROWS, InputRows, read
from service.local.prepared import PreparedRows
from service.plan.program import Lookup, Operator, Program
from service.plan.table import Table
from service.plan.types import Array, TimestampLtz


class _Database:
    """One table, in its state before the next batch."""

    def __init__(self, folder: Path, table: Table, file: Path, sql: Sql) -> None:
        self.input = read(folder, table)
        if self.input.path.suffix != ROWS:
            raise CaseError(
                f"{self.input.path}: a table of a database has rows, and no records; write {table.name}{ROWS}"
            )
        self._feed = Feed(table, self.input)
        self._sql = sql
        self._columns = [column.name for column in table.columns]
        self._instants = [isinstance(column.type, TimestampLtz) for column in table.columns]
        if any(isinstance(column.type, Array) for column in table.columns):
            raise CaseError(f"{self.input.path}: a table with an ARRAY cannot be tested here: SQLite has none")
        self._rows = PreparedRows(table, tuple(range(len(table.columns))), self.input, sql)
        assert table.lookup is not None
        self._name = _quoted(table.lookup.table.rpartition(".")[2])
        self._file = file
        with closing(sqlite3.connect(file)) as connection, connection:
            columns = ", ".join(map(_quoted, self._columns))
            connection.execute(f"CREATE TABLE {self._name} ({columns})")

    def begin(self, batch: int, now: int) -> None:
        """Apply the changes of this batch to the table."""
        with closing(sqlite3.connect(self._file)) as connection, connection:
            for records in self._feed.records(batch, now):
                changes = self._rows.decode(records, self._sql).changes
                weights = changes.column(WEIGHT).to_pylist()
                columns = [changes.column(i).to_pylist() for i in range(len(self._columns))]
                for row, weight in zip(zip(*columns, strict=True), weights, strict=True):
                    stored = map(_stored, row, self._instants)
                    self._apply(connection, tuple(stored), weight)

    def _apply(self, connection: sqlite3.Connection, row: Sequence[Any], weight: int) -> None:
        if weight > 0:
            connection.execute(f"INSERT INTO {self._name} VALUES ({', '.join('?' * len(row))})", row)
            return
        same = " AND ".join(f"{_quoted(column)} IS ?" for column in self._columns)
        one = f"SELECT rowid FROM {self._name} WHERE {same} LIMIT 1"
        connection.execute(f"DELETE FROM {self._name} WHERE rowid IN ({one})", row)


class CaseDatabases:
    """All databases of a job."""

    def __init__(self, folder: Path, program: Program, files: Path, sql: Sql) -> None:
        asking = [(operator.id, operator.lookup) for operator in program.operators if operator.lookup is not None]
        paths = {lookup.table.name: files / f"{lookup.table.name}.sqlite" for _, lookup in asking}
        tables = {lookup.table.name: lookup.table for _, lookup in asking}
        self._databases = [_Database(folder, table, paths[name], sql) for name, table in tables.items()]
        self._lookups = {
            id_: TableLookup(looked_up_table(_in_file(lookup, paths[lookup.table.name]))) for id_, lookup in asking
        }

    @property
    def inputs(self) -> list[InputRows]:
        """The input files."""
        return [database.input for database in self._databases]

    def begin(self, batch: int, now: int) -> None:
        """Apply the changes of this batch to the tables."""
        for database in self._databases:
            database.begin(batch, now)

    def ask(self, operator: Operator, keys: pa.Table, now: int) -> pa.Table:
        """Look up rows for an operator."""
        return self._lookups[operator.id].found(keys, now)

    def close(self) -> None:
        """Close all connections."""
        for lookup in self._lookups.values():
            lookup.close()


@contextmanager
def databases(folder: Path, program: Program, sql: Sql) -> Iterator[CaseDatabases]:
    """Make the databases of a job, for as long as it runs."""
    with TemporaryDirectory() as files:
        found = CaseDatabases(folder, program, Path(files), sql)
        try:
            yield found
        finally:
            found.close()


def _in_file(lookup: Lookup, file: Path) -> Lookup:
    """The lookup in a file, under the name alone: SQLite would take a schema for another file."""
    connector, options = lookup.table.connector, lookup.table.lookup
    assert options is not None
    options = replace(options, table=options.table.rpartition(".")[2])
    connector = replace(connector, properties={"url": f"jdbc:sqlite:{file}"}, lookup=options)
    return replace(lookup, table=replace(lookup.table, connector=connector))


def _stored(value: Any, instant: bool) -> Any:
    """The value as SQLite stores it: dates, times and decimals are texts there, and an instant has the suffix of
    UTC."""
    match value:
        case datetime():
            return value.isoformat(" ") + ("+00:00" if instant else "")
        case date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case _:
            return value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
