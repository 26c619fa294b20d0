"""The conditions of a join, sorted into equal keys, bounds between times, and the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from service.plan.expressions import Expression, columns_of, moved
from service.plan.types import Timestamp, TimestampLtz, flink
from service.sql.errors import SqlError
from service.sql.expressions.casts import cast, common_type
from service.sql.resolve.context import ResolveContext
from service.sql.resolve.relation import Relation
from service.sql.resolve.time_bounds import TimeBound, time_bounds

Equality = tuple[Expression, Expression, bool]
"""An expression over the left input, one over the right, and whether NULL equals NULL."""


@dataclass(slots=True)
class Conditions:
    """The comparisons of a join. Expressions of `keys` read the left and the right input alone, each by its own
    positions; those of `rest` read both, left columns first."""

    keys: list[Equality] = field(default_factory=list)
    bounds: list[tuple[TimeBound, exp.Expr]] = field(default_factory=list)
    rest: list[Expression] = field(default_factory=list)

    def times(self) -> tuple[int, int, int, int] | None:
        """Return the two time attributes and the lower and the upper bound between them, if there are both."""
        pairs = {(b.left, b.right) for b, _ in self.bounds}
        for pair in sorted(pairs):
            own = [b for b, _ in self.bounds if (b.left, b.right) == pair]
            lower = [b.lower for b in own if b.lower is not None]
            upper = [b.upper for b in own if b.upper is not None]
            if lower and upper:
                return (*pair, max(lower), min(upper))
        return None


def sort_conditions(nodes: Iterable[exp.Expr], left: Relation, right: Relation, session: ResolveContext) -> Conditions:
    """Sort the conjuncts of a join; raises QueryRejected, their mistakes noted, if they have any."""
    found = Conditions()
    with session.all_or_nothing():
        for node in nodes:
            with session.mistakes.collecting(node):
                _sort(node, left, right, found, session)
    return found


def _sort(node: exp.Expr, left: Relation, right: Relation, found: Conditions, session: ResolveContext) -> None:
    scope = left.scope.beside(right.scope)
    width = len(left.scope)
    bounds = time_bounds(node, scope, width)
    if bounds:
        found.bounds += [(bound, node) for bound in bounds]
        return
    if isinstance(node, exp.EQ | exp.NullSafeEQ):
        one, other = session.compile(node.left, scope), session.compile(node.right, scope)
        if one is None or other is None:
            return
        pair = _sides(one, other, width)
        if pair is not None:
            found.keys.append((*_unified(*pair, node, session), isinstance(node, exp.NullSafeEQ)))
            return
    condition = session.compile(node, scope)
    if condition is not None:
        found.rest.append(checked_condition(condition, node))


def checked_condition(condition: Expression, node: exp.Expr) -> Expression:
    """Return `condition`. Raises SqlError if it is not BOOLEAN."""
    if flink(condition.type) not in ("BOOLEAN", "NULL"):
        raise SqlError(f"a condition must be BOOLEAN, this is {flink(condition.type)}", at=node)
    return condition


def _sides(one: Expression, other: Expression, width: int) -> tuple[Expression, Expression] | None:
    """The two sides of an equation by their own positions, left input first; None where one of them reads both inputs,
    or none."""
    reads = [set(columns_of(e)) for e in (one, other)]
    if not all(reads):
        return None
    if all(i < width for i in reads[0]) and all(i >= width for i in reads[1]):
        return one, moved(other, {i: i - width for i in reads[1]})
    if all(i < width for i in reads[1]) and all(i >= width for i in reads[0]):
        return other, moved(one, {i: i - width for i in reads[0]})
    return None


def _unified(
    left: Expression, right: Expression, node: exp.Expr, session: ResolveContext
) -> tuple[Expression, Expression]:
    """Both sides with their common type, so that equal values have equal hashes."""
    clocks = (left.type, right.type)
    if any(isinstance(t, TimestampLtz) for t in clocks) and any(isinstance(t, Timestamp) for t in clocks):
        # An instant meets a wall clock as what the clocks of the session's zone show.
        left, right = (
            cast(e, Timestamp(e.type.precision), zone=session.zone) if isinstance(e.type, TimestampLtz) else e
            for e in (left, right)
        )
    kind = common_type([left.type, right.type])
    if kind is None:
        raise SqlError(f"{flink(left.type)} and {flink(right.type)} cannot be compared", hint="use CAST", at=node)
    return (
        cast(left, kind, implicit=True, zone=session.zone),
        cast(right, kind, implicit=True, zone=session.zone),
    )
