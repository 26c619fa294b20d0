"""The sources of a plan: tables, constant rows, and the last rows of an upsert stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.plan.expressions import Expression
from service.plan.nodes.relation import NOWHERE, Field, Place, check, check_positions
from service.plan.table import Table

if TYPE_CHECKING:
    from service.plan.nodes import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Rows of a source table: the declared columns at `columns`, in that order, computed ones included.

    The plan's `Scan` already is the decoded table with its watermark; an upsert source or a keyed CDC source that may
    repeat itself has a `Normalize` on top.
    """

    table: Table
    columns: tuple[int, ...]
    fields: tuple[Field, ...]
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        check(len(self.columns) == len(self.fields), self, "has one field for each column that it reads")


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Constant rows (VALUES), each row a tuple of constant expressions; append-only, emitted once."""

    rows: tuple[tuple[Expression, ...], ...]
    fields: tuple[Field, ...]
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        check(all(len(row) == len(self.fields) for row in self.rows), self, "has one expression a field in every row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalize:
    """The last row of each `key` of an upsert stream, as a retracting relation."""

    input: Node
    key: tuple[int, ...]
    ttl: int = 0
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        check_positions(self, self.input.fields, self.key)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns of its input."""
        return self.input.fields
