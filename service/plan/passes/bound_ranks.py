"""Conditions on the rank of a row become the bounds of the Top-N that numbers it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from service.plan.expressions import Call, Column, Expression, Literal
from service.plan.nodes import MOST, Filter, Job, Node, Project, TopN
from service.plan.passes.push_filters import both, conjuncts
from service.plan.passes.rank_stacks import bounded_stack, stack_of
from service.plan.walk import fields, rewrite

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


class Bound(NamedTuple):
    """The ranks that a condition on one column lets pass; None = without an upper bound. `exact` says that the
    condition asks for nothing else."""

    column: int
    first: int
    last: int | None
    exact: bool = True


def bound_ranks(job: Job) -> Job:
    """Move the bounds of ranks into the Top-N below each filter, through projections and other filters.

    A filter reads its own copy of what is below it, so that a view read with several bounds is ranked once for each.

    >>> from tests.sql.outline import shown
    >>> ranked = "SELECT who, ROW_NUMBER() OVER (PARTITION BY who ORDER BY amount DESC) AS n FROM pay"
    >>> print(shown(f"SELECT * FROM ({ranked}) WHERE n <= 3"))
    project who, n
      filter (n <= 3)
        project who, ROW_NUMBER()
          top by (who) order by amount desc
            scan pay
    >>> print(shown(f"SELECT * FROM ({ranked}) WHERE n <= 3", bound_ranks))
    project who, n
      project who, ROW_NUMBER()
        top 3 by (who) order by amount desc
          scan pay
    """
    return rewrite(job, lambda node, _: absorb_rank(node) if isinstance(node, Filter) else node)


def absorb_rank(node: Filter) -> Node:
    """Return what is below a filter with its bounds of ranks, and what else it asks for; the same node where it has
    none."""
    below = node.input
    left: list[Expression] = []
    for each in conjuncts(node.condition):
        bound = _bound(each)
        bounded = None if bound is None else _bounded(below, bound)
        if bound is None or bounded is None or not bounded.exact:
            left.append(each)
        below = below if bounded is None else bounded.node
    condition = both(left)
    if condition is None:
        return below
    return node if below is node.input else replace(node, input=below, condition=condition)


class _Bounded(NamedTuple):
    """A node with a bound in it; `exact` says that it does all that the condition asks for."""

    node: Node
    exact: bool


def _bounded(node: Node, bound: Bound) -> _Bounded | None:
    """`node` with the bound in the Top-N that makes the column; None if none does."""
    match node:
        case TopN() if len(stack := stack_of(node)) > 1:
            # A lowest rank would leave out rows that the others count.
            found = None if bound.last is None else bounded_stack(stack, bound.column, bound.last)
            return None if found is None else _Bounded(found, bound.exact and bound.first == 1)
        case TopN(shown=True) if bound.column == len(fields(node.input)) and not node.function.of_all:
            lasts = [last for last in (node.last, bound.last) if last is not None]
            first = max(node.first, bound.first)
            return _Bounded(replace(node, first=first, last=min(lasts, default=None)), bound.exact)
        case Project(expressions=expressions):
            made = expressions[bound.column]
            below = _bounded(node.input, bound._replace(column=made.index)) if isinstance(made, Column) else None
        case Filter():
            below = _bounded(node.input, bound)
        case _:
            below = None
    return None if below is None else below._replace(node=_upon(node, below.node))


def _upon(node: Node, below: Node) -> Node:
    """The projection or filter `node` over another input."""
    assert isinstance(node, Project | Filter)
    return replace(node, input=below)


def _bound(condition: Expression) -> Bound | None:
    match condition:
        case Call(name=name, arguments=(Column(index), Literal() as value)) if name in _MIRRORED:
            return _compared(index, name, value)
        case Call(name=name, arguments=(Literal() as value, Column(index))) if name in _MIRRORED:
            return _compared(index, _MIRRORED[name], value)
        case Call(name="BETWEEN", arguments=(Column(index), Literal() as low, Literal() as high)):
            first, last = _whole(low), _whole(high)
            return None if first is None or last is None else Bound(index, first, last)
        case Call(name="IN", arguments=(Column(index), *listed)):
            numbers = [_whole(each) for each in listed if isinstance(each, Literal)]
            known = [number for number in numbers if number is not None]
            return Bound(index, min(known), max(known), exact=False) if len(known) == len(listed) else None
        case _:
            return None


def _compared(column: int, operator: str, value: Literal) -> Bound | None:
    number = _whole(value)
    if number is None:
        return None
    match operator:
        case "<":
            return Bound(column, 1, number - 1)
        case "<=":
            return Bound(column, 1, number)
        case ">":
            return Bound(column, number + 1, None)
        case ">=":
            return Bound(column, number, None)
        case _:
            return Bound(column, number, number)


def _whole(value: Literal) -> int | None:
    """The whole number that a literal is, if it is one."""
    return int(value.text) if value.text.isdigit() and int(value.text) <= MOST else None
