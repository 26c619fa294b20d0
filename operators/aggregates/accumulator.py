"""Accumulators: small sets of columns that are computed from some rows and combined with those of other rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from operators.sql_text import all_named, every, of_those


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulator:
    """Columns of partial results. `create` computes them from rows; `combine` from columns {0}, {1}, ... of many
    partials; `merge` from {a0}, {a1}, ... of the stored result (NULL if there is none) and {b0}, {b1}, ... of the new
    one."""

    create: tuple[str, ...]
    combine: tuple[str, ...]
    merge: tuple[str, ...]
    types: tuple[pa.DataType, ...]


@dataclass(frozen=True, slots=True)
class PlacedAccumulator:
    """An accumulator and the names of its columns."""

    accumulator: Accumulator
    names: tuple[str, ...]

    def create(self) -> Iterable[str]:
        """Return the SELECT items that compute the columns from rows."""
        return all_named(self.accumulator.create, self.names)

    def combine(self) -> Iterable[str]:
        """Return the SELECT items that combine the columns of many partials."""
        return all_named((text.format(*self.names) for text in self.accumulator.combine), self.names)

    def merge(self, before: str) -> Iterable[str]:
        """Return what is kept after the columns named like this accumulator's are merged to those that begin with
        `before`."""
        sides = {f"a{i}": before + name for i, name in enumerate(self.names)}
        sides |= {f"b{i}": name for i, name in enumerate(self.names)}
        return all_named((text.format(**sides) for text in self.accumulator.merge), self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """The argument of an aggregate: DuckDB text `x` of type `type` (None for COUNT(*)), where `filter` is true.

    In an append-only input all weights are 1 and are not read. `over` is the window that accumulators are created in,
    if any; in a window equal values may count once (`distinct`). `order` stands behind the values of an aggregate in
    which their order matters, where the window leaves it open. `number` is the column that numbers rows by their
    arrival, where partials are put together in any order.
    """

    x: str | None
    type: pa.DataType | None
    filter: str | None
    append: bool
    constants: tuple[str, ...] = ()
    over: str = ""
    distinct: bool = False
    order: str = ""
    number: str = ""

    def where(self, *conditions: str) -> str:
        """Return the text after an aggregate's arguments: the FILTER clause, with further conditions, and the
        window."""
        condition = every([self.filter, *conditions])
        return (f" FILTER (WHERE {condition})" if condition else "") + self.over

    def call(self, function: str, text: str, *conditions: str) -> str:
        """Return the call of an aggregate that passes NULL over, of `text` in the rows that `where` stands for."""
        if self.over or self.distinct:
            return f"{function}({self.taken(text)}){self.where(*conditions)}"
        return of_those(function, text, every([self.filter, *conditions]))

    def taken(self, text: str) -> str:
        """Return the argument in the form that DuckDB's aggregates take."""
        return f"DISTINCT {text}" if self.distinct else text

    @property
    def text(self) -> str:
        """The argument of an aggregate that has one."""
        if self.x is None:
            raise TypeError("this aggregate needs an argument")
        return self.x
