"""The tables that this process looks up: their cached rows, and their connections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import pyarrow as pa

from operators.names import REASON
from service.databases.cache import RowCache
from service.databases.looked_up_table import LookedUpTable, looked_up_table
from service.databases.rows import FoundRow, Key
from service.plan.program import Lookup
from service.plan.types import arrow

_TABLES = 64
"""The number of tables whose connections and rows a process keeps: those of a pipeline share the workers."""


class TableLookup:
    """One table, its connections and its cache."""

    def __init__(self, table: LookedUpTable) -> None:
        # Loading SQLAlchemy takes longer than starting a task: only processes with lookups load it.
        from service.databases.client import DatabaseTable

        self._table = table
        self._database = DatabaseTable(table)
        self._cache = RowCache(table.options)
        self._schema = pa.schema(
            [
                *(pa.field(f"c{i}", arrow(column.type)) for i, column in enumerate(table.columns)),
                pa.field(REASON, pa.string()),
            ]
        )

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def found(self, keys: pa.Table, now: int) -> pa.Table:
        """Return the rows of `keys` (each once, no NULLs), as `LookupJoinOperator.found` has them, in a batch at `now`.

        Raises DatabaseUnreachable and DatabaseConfigError.
        """
        asked: list[Key] = list(zip(*(column.to_pylist() for column in keys.columns), strict=True))
        known = {key: self._cache.get(key, now) for key in asked} if self._table.options.cached else {}
        missing = [key for key in asked if known.get(key) is None]
        answer = self._database.rows(missing) if missing else {}
        for key in missing:
            self._cache.put(key, answer.get(key, ()), now)
        return self._block(row for key in asked for row in _rows_of(key, known, answer))

    def _block(self, rows: Iterable[FoundRow]) -> pa.Table:
        rows = list(rows)
        columns = [
            pa.array([row.values[i] for row in rows], self._schema.field(i).type)
            for i in range(len(self._table.columns))
        ]
        return pa.table([*columns, pa.array([row.unreadable for row in rows], pa.string())], schema=self._schema)


def _rows_of(
    key: Key, known: dict[Key, Sequence[FoundRow] | None], answer: dict[Key, list[FoundRow]]
) -> Sequence[FoundRow]:
    rows = known.get(key)
    return answer.get(key, ()) if rows is None else rows


def mistakes_of(lookup: Lookup) -> list[str]:
    """Return the mistakes of the declared table, according to its database now."""
    from service.databases.check import mistakes

    return mistakes(looked_up_table(lookup))


@lru_cache(_TABLES)
def _lookup(table: LookedUpTable) -> TableLookup:
    return TableLookup(table)


def found_now(lookup: Lookup, keys: pa.Table, now: int) -> pa.Table:
    """Return what the table has for `keys`, asked over connections of this process. Raises as `TableLookup.found`."""
    return _lookup(looked_up_table(lookup)).found(keys, now)
