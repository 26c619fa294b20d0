"""Nodes that work row by row and keep no state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.plan.expressions import Expression
from service.plan.nodes.relation import NOWHERE, Field, Place, check, check_positions

if TYPE_CHECKING:
    from service.plan.nodes import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """One expression a field over the input's columns. A plain column keeps its time attribute. `places` are those of
    the expressions, as far as they are known."""

    input: Node
    expressions: tuple[Expression, ...]
    fields: tuple[Field, ...]
    place: Place = NOWHERE
    places: tuple[Place, ...] = ()

    def __post_init__(self) -> None:
        check(len(self.expressions) == len(self.fields), self, "has one expression a field")

    def place_of(self, position: int) -> Place:
        """Return the place of the expression at `position`."""
        return self.places[position] if len(self.places) == len(self.expressions) else self.place


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The rows for which `condition` is true."""

    input: Node
    condition: Expression
    place: Place = NOWHERE

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns of its input."""
        return self.input.fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Unnest:
    """Each row once for each element of the ARRAY, or entry of the MAP, at `column`; with `outer` once at least.

    Fields: the input's, then those of an element that is a ROW, the key and the value of an entry, or else the element
    itself, then its place from 1 with `ordinality`.
    """

    input: Node
    column: int
    ordinality: bool
    outer: bool
    fields: tuple[Field, ...]
    place: Place = NOWHERE

    def __post_init__(self) -> None:
        check_positions(self, self.input.fields, (self.column,))

    @property
    def added(self) -> int:
        """The number of columns that it adds."""
        return len(self.fields) - len(self.input.fields)
