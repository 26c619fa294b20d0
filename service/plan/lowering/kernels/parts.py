"""The common parts of kernels: schemas, aggregates, and how a time attribute is read."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from operators.aggregates.functions import AggregateSpec
from operators.columns import positional
from service.plan.expressions import Expression, render
from service.plan.nodes import AggregateCall, Field, Mode, Node
from service.plan.properties import mode
from service.plan.table import TimeKind
from service.plan.types import DataType, TimestampLtz, arrow


def schema(columns: Sequence[Field]) -> pa.Schema:
    """Return the visible columns of blocks of a relation."""
    return schema_of([f.type for f in columns])


def schema_of(types: Sequence[DataType]) -> pa.Schema:
    """Return the visible columns of blocks with columns of `types`."""
    return positional([arrow(t) for t in types])


def aggregates(calls: Sequence[AggregateCall]) -> tuple[AggregateSpec, ...]:
    """Return the aggregates that a kernel computes for `calls`."""
    return tuple(
        AggregateSpec(
            function=call.function,
            arguments=call.arguments,
            distinct=call.distinct,
            filter=call.filter,
            constants=call.constants,
        )
        for call in calls
    )


def text_of(expression: Expression | None) -> str | None:
    """Return the DuckDB text of `expression`, None where there is none."""
    return None if expression is None else render(expression)


def appends(node: Node) -> bool:
    """Return whether the rows of `node` are never retracted."""
    return mode(node) is Mode.APPEND


def in_processing_time(node: Node, time: int) -> bool:
    """Return whether the column of `node` at `time` is PROCTIME()."""
    return node.fields[time].time is TimeKind.PROCESSING


def zone_of(node: Node, time: int, zone: str) -> str | None:
    """Return the zone that windows over the column at `time` align to: the session's wall clock if it is an instant,
    None if it is wall-clock time already."""
    return zone if isinstance(node.fields[time].type, TimestampLtz) else None
