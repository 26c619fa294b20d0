"""Columns that a node goes by as the time of its rows, and that are no time attribute."""

from __future__ import annotations

from collections.abc import Iterator

from service.plan.nodes import Node, Over, TimeSort, TopN, WindowAggregate, WindowRows
from service.plan.table import TimeKind
from service.plan.validate.problem import Problem
from service.plan.walk import fields, inputs


def time_problems(node: Node) -> Iterator[Problem]:
    """Yield that the time that `node` goes by is none."""
    time = _time(node)
    if time is not None:
        field = fields(inputs(node)[0])[time]
        if field.time is TimeKind.NONE:
            yield Problem(
                node.place,
                f'column "{field.name}" is not a time attribute here',
                hint=f"declare WATERMARK FOR {field.name} in CREATE TABLE, and do not change the column on its way",
            )


def _time(node: Node) -> int | None:
    """The position of the time attribute that `node` goes by, if it goes by one of its only input."""
    match node:
        case WindowAggregate(time=time) | WindowRows(time=time) | Over(time=time) | TimeSort(time=time):
            return time
        case TopN(window_time=window_time):
            return window_time
        case _:
            return None
