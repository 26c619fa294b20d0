"""The lookup of rows of keys in a database: in pieces, concurrently, repeated for a while if it does not answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from sqlite3 import Error as SqliteError
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import QueuePool

from service.databases.errors import DatabaseConfigError, DatabaseUnreachable
from service.databases.looked_up_table import LookedUpTable
from service.databases.rows import FoundRow, Key
from service.databases.statement import parameters_of, select_rows
from service.databases.values import ValueUnreadable, read_row, reader

_PAUSE = 0.5
"""Seconds before the second attempt, doubled for each further one."""

_LONGEST_PAUSE = 10.0
"""The longest pause between attempts, in seconds: a database that is back is noticed soon."""

_CONNECTING = 10
"""Seconds to wait for a connection."""

_REFUSED = frozenset({"22", "28", "3D", "3F", "42"})
"""Classes of SQLSTATE that the next attempt would meet again: wrong data, a wrong login, no such database, schema,
table or column, or no right to read it. https://www.postgresql.org/docs/current/errcodes-appendix.html"""

_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_CANTOPEN", "SQLITE_IOERR")
"""SQLite's errors for a file that is missing now, or in use."""


class DatabaseTable:
    """One table for all tasks of a process; its connections are opened when they are first needed. Raises
    DatabaseConfigError for an invalid URL."""

    def __init__(
        self,
        table: LookedUpTable,
        pause: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._table = table
        self._pause = pause
        self._now = now
        self._readers = [reader(column.type) for column in table.columns]
        self._engine = opened(table)
        self._threads = ThreadPoolExecutor(table.options.connections, "lookup")

    def close(self) -> None:
        """Close all connections."""
        self._threads.shutdown()
        self._engine.dispose()

    def rows(self, keys: Sequence[Key]) -> dict[Key, list[FoundRow]]:
        """Return the rows of each key, in the order of the database's answer; a key without rows is left out. Raises
        DatabaseUnreachable and DatabaseConfigError."""
        size = self._table.options.keys
        pieces = [keys[start : start + size] for start in range(0, len(keys), size)]
        found: dict[Key, list[FoundRow]] = {}
        # One piece needs no thread.
        answers = map(self._piece, pieces) if len(pieces) == 1 else self._threads.map(self._piece, pieces)
        for answer in answers:
            found.update(answer)
        return found

    def _piece(self, keys: Sequence[Key]) -> dict[Key, list[FoundRow]]:
        began, tries = self._now(), 0
        while True:
            try:
                return self._ask(keys)
            except DataError as error:
                if len(keys) == 1:
                    why = f"it cannot be looked up in table {self._table.name}: {first_line(error)}"
                    return {keys[0]: [self._unreadable(keys[0], why)]}
                # One of the keys causes the error, and must not keep the others from their rows.
                half = len(keys) // 2
                return self._piece(keys[:half]) | self._piece(keys[half:])
            except DBAPIError as error:
                failure = failure_of(self._table, error)
                pause = min(_PAUSE * 2**tries, _LONGEST_PAUSE)
                tries += 1
                late = (self._now() - began + pause) * 1000 > self._table.options.patience
                if isinstance(failure, DatabaseConfigError) or tries > self._table.options.retries or late:
                    raise failure from error
                self._pause(pause)

    def _ask(self, keys: Sequence[Key]) -> dict[Key, list[FoundRow]]:
        statement = select_rows(self._table, keys, self._engine.dialect)
        with self._engine.connect() as connection:
            answer = connection.execute(statement, parameters_of(self._table, keys, self._engine.dialect)).fetchall()
        found: dict[Key, list[FoundRow]] = {}
        wanted = set(keys)
        for key, row in self._read(answer):
            # The database may treat more values as equal than SQL does: texts that differ in case, or in spaces at
            # their end.
            if key in wanted:
                found.setdefault(key, []).append(row)
        return found

    def _read(self, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[Key, FoundRow]]:
        table = self._table
        for row in rows:
            try:
                values = tuple(read_row(row, table.columns, self._readers))
            except ValueUnreadable as error:
                key = self._key(row)
                yield key, self._unreadable(key, f"table {table.name}: {error}")
                continue
            yield tuple(values[k] for k in table.keys), FoundRow(values)

    def _key(self, row: Sequence[Any]) -> Key:
        """The key of a row of which another column cannot be read. Raises DatabaseConfigError where it is the key:
        nobody could tell which rows it belongs to."""
        table = self._table
        try:
            columns = [table.columns[k] for k in table.keys]
            return tuple(read_row([row[k] for k in table.keys], columns, [self._readers[k] for k in table.keys]))
        except ValueUnreadable as error:
            raise DatabaseConfigError(
                f"table {table.name} cannot be looked up: {error}\n  hint:   declare the column as the database has it"
            ) from None

    def _unreadable(self, key: Key, why: str) -> FoundRow:
        values: list[Any] = [None] * len(self._table.columns)
        for place, value in zip(self._table.keys, key, strict=True):
            values[place] = value
        return FoundRow(tuple(values), why)


def failure_of(table: LookedUpTable, error: DBAPIError) -> DatabaseConfigError | DatabaseUnreachable:
    """Return the failure for an error of the driver, by its code if it has one."""
    database = f"the database of table {table.name}"
    if isinstance(error.orig, SqliteError):
        name = getattr(error.orig, "sqlite_errorname", "")
        refused = not name.startswith(_BUSY)
    else:
        state = getattr(error.orig, "sqlstate", None) or ""
        refused = state[:2] in _REFUSED
    if refused:
        return DatabaseConfigError(f"{database} refuses the lookup: {first_line(error)}")
    return DatabaseUnreachable(f"{database} cannot be reached: {first_line(error)}")


def login_refused(error: DBAPIError) -> bool:
    """Return whether a connection ended after the server had asked for a password: it was wrong or missing, or there
    is no such user or database, or no right to it.

    Such errors of PostgreSQL have no SQLSTATE. Its client library tells whether it has used a password
    (https://www.postgresql.org/docs/current/libpq-status.html#LIBPQ-PQCONNECTIONUSEDPASSWORD); a server that is not
    there, or starts, or is full, asks for none.
    """
    connection = getattr(error.orig, "pgconn", None)
    return connection is not None and bool(connection.used_password or connection.needs_password)


def first_line(error: DBAPIError) -> str:
    """Return the driver's message; SQLAlchemy's own text would add the statement and its parameters."""
    lines = str(error.orig).strip().splitlines()
    return lines[0] if lines else type(error.orig).__name__


def opened(table: LookedUpTable) -> sa.Engine:
    """Return connections on which each statement is a transaction of its own. They are opened when they are needed; one
    that has died is noticed by its error. Raises DatabaseConfigError for an invalid URL."""
    arguments: dict[str, Any] = {"connect_timeout": _CONNECTING} if "postgresql" in table.url.split(":")[0] else {}
    if table.url.startswith("sqlite"):
        arguments = {"check_same_thread": False}
    try:
        return sa.create_engine(
            table.url,
            connect_args=arguments,
            poolclass=QueuePool,
            pool_size=table.options.connections,
            max_overflow=0,
            isolation_level="AUTOCOMMIT",
            hide_parameters=True,
        )
    except (ArgumentError, NoSuchModuleError, ImportError) as error:
        raise DatabaseConfigError(
            f"the URL of table {table.name} cannot be used: {type(error).__name__}\n"
            "  hint:   jdbc:postgresql and jdbc:sqlite work as they are; another database needs its driver for Python"
            " in the image, and a URL of SQLAlchemy that names it"
        ) from None
