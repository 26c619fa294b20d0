"""Retracted rows, read by what cannot take its answer back or written where nothing can say so."""

from __future__ import annotations

from collections.abc import Iterator

from service.plan.describe import kind
from service.plan.nodes import (
    IntervalJoin,
    Mode,
    Node,
    Over,
    Sink,
    StreamWindow,
    TimeSort,
    WindowAggregate,
    WindowRows,
)
from service.plan.properties import carries_changes, mode
from service.plan.table import Table, TimeKind
from service.plan.validate.origin import article, is_updated_at_source, origin
from service.plan.validate.problem import Problem
from service.plan.walk import fields, inputs


def node_changelog_problems(node: Node) -> Iterator[Problem]:
    """Yield why `node` cannot read rows that its inputs take back."""
    if isinstance(node, StreamWindow) and mode(node.input) is Mode.RETRACT:
        yield Problem(
            node.place,
            f"a {kind(node)} cannot read an updating input",
            detail=f"{origin(node.input)} updates and deletes rows",
            hint=_before_or(node.input, _as_other_window(node.input)),
        )
    if isinstance(node, WindowAggregate | WindowRows | Over | TimeSort) and mode(node.input) is Mode.RETRACT:
        field = fields(node.input)[node.time]
        if field.time is TimeKind.PROCESSING:
            yield Problem(
                node.place,
                f"{article(kind(node))} {kind(node)} in processing time cannot read an updating input",
                detail=f'"{field.name}" says when a change arrives; {origin(node.input)} updates and deletes rows',
                hint="order by an event time" if isinstance(node, Over | TimeSort) else "use a window in event time",
            )
    if isinstance(node, IntervalJoin):
        for each in inputs(node):
            if mode(each) is Mode.RETRACT:
                yield Problem(
                    node.place,
                    f"{article(kind(node))} {kind(node)} cannot read an updating input",
                    detail=f"{origin(each)} updates and deletes rows",
                    hint=_before_or(each, _AS_OTHER_JOIN),
                )


_AS_OTHER_JOIN = (
    "compare CAST(<time> AS TIMESTAMP(3)) for a regular join, with a TTL, or join the version of a time, by FOR"
    " SYSTEM_TIME AS OF <left>.<time>"
)


def _before_or(updating: Node, otherwise: str) -> str:
    """What to do: read what is there before the step that changes rows, unless a table itself does, or `otherwise`."""
    return otherwise if is_updated_at_source(updating) else f"put it before that step, or {otherwise}"


def _as_other_window(updating: Node) -> str:
    timed = any(field.time is TimeKind.EVENT for field in fields(updating))
    return "use GROUP BY without a window" + (", or with TUMBLE, HOP or SESSION" if timed else "")


def sink_changelog_problems(sink: Sink) -> Iterator[Problem]:
    """Yield why the records of a sink cannot say what its query does."""
    table = sink.table
    if _only_appends(table) and mode(sink.input) is Mode.RETRACT:
        value = table.connector.value_format
        assert value is not None
        yield Problem(
            sink.place,
            f'table "{table.name}" takes new rows only, but the query updates its answer',
            detail=f"format '{value.kind}' cannot say that a row was changed; {origin(sink.input)} changes rows",
            hint="use 'connector' = 'upsert-kafka' with a PRIMARY KEY, or 'format' = 'debezium-json'",
        )


def _only_appends(table: Table) -> bool:
    """Whether the records of `table` can say nothing but that a row is new."""
    return table.connector.kind in ("kafka", "upsert-kafka") and not carries_changes(table)
