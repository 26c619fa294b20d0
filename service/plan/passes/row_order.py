"""In which order rows of one time are, where OVER windows of different partitions follow one another."""

from __future__ import annotations

from collections.abc import Sequence

from operators.aggregates.functions import follows_arrival
from service.plan.expressions import Call, Column, Expression
from service.plan.nodes import NOT_AGGREGATES, Field, Filter, Node, Over, OverCall, Project
from service.plan.types import STRING
from service.plan.walk import fields

_PART = "printf('%04d', length(p)) || p"
_NATURAL = f"list_aggregate(list_transform(string_split({{0}}, '/'), lambda p: {_PART}), 'string_agg', '/')"
"""A text of parts between slashes, of which those that are numbers of any length are in the order of the numbers."""


def apart(node: Over) -> list[Over]:
    """Return `node`, where the order of rows of one time matters to it, and those windows below it whose rows it reads,
    if not all have one partition; else none.

    >>> from service.plan.walk import in_order
    >>> from tests.sql.outline import plan
    >>> calls = "LAG(who) OVER (PARTITION BY who ORDER BY ts), LAG(who) OVER (ORDER BY ts)"
    >>> windows = [node for node in in_order([plan(f"SELECT {calls} FROM pay")]) if isinstance(node, Over)]
    >>> [len(apart(node)) for node in windows]
    [0, 2]
    """
    if not any(_in_order(call) for call in node.calls):
        return []
    found, below, differs = [node], node.input, False
    places: list[int | None] = list(node.partition)
    while True:
        match below:
            case Filter():
                below = below.input
            case Project(expressions=expressions):
                places = [None if p is None else _column(expressions[p]) for p in places]
                below = below.input
            case Over():
                differs |= set(places) != set(below.partition)
                found.append(below)
                width = len(fields(below.input))
                places = [p if p is not None and p < width else None for p in places]
                below = below.input
            case _:
                return found if differs else []


def _in_order(call: OverCall) -> bool:
    """Whether rows of one time are told apart: not by aggregates, or numbers, of all rows up to a time."""
    if call.function in ("RANK", "DENSE_RANK"):
        return False
    return (
        call.frame.rows
        or call.function in NOT_AGGREGATES
        or follows_arrival(call.function, distinct=call.distinct, append=True)
    )


def _column(expression: Expression) -> int | None:
    return expression.index if isinstance(expression, Column) else None


def with_order(node: Node, origin: Sequence[Column]) -> Node:
    """Return `node`, whose last columns are the `origin` of its rows, with what orders them: these themselves, or where
    they are texts, as many columns more."""
    if not any(column.name == "origin" for column in origin):
        return node
    own = fields(node)
    columns = tuple(Column(i, f.type, f.name) for i, f in enumerate(own))
    order = tuple(
        Call("order", (c,), STRING, _NATURAL) if c.name == "origin" else c for c in columns[len(own) - len(origin) :]
    )
    return Project(
        input=node,
        expressions=(*columns, *order),
        fields=(*own, *(Field("order", o.type) for o in order)),
        place=node.place,
    )
