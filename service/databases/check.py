"""Checks of a table's declaration against its database, before the first lookup."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal as Number
from difflib import get_close_matches
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, NoSuchTableError

from service.databases.client import failure_of, first_line, login_refused, opened
from service.databases.errors import DatabaseConfigError
from service.databases.looked_up_table import LookedUpTable
from service.plan.types import Array, Binary, DataType, Decimal, Simple, Text, Time, Timestamp, TimestampLtz, flink

_NUMBERS = frozenset({int, Number})

_READ: Mapping[str, frozenset[type]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), _NUMBERS),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _NUMBERS | {float}),
    "BOOLEAN": frozenset({bool}),
    "STRING": frozenset({str, UUID}),
    "BYTES": frozenset({bytes}),
    "DATE": frozenset({date}),
}
"""The types of a driver's values for a column of a simple type: `values` converts them, if the value itself fits."""


def mistakes(table: LookedUpTable) -> list[str]:
    """Return what is declared but missing in the database: the table itself, columns, types.

    A database that does not answer is asked again by the first lookup. In SQLite, whose columns have no types, only
    names are compared.
    """
    try:
        engine = opened(table)
    except DatabaseConfigError as error:
        return [str(error)]
    try:
        return _mistakes(table, engine)
    except DBAPIError as error:
        if login_refused(error):
            return [
                f"table {table.name}: its database refuses the login\n  detail: {first_line(error)}\n"
                "  hint:   check 'username' and 'password', and the database that 'url' names"
            ]
        failure = failure_of(table, error)
        return [str(failure)] if isinstance(failure, DatabaseConfigError) else []
    finally:
        engine.dispose()


def _mistakes(table: LookedUpTable, engine: sa.Engine) -> list[str]:
    *schema, name = table.options.table.split(".")
    try:
        there = sa.inspect(engine).get_columns(name, schema=schema[-1] if schema else None)
    except NoSuchTableError:
        return [
            f'table {table.name}: its database has no table "{table.options.table}"\n'
            "  hint:   check 'table-name', with its schema, and the right to read it"
        ]
    types = {str(column["name"]): column["type"] for column in there}
    found: list[str] = []
    for column in table.columns:
        if column.name not in types:
            near = get_close_matches(column.name, types, 1)
            hint = f'\n  hint:   did you mean "{near[0]}"?' if near else ""
            found.append(
                f'table {table.name}: its table in the database has no column "{column.name}"\n'
                f"  detail: it has {', '.join(types)}{hint}"
            )
        elif engine.dialect.name != "sqlite" and not _is_read_from(column.type, types[column.name]):
            found.append(
                f'table {table.name}: column "{column.name}" is declared {flink(column.type)},'
                f" and is {types[column.name].compile(engine.dialect)} in the database\n"
                "  hint:   declare it as the database has it, or make a view there that casts it"
            )
    return found


def _is_read_from(declared: DataType, there: Any) -> bool:
    """Whether a database's type can hold values of the declared one; yes if it is unknown."""
    try:
        given = there.python_type
    except NotImplementedError:
        return True
    match declared:
        case Simple(name):
            return given in _READ.get(name, {given})
        case Text():
            return given in _READ["STRING"]
        case Binary():
            return given is bytes
        case Decimal():
            return given in _NUMBERS | {float, str}
        case Time():
            return given is time
        case Timestamp():
            return given is datetime and not there.timezone
        case TimestampLtz():
            return given is datetime and bool(there.timezone)
        case Array():
            return given is list
        case _:
            return True
