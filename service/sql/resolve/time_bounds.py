"""Bounds between two time attributes, in whatever spelling: a.ts BETWEEN b.ts - x AND b.ts + y, a.ts < b.ts + z, ...

Law: each side of a comparison is a sum of time attributes and constants. Brought to one side, `left - right + c <op> 0`
bounds the difference left - right from above or from below; times are whole milliseconds, so < c is <= c - 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from service.plan.table import TimeKind
from service.sql.errors import SqlError
from service.sql.expressions.literals import interval_value
from service.sql.resolve.syntax import names_of
from service.sql.scope import Scope


@dataclass(frozen=True, slots=True)
class TimeBound:
    """left - right >= lower, or <= upper, in ms, for the time attributes at these positions of the joined scope."""

    left: int
    right: int
    lower: int | None = None
    upper: int | None = None


@dataclass(frozen=True, slots=True)
class _Sum:
    """Time attributes by position with how often each is added, and a constant in ms."""

    times: dict[int, int]
    constant: int = 0

    def plus(self, other: _Sum, sign: int) -> _Sum:
        times = dict(self.times)
        for index, count in other.times.items():
            times[index] = times.get(index, 0) + sign * count
        return _Sum({i: n for i, n in times.items() if n}, self.constant + sign * other.constant)


def time_bounds(condition: exp.Expr, scope: Scope, width: int) -> tuple[TimeBound, ...]:
    """Return the bounds that `condition` sets between a time attribute of the left input (the first `width` columns)
    and one of the right; empty if it is about something else."""
    found: list[TimeBound] = []
    for low, high, strict in _orders(condition):
        below, above = _sum(low, scope), _sum(high, scope)
        if below is None or above is None:
            return ()
        bound = _bound(below.plus(above, -1), 1 if strict else 0, scope, width)
        if bound is None:
            return ()
        found.append(bound)
    return tuple(found)


def _orders(condition: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr, bool]]:
    """Pairs (low, high, strictly) that `condition` says are in this order."""
    match condition:
        case exp.Paren():
            yield from _orders(condition.this)
        case exp.LT() | exp.LTE():
            yield condition.left, condition.right, isinstance(condition, exp.LT)
        case exp.GT() | exp.GTE():
            yield condition.right, condition.left, isinstance(condition, exp.GT)
        case exp.EQ():
            yield condition.left, condition.right, False
            yield condition.right, condition.left, False
        case exp.Between() if not condition.args.get("symmetric"):
            yield condition.args["low"], condition.this, False
            yield condition.this, condition.args["high"], False


def _bound(difference: _Sum, strict: int, scope: Scope, width: int) -> TimeBound | None:
    """The bound that `difference` <= 0 (< 0 if strict) sets."""
    if sorted(difference.times.values()) != [-1, 1]:
        return None
    left = next((i for i in difference.times if i < width), None)
    right = next((i for i in difference.times if i >= width), None)
    if left is None or right is None or scope.field(left).time is not scope.field(right).time:
        return None
    if type(scope.field(left).type) is not type(scope.field(right).type):
        return None
    if difference.times[left] == 1:
        return TimeBound(left, right, upper=-difference.constant - strict)
    return TimeBound(left, right, lower=difference.constant + strict)


def _sum(node: exp.Expr, scope: Scope) -> _Sum | None:
    match node:
        case exp.Paren():
            return _sum(node.this, scope)
        case exp.Column():
            try:
                found = scope.lookup(names_of(node))
            except SqlError:
                return None
            return _Sum({found.index: 1}) if found.field.time is not TimeKind.NONE and not found.path else None
        case exp.Interval() | exp.Neg(this=exp.Interval()):
            kind, value = interval_value(node)
            return None if kind.months else _Sum({}, value)
        case exp.Add() | exp.Sub():
            left, right = _sum(node.left, scope), _sum(node.right, scope)
            if left is None or right is None:
                return None
            return left.plus(right, 1 if isinstance(node, exp.Add) else -1)
        case _:
            return None
