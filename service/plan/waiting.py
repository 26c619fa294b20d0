"""The tables that wait for others: those whose rows are joined, in processing time, with another table's contents.

Law: a temporal join in processing time that waits reads none of its left tables before its right ones have been read to
where they ended when the job was first started. A table that is on both sides cannot wait for itself, and does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from service.plan.nodes import Job, Node, Scan, TemporalJoin
from service.plan.walk import in_order, inputs


def awaited(job: Job) -> list[tuple[Scan, tuple[Scan, ...]]]:
    """Return each table that waits, and the tables that it waits for, in the order of the plan."""
    found: dict[int, tuple[Scan, list[Scan]]] = {}
    for join in waiting_joins(job):
        tables = list(_topics(in_order([join.right])))
        for scan in _topics(_bringing(join.left)):
            others = [table for table in tables if table is not scan]
            known = found.setdefault(id(scan), (scan, []))[1]
            known += [table for table in others if all(table is not each for each in known)]
    return [(scan, tuple(tables)) for scan, tables in found.values() if tables]


def waiting_joins(job: Job) -> Iterator[TemporalJoin]:
    """Yield the temporal joins whose rows wait until their table has been read."""
    for node in in_order(job.sinks):
        if isinstance(node, TemporalJoin) and node.waits:
            yield node


def _bringing(node: Node) -> Iterator[Node]:
    """What brings the rows of `node`: of a temporal join its left input, since versions bring none."""
    found, left = {id(node): node}, [node]
    while left:
        reader = left.pop()
        for each in (reader.left,) if isinstance(reader, TemporalJoin) else inputs(reader):
            if id(each) not in found:
                found[id(each)] = each
                left.append(each)
    return iter(found.values())


def _topics(nodes: Iterable[Node]) -> Iterator[Scan]:
    """The tables that are read from Kafka: others have no end that is known, or are not read."""
    for each in nodes:
        if isinstance(each, Scan) and each.table.connector.kind in ("kafka", "upsert-kafka"):
            yield each
