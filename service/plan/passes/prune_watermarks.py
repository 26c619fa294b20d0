"""Remove watermarks that no event-time operator reads, so that their columns need not be decoded."""

from __future__ import annotations

from dataclasses import replace

from service.plan.nodes import (
    CountShape,
    IntervalJoin,
    Job,
    Node,
    Over,
    Scan,
    Session,
    StreamWindow,
    TemporalJoin,
    TimeSort,
    TopN,
    WindowAggregate,
    WindowJoin,
    WindowRows,
)
from service.plan.table import TimeKind
from service.plan.walk import fields, in_order, inputs, rewrite


def prune_watermarks(job: Job) -> Job:
    """Drop the watermark of every table of which only rows are asked, not how far time has come.

    >>> from tests.sql.outline import resolved
    >>> [scan] = [n for n in in_order(prune_watermarks(resolved("SELECT id FROM pay")).sinks) if isinstance(n, Scan)]
    >>> print(scan.table.watermark)
    None
    """
    nodes = in_order(job.sinks)
    waited_for: set[int] = set()
    for node in reversed(nodes):
        if id(node) in waited_for or _waits(node):
            waited_for.update(id(i) for i in inputs(node))
    tables = {id(n.table) for n in nodes if isinstance(n, Scan) and id(n) in waited_for}

    def rule(node: Node, _: tuple[bool, ...]) -> Node:
        if isinstance(node, Scan) and id(node.table) not in tables and node.table.watermark is not None:
            return replace(node, table=replace(node.table, watermark=None))
        return node

    return rewrite(job, rule)


def _waits(node: Node) -> bool:
    """Whether `node` acts on the watermark."""
    match node:
        case WindowAggregate() | WindowRows(window=Session()) | Over() | TimeSort():
            return fields(node.input)[node.time].time is not TimeKind.PROCESSING
        case TopN(window_time=int(time)):
            return fields(node.input)[time].time is not TimeKind.PROCESSING
        case StreamWindow():
            return node.time is not None and not isinstance(node.shape, CountShape)
        case IntervalJoin() | WindowJoin():
            return fields(node.left)[node.left_time].time is not TimeKind.PROCESSING
        case TemporalJoin(right_time=time):
            return time is not None
        case _:
            return False
