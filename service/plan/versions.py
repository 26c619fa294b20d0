"""The versions of what a plan calls: its functions and aggregates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from operators.aggregates.functions import version_of
from service.plan.expressions import Call
from service.plan.nodes import AggregateCall, Node, OverCall, Sink
from service.plan.types import flink


def versions_in(node: Node | Sink) -> dict[str, int]:
    """Return the version of each function and aggregate that a step calls itself, by what people call it."""
    return dict(_versions(tuple(getattr(node, part.name) for part in fields(node))))


def _versions(value: Any) -> Iterator[tuple[str, int]]:
    match value:
        case Call(name=name, type=type_, versions=raised):
            to = f" to {flink(type_)}" if name in ("CAST", "TRY_CAST") else ""
            yield from ((f"function {known}{to}", version) for known, version in raised or ((name, 1),))
        case AggregateCall(function=function) | OverCall(function=function):
            yield f"aggregate {function}", version_of(function)
    if isinstance(value, tuple):
        for each in value:
            yield from _versions(each)
    elif is_dataclass(value) and not isinstance(value, Node):
        for part in fields(value):
            # What is faster has the same value, so it has no versions of its own.
            if part.name != "faster":
                yield from _versions(getattr(value, part.name))
