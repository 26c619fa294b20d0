"""A plan as a few lines of text, for tests: each node with what it was resolved to."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from service.plan.describe import headline
from service.plan.expression_text import describe
from service.plan.nodes import (
    Aggregate,
    AnyJoin,
    Field,
    Filter,
    IntervalJoin,
    Job,
    Join,
    LookupJoin,
    Node,
    Normalize,
    Over,
    PairJoin,
    Project,
    Scan,
    SetOperation,
    StreamWindow,
    TemporalJoin,
    TimeSort,
    TopN,
    Union,
    Unnest,
    Values,
    WindowAggregate,
    WindowJoin,
    WindowRows,
)
from service.plan.table import TimeKind
from service.plan.types import flink
from service.plan.walk import fields, inputs
from service.sql.pipeline import PipelineErrors, read

TABLES = """
CREATE TABLE pay (who STRING NOT NULL, amount DECIMAL(10, 2), id BIGINT, ts TIMESTAMP(3), at AS PROCTIME(),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH ('connector' = 'kafka', 'topic' = 'pay', 'properties.bootstrap.servers' = 'b', 'format' = 'json');
CREATE TABLE ship (pay_id INT, port STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'kafka', 'topic' = 'ship', 'properties.bootstrap.servers' = 'b', 'format' = 'json');
CREATE TABLE item (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH ('connector' = 'upsert-kafka',
  'topic' = 'item', 'properties.bootstrap.servers' = 'b', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE shelf (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'shelf', 'properties.bootstrap.servers' = 'b', 'key.format' = 'json',
  'value.format' = 'json');
CREATE TABLE a (a1 INT, a2 INT, a3 INT)
WITH ('connector' = 'kafka', 'topic' = 'a', 'properties.bootstrap.servers' = 'b', 'format' = 'json');
CREATE TABLE b (b1 INT, b2 INT, b3 STRING)
WITH ('connector' = 'kafka', 'topic' = 'b', 'properties.bootstrap.servers' = 'b', 'format' = 'json');
"""


def plan(query: str, before: str = "") -> Node:
    """The plan of a query over TABLES."""
    return resolved(query, before).sinks[0].input


def resolved(query: str, before: str = "") -> Job:
    """The job of a query over TABLES, before any pass."""
    return read(f"{TABLES}{before}\nEXPLAIN {query}").explains[0]


def shown(query: str, *passes: Callable[[Job], Job]) -> str:
    """The plan of a query over TABLES after some passes, as text: for examples of what a pass does."""
    job = resolved(query)
    for each in passes:
        job = each(job)
    return outline(job.sinks[0].input)


def mistakes(query: str, before: str = "") -> list[str]:
    """The mistakes of a query over TABLES, each as its lines after the place."""
    try:
        read(f"{TABLES}{before}\nEXPLAIN {query}")
    except PipelineErrors as errors:
        return [str(m).split(": ", 1)[1] for m in errors.mistakes]
    return []


def columns(node: Node) -> str:
    """Names and types of a relation's columns; ! = NOT NULL, * = a time attribute."""
    return ", ".join(map(_column, fields(node)))


def _column(field: Field) -> str:
    time = "" if field.time is TimeKind.NONE else f" *{field.time.value}"
    return f"{field.name} {flink(field.type)}{'' if field.nullable else '!'}{time}"


def outline(node: Node, depth: int = 0) -> str:
    """One line a node, inputs indented below."""
    lines = ["  " * depth + _line(node), *(outline(each, depth + 1) for each in inputs(node))]
    return "\n".join(lines)


def _line(node: Node) -> str:
    names = [f.name for each in inputs(node) for f in fields(each)]
    match node:
        case Scan(table=table):
            return f"scan {table.name}"
        case Values(rows=rows):
            return "values " + "; ".join(", ".join(map(describe, row)) for row in rows)
        case Normalize(key=key):
            return f"normalize {_named(names, key)}"
        case Project(expressions=expressions):
            return f"project {', '.join(map(describe, expressions))}"
        case Filter(condition=condition):
            return f"filter {describe(condition)}"
        case Union():
            return "union"
        case WindowRows(window=window, time=time, zone=zone):
            return f"rows of {window} on {names[time]} in {zone}"
        case WindowAggregate(window=window, time=time, keys=keys, aggregates=aggregates, zone=zone):
            calls = ", ".join(_call(names, c.function, c.arguments, c.distinct, c.filter) for c in aggregates)
            return f"{window} on {names[time]} in {zone} by {_named(names, keys)}: {calls}"
        case StreamWindow(shape=shape, keys=keys, aggregates=aggregates, partition=partition):
            calls = ", ".join(_call(names, c.function, c.arguments, c.distinct, c.filter) for c in aggregates)
            on = "arrival" if node.time is None else names[node.time]
            read = "".join(f" reading {names[c]}" for c in node.conditions)
            seen = "" if node.seen is None else f" where {names[node.seen]}"
            gives = "rows" if keys is None else f"by {_named(names, keys)}"
            return (
                f"{shape} on {on} over {_named(names, partition)}{read}{seen}: {gives}{' and ' if calls else ''}{calls}"
            )
        case Aggregate(keys=keys, aggregates=aggregates, ttl=ttl):
            calls = ", ".join(_call(names, c.function, c.arguments, c.distinct, c.filter) for c in aggregates)
            return f"group by {_named(names, keys)}{': ' if calls else ''}{calls}{_ttl(ttl)}"
        case Over(partition=partition, time=time, calls=over):
            calls = ", ".join(
                f"{_call(names, c.function, c.arguments, c.distinct, c.filter)} "
                f"{'rows' if c.frame.rows else 'range'} {c.frame.preceding}"
                f"{f' to {c.frame.following}' if c.frame.following else ''}"
                for c in over
            )
            return f"over {_named(names, partition)} on {names[time]}: {calls}"
        case TopN() | TimeSort() | Unnest():
            return headline(node)
        case SetOperation():
            return headline(node)
        case PairJoin():
            return headline(node)
        case Join() | IntervalJoin() | WindowJoin() | TemporalJoin() | LookupJoin():
            return _join(node)
        case _:
            assert_never(node)


def _join(node: AnyJoin) -> str:
    left, right = ([f.name for f in fields(each)] for each in (node.left, node.right))
    keys = " and ".join(
        f"{left[a]} {'is' if safe else '='} {right[b]}"
        for a, b, safe in zip(node.left_keys, node.right_keys, node.null_safe, strict=True)
    )
    rest = f" where {describe(node.residual)}" if node.residual is not None else ""
    if isinstance(node, Join):
        ttl = f"{_ttl(node.left_ttl)} |{_ttl(node.right_ttl)}" if node.left_ttl or node.right_ttl else ""
        return f"{node.kind.value} join {keys or 'all'}{rest}{ttl}"
    if isinstance(node, WindowJoin):
        return f"{node.kind.value} window join {keys}{rest}"
    if isinstance(node, LookupJoin):
        return f"{node.kind.value} lookup join {keys}{rest}{_ttl(node.ttl)}"
    if isinstance(node, TemporalJoin):
        at = "arrival" if node.left_time is None else left[node.left_time]
        return f"{node.kind.value} temporal join {keys} as of {at}{rest}"
    time = f"{node.lower} <= {left[node.left_time]} - {right[node.right_time]} <= {node.upper}"
    return f"{node.kind.value} interval join {keys or 'all'}, {time}{rest}"


def _named(names: list[str], places: tuple[int, ...]) -> str:
    return ", ".join(names[i] for i in places) or "nothing"


def _call(names: list[str], function: str, arguments: tuple[int, ...], distinct: bool, only: int | None) -> str:
    inside = ("DISTINCT " if distinct else "") + (", ".join(names[i] for i in arguments) or "*")
    return f"{function}({inside})" + (f" if {names[only]}" if only is not None else "")


def _ttl(ttl: int) -> str:
    return f" for {ttl} ms" if ttl else ""
