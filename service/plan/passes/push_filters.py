"""Filters move towards the sources: rows that nobody will see are dropped before they are moved, kept or counted.

A filter passes a node when the node would treat the remaining rows just the same: a condition on the keys of a group
drops whole groups, one on a join's preserved side drops that side's rows with everything they pad. A condition that a
sink enforces is about the rows that reach it, and passes only what works row by row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from service.plan.expressions import Call, Expression, balanced, columns_of, deterministic, enforces, moved, substituted
from service.plan.nodes import (
    Aggregate,
    AnyJoin,
    Filter,
    IntervalJoin,
    Job,
    Join,
    JoinKind,
    LookupJoin,
    Node,
    Normalize,
    Over,
    Project,
    TemporalJoin,
    TimeSort,
    TopN,
    Union,
    Unnest,
    WindowAggregate,
    WindowJoin,
)
from service.plan.types import BOOLEAN
from service.plan.walk import fields, rewrite


def push_filters(job: Job) -> Job:
    """Push every filter as far down as it goes; it stops above what others read too.

    >>> from tests.sql.outline import shown
    >>> print(shown("SELECT a1, b2 FROM a JOIN b ON a1 = b1 WHERE a2 > 1 AND b2 > 2", push_filters))
    project a1, b2
      inner join a1 = b1
        filter (a2 > 1)
          scan a
        filter (b2 > 2)
          scan b
    """

    def step(node: Node, alone: tuple[bool, ...]) -> Node:
        return _push(node) if isinstance(node, Filter) and alone[0] else node

    while True:
        moved_on = rewrite(job, step)
        if all(a.input is b.input for a, b in zip(job.sinks, moved_on.sinks, strict=True)):
            return job
        job = moved_on


def conjuncts(condition: Expression) -> tuple[Expression, ...]:
    """Return the conditions that `condition` joins by AND."""
    if isinstance(condition, Call) and condition.name == "AND":
        return tuple(c for a in condition.arguments for c in conjuncts(a))
    return (condition,)


def both(conditions: Iterable[Expression]) -> Expression | None:
    """Return one condition from several; a later one is evaluated only where those before it hold, as written."""
    every = list(conditions)
    return balanced(every, _and_then) if every else None


def _and_then(first: Expression, second: Expression) -> Expression:
    return Call("AND", (first, second), BOOLEAN, "CASE WHEN {0} THEN {1} ELSE false END")


def _push(node: Filter) -> Node:
    """One step down; the very same node where it can go no further."""
    below = node.input
    match below:
        case Filter():
            merged = both((*conjuncts(below.condition), *conjuncts(node.condition)))
            assert merged is not None
            return replace(node, input=below.input, condition=merged)
        case Project(expressions=expressions) if _passes_projection(node.condition, expressions):
            inside = substituted(node.condition, expressions)
            return replace(below, input=replace(node, input=below.input, condition=inside))
        case Unnest():
            return _through(node, below, {i: i for i in range(len(fields(below.input)))})
        case TimeSort() if _sorts_alike(node.condition):
            return replace(below, input=replace(node, input=below.input))
        case Union():
            return replace(below, inputs=tuple(replace(node, input=i) for i in below.inputs))
        case Aggregate(keys=keys) | WindowAggregate(keys=keys):
            return _through(node, below, dict(enumerate(keys)))
        case Over(partition=partition) | TopN(partition=partition):
            return _through(node, below, {i: i for i in partition})
        case Normalize(key=key):
            return _through(node, below, {i: i for i in key})
        case Join() | IntervalJoin() | WindowJoin() | TemporalJoin() | LookupJoin():
            return _into_join(node, below)
        case _:
            return node


def _passes_projection(condition: Expression, expressions: tuple[Expression, ...]) -> bool:
    return deterministic(condition) and all(deterministic(expressions[i]) for i in columns_of(condition))


def _sorts_alike(condition: Expression) -> bool:
    """Whether rows can be filtered ahead of a sort, which holds them back."""
    return deterministic(condition) and not enforces(condition) and not _asks_proctime(condition)


def _asks_proctime(expression: Expression) -> bool:
    """Whether a condition asks for the time at which a row comes out."""
    if not isinstance(expression, Call):
        return False
    return expression.name == "PROCTIME" or any(map(_asks_proctime, expression.arguments))


def _through(
    node: Filter, below: Aggregate | WindowAggregate | Over | TopN | Unnest | Normalize, places: dict[int, int]
) -> Node:
    """The part of the filter that reads only columns at `places` moves under `below`, to the places they have there."""
    under, over = _split(conjuncts(node.condition), set(places))
    if isinstance(below, WindowAggregate | Over | TopN) and any(map(_asks_proctime, under)):
        return node  # rows come out later than they came
    if not under or not places:
        return node
    condition = both(moved(c, places) for c in under)
    assert condition is not None
    pushed = replace(below, input=Filter(input=below.input, condition=condition, place=node.place))
    return _remaining(node, pushed, over)


def _into_join(node: Filter, below: AnyJoin) -> Node:
    width = len(fields(below.left))
    left_side = set(range(width))
    right_side = set(range(width, width + len(fields(below.right))))
    written = conjuncts(node.condition)
    # Rows of these joins come out later than they came: the time of that is not known before.
    holds = isinstance(below, IntervalJoin | WindowJoin | TemporalJoin)
    stays = [c for c in written if holds and _asks_proctime(c)]
    rest = tuple(c for c in written if c not in stays)
    left, right = below.left, below.right
    if below.kind in (JoinKind.INNER, JoinKind.LEFT) or not below.kind.shows_right:
        found, rest = _split(rest, left_side)
        left = _filtered(left, found, node)
    # A version that is left out would leave the one before it in force, and a table that is looked up stays a table.
    if below.kind in (JoinKind.INNER, JoinKind.RIGHT) and not isinstance(below, TemporalJoin | LookupJoin):
        found, rest = _split(rest, right_side)
        right = _filtered(right, tuple(moved(c, {i: i - width for i in right_side}) for c in found), node)
    if left is below.left and right is below.right:
        return node
    left_over = tuple(c for c in written if c in stays or c in rest)
    return _remaining(node, replace(below, left=left, right=right), left_over)


def _filtered(node: Node, conditions: tuple[Expression, ...], source: Filter) -> Node:
    condition = both(conditions)
    return node if condition is None else Filter(input=node, condition=condition, place=source.place)


def _split(
    conditions: tuple[Expression, ...], columns: set[int]
) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    """The conditions that read only `columns`, and may stand there, and the others."""
    under: list[Expression] = []
    over: list[Expression] = []
    for each in conditions:
        reads = set(columns_of(each))
        moves = bool(reads) and reads <= columns and deterministic(each) and not enforces(each)
        (under if moves else over).append(each)
    return tuple(under), tuple(over)


def _remaining(node: Filter, pushed: Node, conditions: tuple[Expression, ...]) -> Node:
    condition = both(conditions)
    return pushed if condition is None else replace(node, input=pushed, condition=condition)
