"""Tables of databases for tests, and the lookups of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from service.plan.program import Lookup
from service.plan.table import Connector, LookupOptions, Table, TableColumn
from service.plan.types import BIGINT, STRING, DataType

Columns = Sequence[tuple[str, DataType]]

STANDARD = LookupOptions("customers")

CUSTOMERS: Columns = (("id", BIGINT), ("name", STRING))


def lookup_of(
    url: str,
    options: LookupOptions = STANDARD,
    *,
    columns: Columns = CUSTOMERS,
    keys: tuple[int, ...] = (0,),
) -> Lookup:
    connector = Connector("jdbc", properties={"url": url}, lookup=options)
    declared = tuple(TableColumn(name, type_) for name, type_ in columns)
    return Lookup(Table("customers", declared, connector), tuple(range(len(declared))), keys)


def sqlite_file(folder: Path, *statements: str) -> str:
    """A file in which the statements have run, as the URL of a database."""
    file = folder / "test.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return f"jdbc:sqlite:{file}"
