"""The versions of what a plan calls: its functions and aggregates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from operators.aggregates.functions import version_of
from service.plan.expressions import Call
from service.plan.nodes import AggregateCall, Node, OverCall, Sink
from service.plan.types import DOUBLE, FLOAT, flink


def versions_in(node: Node | Sink) -> dict[str, int]:
    """Return the version of each function and aggregate that a step calls itself, by what people call it."""
    return dict(_versions(tuple(getattr(node, part.name) for part in fields(node))))


def version_of_call(call: AggregateCall | OverCall) -> int:
    """Return the version of the aggregate that is called."""
    return version_of(call.function, floating=call.type in (FLOAT, DOUBLE))


def _versions(value: Any) -> Iterator[tuple[str, int]]:
    match value:
        case Call(name=name, type=type_, versions=raised):
            to = f" to {flink(type_)}" if name in ("CAST", "TRY_CAST") else ""
            yield from ((f"function {known}{to}", version) for known, version in raised or ((name, 1),))
        case AggregateCall(function=function) | OverCall(function=function):
            version, others = version_of_call(value), version_of(function, floating=False)
            yield f"aggregate {function}{'' if version == others else f' of {flink(value.type)}'}", version
    if isinstance(value, tuple):
        for each in value:
            yield from _versions(each)
    elif is_dataclass(value) and not isinstance(value, Node):
        for part in fields(value):
            # What is faster has the same value, so it has no versions of its own.
            if part.name != "faster":
                yield from _versions(getattr(value, part.name))
