"""Ranks in one order of the same rows, one Top-N upon the other: a bound of one bounds what the others read.

Law: the first rows in an order are ranked among themselves as they are among all rows, by each of ROW_NUMBER, RANK and
DENSE_RANK in that order. So the rank with a bound is the lowest of the stack, and the others read few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.plan.expressions import Column, Expression
from service.plan.nodes import MOST, Node, Project, RankFunction, TopN
from service.plan.walk import fields

_LEAST_FIRST = (RankFunction.DENSE_RANK, RankFunction.RANK, RankFunction.ROW_NUMBER)
"""The ranks of a row, which rise in this order."""


def stack_of(top: TopN) -> list[TopN]:
    """Return the ranks of one order that stand upon each other, the lowest first."""
    stack = [top]
    while isinstance(below := stack[-1].input, TopN) and stack[-1].ranks_like(below):
        stack.append(below)
    return stack[::-1]


def bounded_stack(stack: Sequence[TopN], column: int, last: int) -> Node | None:
    """Return a stack of ranks, lowest first, with only the rows up to the rank `last` in `column`; None where that is
    no rank of it.

    >>> from service.plan.passes.bound_ranks import bound_ranks
    >>> from tests.sql.outline import shown
    >>> both = "SELECT who, ROW_NUMBER() OVER w AS n, RANK() OVER w AS r FROM pay WINDOW w AS (ORDER BY id)"
    >>> print(shown(f"SELECT who FROM ({both}) WHERE r <= 3", bound_ranks))
    project who
      project who, ROW_NUMBER(), RANK()
        project who, amount, id, ts, at, ROW_NUMBER(), RANK()
          top of all rows order by id
            RANK 1 to 3 of all rows order by id
              scan pay
    """
    rows, top = stack[0].input, stack[-1]
    width = len(fields(rows))
    asked = column - width
    if not 0 <= asked < len(stack):
        return None
    known = stack[asked].last
    if known is not None and known <= last:
        return top
    bounds = [last if i == asked else rank.last for i, rank in enumerate(stack)]
    bounded = [i for i, bound in enumerate(bounds) if bound is not None]
    lowest = max(bounded, key=lambda i: _LEAST_FIRST.index(stack[i].function))
    order = [lowest, *(i for i in range(len(stack)) if i != lowest)]
    node = rows
    for i in order:
        own, bound = stack[i], bounds[i]
        if bound is None:
            least = _LEAST_FIRST.index(own.function) <= _LEAST_FIRST.index(stack[lowest].function)
            bound = bounds[lowest] if least else MOST
        node = replace(own, input=node, last=bound, fields=(*fields(node), own.fields[-1]))
    if order == list(range(len(stack))):
        return node
    places = [*range(width), *(width + order.index(i) for i in range(len(stack)))]
    expressions: tuple[Expression, ...] = tuple(
        Column(place, field.type, field.name) for place, field in zip(places, top.fields, strict=True)
    )
    return Project(input=node, expressions=expressions, fields=top.fields, place=top.place)
