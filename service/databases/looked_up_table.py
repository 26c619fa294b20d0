"""The connection to a database table. Secrets are in no repr."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from service.databases.address import sqlalchemy_url
from service.plan.program import Lookup
from service.plan.table import LookupOptions
from service.plan.types import DataType


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """A column as the table declares it."""

    name: str
    type: DataType
    nullable: bool


@dataclass(frozen=True, slots=True)
class LookedUpTable:
    """A table as one lookup reads it: `columns` are read, those at `keys` are compared. `name` is the declared one."""

    name: str
    url: str = field(repr=False)
    columns: tuple[ReadColumn, ...]
    keys: tuple[int, ...]
    options: LookupOptions


def looked_up_table(lookup: Lookup) -> LookedUpTable:
    """Return the connection and columns of the declared table. Raises ValueError if its URL is invalid."""
    table = lookup.table
    options = table.connector.properties
    assert table.lookup is not None
    columns = (table.columns[i] for i in lookup.columns)
    return LookedUpTable(
        name=table.name,
        url=_with_login(sqlalchemy_url(options["url"]), options.get("username", ""), options.get("password", "")),
        columns=tuple(ReadColumn(c.name, c.type, c.nullable) for c in columns),
        keys=lookup.keys,
        options=table.lookup,
    )


def _with_login(url: str, user: str, password: str) -> str:
    """The URL with user and password; those in the URL take precedence."""
    parts = urlsplit(url)
    if not user or parts.username or not parts.hostname:
        return url
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    return url.replace("://", f"://{login}@", 1)
