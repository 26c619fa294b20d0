"""In which order rows of one time are, where OVER windows of different partitions follow one another.

Each hands its rows on from shards of its own key, so that those of one time arrive at the next in another order for
each number of shards and each cut of the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from operators.aggregates.functions import follows_arrival
from service.plan.expressions import Call, Column, Expression
from service.plan.nodes import NOT_AGGREGATES, Field, Filter, Job, Node, Over, OverCall, Project
from service.plan.table import TimeKind
from service.plan.types import STRING, Array, DataType, Interval, Map, Row
from service.plan.walk import fields, in_order, inputs, with_inputs

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


def ordered_windows(nodes: Iterable[Node]) -> frozenset[int]:
    """Return the ids of the windows among `nodes` to which the order of rows of one time matters (`apart`)."""
    return frozenset(id(over) for node in nodes if isinstance(node, Over) for over in apart(node))


def order_by_values(job: Job) -> Job:
    """Let rows of one time be in the order of their values, where windows of different partitions follow one another
    and the rows have no records to be ordered by: of the columns that the query reads, from the first to the last.

    >>> from tests.sql.outline import resolved
    >>> def ties(query: str) -> list[tuple[int, ...]]:
    ...     return [n.ties for n in in_order(order_by_values(resolved(query)).sinks) if isinstance(n, Over)]
    >>> ties("SELECT LAG(name) OVER (PARTITION BY name ORDER BY ts) FROM shelf")
    [()]
    >>> ties("SELECT LAG(name) OVER (PARTITION BY name ORDER BY ts), LAG(name) OVER (ORDER BY ts) FROM shelf")
    [(0, 1, 2), (0, 1, 2, 3)]
    """
    nodes = in_order(job.sinks)
    ordered = ordered_windows(nodes)
    if not ordered:
        return job
    done: dict[int, Node] = {}
    for node in nodes:
        new = with_inputs(node, tuple(done[id(each)] for each in inputs(node)))
        if isinstance(new, Over) and id(node) in ordered and not new.ties and _of_event_time(new):
            new = replace(new, ties=tuple(i for i, f in enumerate(fields(new.input)) if not _unordered(f.type)))
        done[id(node)] = new
    return replace(job, sinks=tuple(replace(sink, input=done[id(sink.input)]) for sink in job.sinks))


def _of_event_time(node: Over) -> bool:
    return fields(node.input)[node.time].time is TimeKind.EVENT


def _unordered(type_: DataType) -> bool:
    """Whether Arrow cannot sort values of a type."""
    return isinstance(type_, Array | Map | Row | Interval)


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
