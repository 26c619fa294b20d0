"""Relations with hidden columns behind their own, from which the origin of each row is computed."""

from __future__ import annotations

from typing import NamedTuple

from service.plan.expressions import Call, Column, Expression, columns_of, moved
from service.plan.nodes import Field, Node, Project
from service.plan.types import STRING
from service.plan.walk import fields


class Wide(NamedTuple):
    """A relation with hidden columns behind its own, and the origin of its rows: a text over its columns, of which a
    window's start is no hidden one."""

    node: Node
    origin: Expression


class Hidden(NamedTuple):
    """Columns behind those of a relation, and their fields."""

    columns: tuple[Column, ...]
    fields: tuple[Field, ...]

    def and_own(self, wide: Wide) -> Hidden:
        """Return these columns, and those of `wide` itself that its origin reads, which a projection may not keep."""
        hidden, of = {c.index for c in self.columns}, fields(wide.node)
        own = sorted(set(columns_of(wide.origin)) - hidden)
        columns = tuple(Column(i, of[i].type, of[i].name) for i in own)
        return Hidden((*self.columns, *columns), (*self.fields, *(of[i] for i in own)))


def hidden_columns(wide: Node, narrow: Node) -> Hidden:
    """Return the columns that `wide` has behind those of `narrow`."""
    width = len(fields(narrow))
    more = fields(wide)[width:]
    return Hidden(tuple(Column(width + i, f.type, f.name) for i, f in enumerate(more)), more)


def one_text(wide: Wide, narrow: Node, origin: Expression) -> Node:
    """Return the columns of `narrow`, and its origin as one more."""
    own = fields(narrow)
    columns = tuple(Column(i, f.type, f.name) for i, f in enumerate(own))
    return Project(
        input=wide.node,
        expressions=(*columns, origin),
        fields=(*own, Field("origin", STRING, nullable=False)),
        place=narrow.place,
    )


def beside_origin(condition: Expression | None, width: int, right: int) -> Expression | None:
    """Return the condition of a join of `width` and `right` columns whose left side has its origin behind them."""
    if condition is None:
        return None
    return moved(condition, {i: i if i < width else i + 1 for i in range(width + right)})


def origin_last(joined: Node, width: int) -> Wide:
    """Return a join whose left rows have their origin behind their `width` columns, with it behind all others.

    >>> from tests.sql.outline import plan
    >>> [field.name for field in fields(origin_last(plan("SELECT who, id AS origin, ts FROM pay"), 1).node)]
    ['who', 'ts', 'origin']
    """
    last = len(fields(joined)) - 1
    if width < last:
        joined = picked(joined, [*range(width), *range(width + 1, last + 1), width])
    return Wide(joined, Column(last, STRING, "origin"))


def narrowed(wide: Node, narrow: Node) -> Node:
    """Return `wide` with the columns of `narrow` alone."""
    return picked(wide, list(range(len(fields(narrow)))))


def picked(node: Node, places: list[int]) -> Node:
    """Return the columns of `node` at `places`."""
    own = fields(node)
    chosen = tuple(own[i] for i in places)
    columns = tuple(Column(i, own[i].type, own[i].name) for i in places)
    return Project(input=node, expressions=columns, fields=chosen, place=node.place)


def text_of(parts: list[Expression]) -> Expression:
    """Return one text of several parts, of which a padded row lacks some."""
    places = ", ".join(f"coalesce(CAST({{{i}}} AS VARCHAR), '')" for i in range(len(parts)))
    return Call("origin", tuple(parts), STRING, f"concat_ws('/', {places})")
