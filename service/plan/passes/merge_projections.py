"""A projection of a projection becomes one; one that changes nothing disappears."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from service.plan.expressions import Call, Column, Expression, columns_of, deterministic, substituted
from service.plan.nodes import Job, Node, Place, Project
from service.plan.walk import fields, rewrite

_GROWTH = 4
"""A merged projection may be this many times larger than the two it replaces, before it is left alone."""


def merge_projections(job: Job) -> Job:
    """Merge each projection into the one that reads it, unless others read it too.

    >>> from tests.sql.outline import shown
    >>> print(shown("SELECT x + 1 AS y FROM (SELECT a1 * 2 AS x FROM a)", merge_projections))
    project ((a1 * 2) + 1)
      scan a
    """

    def rule(node: Node, alone: tuple[bool, ...]) -> Node:
        if not isinstance(node, Project):
            return node
        inner = node.input
        if alone[0] and isinstance(inner, Project) and _may_merge(node, inner):
            merged = tuple(substituted(e, inner.expressions) for e in node.expressions)
            node = replace(node, input=inner.input, expressions=merged, places=_places(node, inner))
        return node.input if _changes_nothing(node) else node

    return rewrite(job, rule)


def size(expression: Expression) -> int:
    """Return how many calls `expression` makes."""
    match expression:
        case Call(arguments=arguments):
            return 1 + sum(size(a) for a in arguments)
        case _:
            return 0


def _may_merge(outer: Project, inner: Project) -> bool:
    uses = Counter(i for e in outer.expressions for i in columns_of(e))
    if not all(deterministic(inner.expressions[i]) for i in uses):
        return False
    before = sum(map(size, outer.expressions)) + sum(map(size, inner.expressions))
    after = sum(map(size, outer.expressions)) + sum(n * size(inner.expressions[i]) for i, n in uses.items())
    return after <= _GROWTH * before


def _places(outer: Project, inner: Project) -> tuple[Place, ...]:
    """Where the expressions of both were written: what the outer one passes on, in the inner one."""
    if not outer.places and not inner.places:
        return ()
    return tuple(
        inner.place_of(e.index) if isinstance(e, Column) and inner.places else outer.place_of(position)
        for position, e in enumerate(outer.expressions)
    )


def _changes_nothing(node: Project) -> bool:
    """Every column of the input, in its place, under whatever name; but a time attribute that ends here ends."""
    below = fields(node.input)
    return len(below) == len(node.expressions) and all(
        isinstance(e, Column) and e.index == i and node.fields[i].time is below[i].time
        for i, e in enumerate(node.expressions)
    )
