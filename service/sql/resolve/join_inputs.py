"""The inputs of a join with a column for every key, and the residual condition moved along."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from service.plan.expressions import Column, Expression, columns_of, moved
from service.plan.nodes import Place
from service.plan.passes.push_filters import both
from service.sql.resolve.join_conditions import Conditions
from service.sql.resolve.relation import Relation, extended


@dataclass(frozen=True, slots=True)
class Keyed:
    """Both inputs with their keys as columns, and the residual condition over these inputs."""

    left: Relation
    right: Relation
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    residual: Expression | None

    @staticmethod
    def of(left: Relation, right: Relation, found: Conditions, rest: list[Expression], place: Place) -> Keyed:
        """Return both inputs with a column for each key, and what is left of the condition: its `rest`."""
        wide_left, left_keys = _with_keys(left, [k[0] for k in found.keys], place)
        wide_right, right_keys = _with_keys(right, [k[1] for k in found.keys], place)
        added = len(wide_left.scope) - len(left.scope)
        residual = both(shifted(c, len(left.scope), added) for c in rest)
        return Keyed(wide_left, wide_right, left_keys, right_keys, residual)


def _with_keys(relation: Relation, keys: Iterable[Expression], place: Place) -> tuple[Relation, tuple[int, ...]]:
    """The relation with a column for each key that is not one already, and the positions of all keys."""
    added: list[Expression] = []
    places: list[int] = []
    for key in keys:
        if isinstance(key, Column):
            places.append(key.index)
            continue
        places.append(len(relation.scope) + len(added))
        added.append(key)
    return extended(relation, added, place), tuple(places)


def shifted(condition: Expression, width: int, by: int) -> Expression:
    """Return `condition` over joined columns, after `by` columns came behind the `width` ones of the left input."""
    if not by:
        return condition
    return moved(condition, {i: i + by if i >= width else i for i in columns_of(condition)})
