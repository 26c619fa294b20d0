"""A thin, reusable way to run one DuckDB statement over Arrow tables."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

import duckdb
import pyarrow as pa

from operators.arrow_answers import answer

SMALL = 20_000
"""Up to this many rows a statement is prepared once and kept: planning it costs more than running it."""

NOT_COMPUTABLE = (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException)
"""Errors that a value is to blame for, not the statement: an overflow, a failed CAST, a text that is no JSON."""

_KEPT = 500
"""Statements that stay prepared: more than the operators of a large program have for blocks of their few shapes."""


class Sql:
    """One DuckDB connection with one thread, so that the order of rows and of additions is the same on a replay.

    Called with a statement and the Arrow tables it names, it returns the answer as an Arrow table. Over few rows the
    statement is prepared once and kept, over many it is planned again with their number in view: which of the two is
    decided by rows and caller alone, so a replay does the same.
    """

    def __init__(self, memory: int | None = None, spill: str = "") -> None:
        """`memory` are the bytes that statements may hold at a time (DuckDB's default if None), `spill` the folder to
        which larger ones go, none if empty."""
        self._memory, self._spill = memory, spill
        self._connection = self._connect()
        self._prepared: OrderedDict[_Key, _Prepared] = OrderedDict()

    def _connect(self) -> duckdb.DuckDBPyConnection:
        return duckdb.connect(
            ":memory:",
            config={
                "threads": 1,
                "preserve_insertion_order": True,
                # It takes an expression that occurs twice out of TRY, so that an error there would not be caught.
                "disabled_optimizers": "common_subexpressions",
                **({} if self._memory is None else {"memory_limit": f"{self._memory}B"}),
                "temp_directory": self._spill,
                # Statements compute over the tables they are given: nothing else of this machine is theirs.
                "enable_external_access": False,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "lock_configuration": True,
                "allowed_configs": "[enable_optimizer]",  # `_prepare` sets it
                # What a file may nest is limited where it is read; a level of it is several here.
                "max_expression_depth": 10_000,
            },
        )

    def __call__(
        self,
        statement: str,
        tables: Mapping[str, pa.Table],
        parameters: Mapping[str, object] | None = None,
        *,
        by_row: bool = False,
    ) -> pa.Table:
        """Run `statement` with each table visible under its name; errors are DuckDB's own.

        `by_row` says that it computes each row of one table by itself. Its plan is the same for any number of rows, and
        holds none afterwards, so it is prepared for many rows as well, which saves 1.2 ms of CPU each time. One that
        aggregates would hold what it has aggregated until it runs again.
        """
        try:
            return self._run(statement, tables, parameters or {}, by_row)
        except UnicodeDecodeError as error:
            # DuckDB cuts the value that it quotes in a message, at times in the middle of a character.
            raise duckdb.ConversionException(error.object.decode(errors="replace")) from error
        except (duckdb.InternalException, duckdb.FatalException):
            # After a fault of its own DuckDB answers nothing any more.
            self._prepared.clear()
            self._connection = self._connect()
            raise

    def _run(
        self, statement: str, tables: Mapping[str, pa.Table], given: Mapping[str, object], by_row: bool
    ) -> pa.Table:
        prepared = by_row or sum(table.num_rows for table in tables.values()) <= SMALL
        if prepared and all(isinstance(value, datetime) for value in given.values()):
            return self._run_prepared(statement, tables, given)
        connection = self._connection
        for name, table in tables.items():
            connection.register(name, table)
        try:
            return answer(connection, statement, given)
        finally:
            for name in tables:
                connection.unregister(name)

    def _run_prepared(
        self, statement: str, tables: Mapping[str, pa.Table], parameters: Mapping[str, object]
    ) -> pa.Table:
        key = _Key(statement, {name: table.schema for name, table in tables.items()})
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepared[key] = _prepare(self._connection.cursor(), statement, tables)
            if len(self._prepared) > _KEPT:
                self._prepared.popitem(last=False)[1].connection.close()
        else:
            self._prepared.move_to_end(key)
        for name, table in tables.items():
            prepared.sources[name].table = table
        given = ", ".join(f"{name} := TIMESTAMP '{value}'" for name, value in parameters.items())
        try:
            return answer(prepared.connection, f"EXECUTE p({given})" if given else "EXECUTE p")
        finally:
            for name in tables:
                prepared.sources[name].release()


class _Key:
    """A statement and the schemas of its tables. Arrow makes Python objects of all columns to hash a schema, so only
    the statement is hashed here."""

    __slots__ = ("_hash", "_schemas", "_statement")

    def __init__(self, statement: str, schemas: Mapping[str, pa.Schema]) -> None:
        self._statement, self._schemas, self._hash = statement, schemas, hash(statement)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Key)
            and self._statement == other._statement
            and self._schemas.keys() == other._schemas.keys()
            and all(schema.equals(other._schemas[name]) for name, schema in self._schemas.items())
        )


class _Source:
    """A table that DuckDB reads again each time it runs a prepared statement; without rows in between."""

    def __init__(self, schema: pa.Schema) -> None:
        # Made once, as it takes longer than to read a table of few rows. A slice would keep the rows of its table.
        self._empty: pa.Table = schema.empty_table()
        self.table = self._empty

    def release(self) -> None:
        """Let go of the rows."""
        self.table = self._empty

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class _Prepared(NamedTuple):
    """A statement prepared on a connection of its own, and the tables that it reads."""

    connection: duckdb.DuckDBPyConnection
    sources: dict[str, _Source]


def _prepare(connection: duckdb.DuckDBPyConnection, statement: str, tables: Mapping[str, pa.Table]) -> _Prepared:
    sources = {name: _Source(table.schema) for name, table in tables.items()}
    for name, source in sources.items():
        connection.register(name, source)
    connection.execute(f"PREPARE p AS {statement}")
    # The plan of p is optimized and stays. That of `EXECUTE p` has nothing to optimize, and to look for something each
    # time takes a fifth of the time of a statement over few rows.
    connection.execute("SET SESSION enable_optimizer = false")
    return _Prepared(connection, sources)
