"""The net changes of a batch as a changelog that one can read, and what the changes add up to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa

from operators.names import WEIGHT
from operators.sql import Sql
from service.formats.changes.change_pairs import NONE, pair
from service.local import cells
from service.plan.program import Output

Texts = tuple[str, ...]
"""The cells of a row."""


class Change(NamedTuple):
    """One line of a changelog: +I, -U, +U or -D, and the row."""

    kind: str
    row: Texts


class NotThere(Exception):
    """A change retracts a row that does not exist: the changelog is not well formed."""

    def __init__(self, batch: int, change: Change) -> None:
        super().__init__(f"batch {batch}: {change.kind} retracts a row that does not exist: {', '.join(change.row)}")


def names(output: Output) -> Texts:
    """Return the columns that an output writes."""
    return tuple(output.table.columns[c].name for c in output.columns)


def changes(output: Output, table: pa.Table, sql: Sql) -> list[Change]:
    """Return the changes of one batch, sorted by key and row, a -U just before its +U."""
    if table.num_rows == 0:
        return []
    key = [f"c{k}" for k in output.key or ()]
    rest = [f"c{i}" for i in range(len(output.columns)) if f"c{i}" not in key]
    together = [] if output.key is None else [f"sign({WEIGHT})"]
    by = ", ".join([*key, *together, *rest, WEIGHT])
    ordered = sql(f"SELECT * FROM changes ORDER BY {by}", {"changes": table})
    types = [output.table.columns[c].type for c in output.columns]
    rows = list(zip(*(cells.render(ordered.column(i), t, sql) for i, t in enumerate(types)), strict=True))
    found: list[Change] = []
    for before, after in zip(*pair(ordered, output.key), strict=True):
        if before != NONE:
            found.append(Change("-D" if after == NONE else "-U", rows[before]))
        if after != NONE:
            found.append(Change("+I" if before == NONE else "+U", rows[after]))
    return found


def applied(batches: Iterable[Sequence[Change]], key: Sequence[int] | None) -> list[Texts]:
    """Return the rows that are left after all changes, sorted; NotThere if one takes back what is not there.

    With a key a new row replaces the row of its key, as where state has expired and a group starts again.
    """
    rows: dict[Texts, list[Texts]] = {}
    for number, batch in enumerate(batches, 1):
        for change in batch:
            row = change.row
            same = rows.setdefault(row if key is None else tuple(row[k] for k in key), [])
            if change.kind in ("-U", "-D"):
                if row not in same:
                    raise NotThere(number, change)
                same.remove(row)
            else:
                same[:] = [row] if key is not None else [*same, row]
    return sorted(row for same in rows.values() for row in same)
