"""Joins over inputs that have lost columns.

A join keeps rows without their weights, and an Arrow table without columns forgets how many rows it has; so an input of
a join of which nothing is read gets one constant column. Its rows are then equal, and are kept as one with its count.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, assert_never

from service.plan.expressions import Literal, moved
from service.plan.nodes import (
    AnyJoin,
    Field,
    IntervalJoin,
    Join,
    JoinKind,
    LookupJoin,
    PairJoin,
    Project,
    TemporalJoin,
    WindowJoin,
)
from service.plan.passes.pruning.places import Pruned, at
from service.plan.types import BOOLEAN
from service.plan.walk import fields, shows_right

_ANY_ROW = Literal("true", BOOLEAN, "TRUE")
"""The column of a relation whose rows are only counted."""


def narrowed_join(node: AnyJoin, left: Pruned, right: Pruned) -> Pruned:
    """Return a join over what is left of both inputs."""
    left, right = _with_a_column(left), _with_a_column(right)
    width, narrow_width = len(fields(node.left)), len(fields(left.node))
    both = {**left.places, **{width + i: narrow_width + p for i, p in right.places.items()}}
    shown = both if shows_right(node) else left.places
    if node.kind is JoinKind.MARK:
        shown = {**shown, width: narrow_width}
    new = replace(
        node,
        left=left.node,
        right=right.node,
        left_keys=at(node.left_keys, left.places),
        right_keys=at(node.right_keys, right.places),
        residual=None if node.residual is None else moved(node.residual, both),
        fields=_joined_fields(node, left, right),
        **_times(node, left, right),
    )
    return Pruned(new, shown)


def narrowed_pair(node: PairJoin, left: Pruned, right: Pruned) -> Pruned:
    """Return the join of halves of rows over what is left of both."""
    width, narrow_width = len(fields(node.left)), len(fields(left.node))
    new = replace(
        node,
        left=left.node,
        right=right.node,
        left_keys=at(node.left_keys, left.places),
        right_keys=at(node.right_keys, right.places),
        fields=_joined_fields(node, left, right),
    )
    return Pruned(new, {**left.places, **{width + i: narrow_width + p for i, p in right.places.items()}})


def _times(node: AnyJoin, left: Pruned, right: Pruned) -> dict[str, Any]:
    """The positions of the times that a join compares."""
    match node:
        case IntervalJoin() | WindowJoin():
            return {"left_time": left.places[node.left_time], "right_time": right.places[node.right_time]}
        case TemporalJoin(left_time=arrival, right_time=time):
            return {
                "left_time": None if arrival is None else left.places.get(arrival),
                "right_time": None if time is None else right.places[time],
            }
        case Join() | LookupJoin():
            return {}
        case _:
            assert_never(node)


def _with_a_column(pruned: Pruned) -> Pruned:
    """The input of a join, with a constant column where it has none."""
    if fields(pruned.node):
        return pruned
    field = Field("", BOOLEAN, nullable=False)
    return Pruned(Project(input=pruned.node, expressions=(_ANY_ROW,), fields=(field,)), pruned.places)


def _joined_fields(node: AnyJoin | PairJoin, left: Pruned, right: Pruned) -> tuple[Field, ...]:
    """The fields of both inputs as the join shows them: of a side that it may pad they may be NULL."""
    width = len(fields(node.left))
    own = {p: node.fields[i] for i, p in left.places.items()}
    shown = [own.get(p, field) for p, field in enumerate(fields(left.node))]
    if shows_right(node):
        theirs = {p: node.fields[width + i] for i, p in right.places.items()}
        shown += [theirs.get(p, field) for p, field in enumerate(fields(right.node))]
    return (*shown, *((node.fields[-1],) if node.kind is JoinKind.MARK else ()))
