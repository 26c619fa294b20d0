"""The one statement of a lookup: the rows of some keys, as parameters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from service.databases.looked_up_table import LookedUpTable
from service.plan.types import TimestampLtz


def select_rows(table: LookedUpTable, keys: Sequence[tuple[Any, ...]], dialect: sa.Dialect) -> sa.TextClause:
    """Return `SELECT columns FROM table WHERE key IN (...)`; its parameters are those of `parameters_of`.

    Parameters have no type of their own, so that the database takes them for that of its column: a text is compared
    with an enumeration or a UUID, too.
    """
    quote = dialect.identifier_preparer.quote
    columns = ", ".join(quote(column.name) for column in table.columns)
    name = ".".join(quote(part) for part in table.options.table.split("."))
    asked = [quote(table.columns[key].name) for key in table.keys]
    width = len(asked)
    if width == 1:
        places = ", ".join(f":p{i}" for i in range(len(keys)))
        return sa.text(f"SELECT {columns} FROM {name} WHERE {asked[0]} IN ({places})")
    rows = ", ".join(f"({', '.join(f':p{i * width + k}' for k in range(width))})" for i in range(len(keys)))
    # SQLite knows a list of rows only as VALUES.
    rows = f"VALUES {rows}" if dialect.name == "sqlite" else rows
    return sa.text(f"SELECT {columns} FROM {name} WHERE ({', '.join(asked)}) IN ({rows})")


def parameters_of(table: LookedUpTable, keys: Sequence[tuple[Any, ...]], dialect: sa.Dialect) -> dict[str, Any]:
    """Return the parameters by name."""
    instants = [isinstance(table.columns[key].type, TimestampLtz) for key in table.keys]
    given = (_instant(v) if instant else v for key in keys for v, instant in zip(key, instants, strict=True))
    values = map(_for_sqlite, given) if dialect.name == "sqlite" else given
    return {f"p{i}": value for i, value in enumerate(values)}


def _instant(value: datetime) -> datetime:
    """Blocks have instants as wall clocks in UTC."""
    return value.replace(tzinfo=UTC)


def _for_sqlite(value: Any) -> Any:
    """SQLite has no type for these: what equals them there is a number, or a text as its own functions write it."""
    match value:
        case Decimal():
            return int(value) if value == int(value) else float(value)
        case datetime():
            return value.isoformat(" ")
        case date() | time():
            return value.isoformat()
        case _:
            return value
