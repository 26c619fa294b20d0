"""eKuiper's windows as they are called: names, numbers of arguments, units, and the clauses behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from service.plan.nodes import CappedSessionShape, CountShape, Hop, SlidingShape, StateShape, StreamShape, Tumble
from service.sql.errors import SqlError, did_you_mean
from service.sql.parse.stream_window_grammar import STREAM_WINDOWS
from service.sql.resolve.syntax import call_name
from service.sql.resolve.windows import GROUP_WINDOWS

UNITS: Mapping[str, int] = {"DD": 86_400_000, "HH": 3_600_000, "MI": 60_000, "SS": 1_000, "MS": 1}
"""Ms in each of eKuiper's units."""

_FORMS: Mapping[str, tuple[str, ...]] = {
    "TUMBLINGWINDOW": ("unit, size",),
    "HOPPINGWINDOW": ("unit, size, hop",),
    "SLIDINGWINDOW": ("unit, size", "unit, size, delay"),
    "SESSIONWINDOW": ("unit, longest, timeout",),
    "COUNTWINDOW": ("rows", "rows, every"),
    "STATEWINDOW": ("condition", "begin, emit"),
}


@dataclass(frozen=True, slots=True)
class StreamWindowCall:
    """One of eKuiper's windows, its arguments checked; `conditions` are those that the shape reads, in its order."""

    name: str
    shape: StreamShape
    conditions: tuple[exp.Expr, ...]
    filter: exp.Expr | None
    partition: tuple[exp.Expr, ...]
    at: exp.Expr


def find_call(nodes: Sequence[exp.Expr]) -> exp.Expr | None:
    """Return the window of eKuiper's among the expressions of GROUP BY, None if there is none. Raises SqlError if there
    are two."""
    found = [n for n in nodes if call_name(n) in STREAM_WINDOWS]
    others = [n for n in nodes if call_name(n) in GROUP_WINDOWS]
    if found and len(found) + len(others) > 1:
        raise SqlError("a query groups by one window at most", at=[*found[1:], *others][0])
    return found[0] if found else None


def stream_window_call(node: exp.Expr) -> StreamWindowCall:
    """Return the window that `node` calls. Raises SqlError for one that is not possible."""
    name = call_name(node)
    clauses = {a.this.name: a.expression for a in node.expressions if isinstance(a, exp.Kwarg)}
    arguments = [a for a in node.expressions if not isinstance(a, exp.Kwarg)]
    forms = _FORMS[name]
    if len(arguments) not in [len(form.split(", ")) for form in forms]:
        written = " or ".join(f"{name}({form})" for form in forms)
        raise SqlError(f"{name} takes other arguments", detail=f"it is written {written}", at=node)
    when = clauses.get("WHEN")
    if when is not None and name != "SLIDINGWINDOW":
        raise SqlError(
            f"WHEN is not for {name}",
            detail="OVER (WHEN ...) says which rows fire a sliding window; other windows are not fired by rows",
            hint="write FILTER (WHERE ...) to choose the rows that the window is made of",
            at=when,
        )
    conditions = tuple(arguments) if name == "STATEWINDOW" else () if when is None else (when,)
    partition = clauses.get("PARTITION")
    return StreamWindowCall(
        name=name,
        shape=_shape(name, arguments),
        conditions=conditions,
        filter=clauses.get("FILTER"),
        partition=() if partition is None else tuple(partition.expressions),
        at=node,
    )


def _shape(name: str, arguments: Sequence[exp.Expr]) -> StreamShape:
    match name:
        case "COUNTWINDOW":
            size = _number(name, "number of rows", arguments[0])
            every = _number(name, "number of rows to the next window", arguments[1]) if len(arguments) > 1 else size
            if every > size:
                raise SqlError(
                    "COUNTWINDOW would leave rows out: its second argument is greater than the first",
                    detail=f"a window has {size} rows, and the next comes {every} rows later",
                    hint=f"write COUNTWINDOW({every}, {size})",
                    at=arguments[1],
                )
            return CountShape(size, every)
        case "STATEWINDOW":
            return StateShape()
        case _:
            unit = _unit(name, arguments[0])
            size = _number(name, "size", arguments[1]) * unit
    match name:
        case "TUMBLINGWINDOW":
            return Tumble(size)
        case "HOPPINGWINDOW":
            return Hop(size, _number(name, "hop", arguments[2]) * unit)
        case "SESSIONWINDOW":
            return CappedSessionShape(size, _number(name, "timeout", arguments[2]) * unit)
        case _:
            return SlidingShape(size, _number(name, "delay", arguments[2], least=0) * unit if len(arguments) > 2 else 0)


def _unit(name: str, node: exp.Expr) -> int:
    written = node.name if isinstance(node, exp.Column) and not node.table else ""
    if written.upper() not in UNITS:
        raise SqlError(
            f"the unit of {name} is one of {', '.join(u.lower() for u in UNITS)}",
            detail=f"it is {node.sql()}",
            hint=did_you_mean(written, [u.lower() for u in UNITS]) or f"write {name}(ss, 10), for ten seconds",
            at=node,
        )
    return UNITS[written.upper()]


def _number(name: str, what: str, node: exp.Expr, least: int = 1) -> int:
    text = node.name if isinstance(node, exp.Literal) and not node.is_string else ""
    if not text.isdigit() or not least <= int(text) < 2**31:
        raise SqlError(
            f"the {what} of {name} is a whole number from {least} to {2**31 - 1}",
            detail=f"it is {node.sql(dialect='')}",
            at=node,
        )
    return int(text)
