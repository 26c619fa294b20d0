"""The nodes of joins, from their inputs and sorted conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from service.plan.expressions import Call, Expression, Literal, columns_of, moved
from service.plan.nodes import Field, IntervalJoin, Join, JoinKind, WindowJoin
from service.plan.table import TimeKind
from service.plan.types import BOOLEAN
from service.sql.resolve.context import ResolveContext
from service.sql.resolve.join_conditions import Conditions, Equality
from service.sql.resolve.join_inputs import Keyed
from service.sql.resolve.processing_time import retimed
from service.sql.resolve.relation import Relation, WindowColumns
from service.sql.resolve.window_joins import compared_windows, half_windowed, joined_windows
from service.sql.scope import INTERNAL, Scope, ScopeColumn


def join_of(
    left: Relation,
    right: Relation,
    kind: JoinKind,
    found: Conditions,
    ttls: tuple[int, int],
    at: exp.Expr,
    session: ResolveContext,
) -> Relation:
    """Return a window join where windows of both inputs have equal starts and ends, an interval join where the times of
    both are bounded on both sides, else a regular join."""
    windows = joined_windows(left, right, found)
    if windows is not None:
        return _window_join(left, right, kind, found, windows, at, session)
    times = found.times()
    if times is None or kind is JoinKind.MARK:
        return _regular_join(left, right, kind, found, ttls, at, session)
    return _interval_join(left, right, kind, found, times, at, session)


def _regular_join(
    left: Relation,
    right: Relation,
    kind: JoinKind,
    found: Conditions,
    ttls: tuple[int, int],
    at: exp.Expr,
    session: ResolveContext,
) -> Relation:
    """Every row of both inputs is kept; the result keeps no order of time."""
    rest = [*found.rest, *compiled_conditions([node for _, node in found.bounds], left, right, session)]
    keyed = Keyed.of(left, right, found, rest, session.place(at))
    scope = Scope(joined_columns(keyed, kind)).without_time()
    node = Join(
        left=keyed.left.node,
        right=keyed.right.node,
        kind=kind,
        left_keys=keyed.left_keys,
        right_keys=keyed.right_keys,
        null_safe=tuple(safe for _, _, safe in found.keys),
        residual=keyed.residual,
        fields=scope.fields,
        left_ttl=ttls[0],
        right_ttl=ttls[1],
        windowed=compared_windows(left, right, found) is not None,
        half_windowed=half_windowed(left, right, found),
        place=session.place(at),
    )
    return Relation(node, scope)


def _window_join(
    left: Relation,
    right: Relation,
    kind: JoinKind,
    found: Conditions,
    windows: tuple[WindowColumns, WindowColumns],
    at: exp.Expr,
    session: ResolveContext,
) -> Relation:
    """Rows of one window, joined when it closes; the result carries the windows of each side that is never padded."""
    rest = [*found.rest, *compiled_conditions([node for _, node in found.bounds], left, right, session)]
    keyed = Keyed.of(left, right, found, rest, session.place(at))
    scope = Scope(joined_columns(keyed, kind))
    node = WindowJoin(
        left=keyed.left.node,
        right=keyed.right.node,
        kind=kind,
        left_keys=keyed.left_keys,
        right_keys=keyed.right_keys,
        null_safe=tuple(safe for _, _, safe in found.keys),
        left_time=windows[0].time,
        right_time=windows[1].time,
        residual=keyed.residual,
        fields=scope.fields,
        place=session.place(at),
    )
    carried: list[WindowColumns] = []
    if kind not in (JoinKind.RIGHT, JoinKind.FULL):
        carried.append(windows[0])
    if kind in (JoinKind.INNER, JoinKind.RIGHT):
        carried.append(windows[1].shifted(len(keyed.left.scope)))
    return Relation(node, scope, tuple(carried))


def _interval_join(
    left: Relation,
    right: Relation,
    kind: JoinKind,
    found: Conditions,
    times: tuple[int, int, int, int],
    at: exp.Expr,
    session: ResolveContext,
) -> Relation:
    """`times` are the two time attributes, by position in the joined scope, and the bounds of their difference."""
    left_time, right_time, lower, upper = times
    others = [node for b, node in found.bounds if (b.left, b.right) != (left_time, right_time)]
    rest = [*found.rest, *compiled_conditions(others, left, right, session)]
    if lower > upper:
        # No two times are so far apart. Rows of equal times are compared, so that none waits for others; none matches.
        lower, upper, rest = 0, 0, [Literal("false", BOOLEAN, "FALSE")]
    keyed = Keyed.of(left, right, found, rest, session.place(at))
    scope = Scope(joined_columns(keyed, kind))
    node = IntervalJoin(
        left=keyed.left.node,
        right=keyed.right.node,
        kind=kind,
        left_keys=keyed.left_keys,
        right_keys=keyed.right_keys,
        null_safe=tuple(safe for _, _, safe in found.keys),
        left_time=left_time,
        right_time=right_time - len(left.scope),
        lower=lower,
        upper=upper,
        residual=keyed.residual,
        fields=scope.fields,
        place=session.place(at),
    )
    return retimed(Relation(node, scope), session.place(at), session)


def compiled_conditions(
    nodes: Sequence[exp.Expr], left: Relation, right: Relation, session: ResolveContext
) -> list[Expression]:
    """Return the expressions of conditions over both inputs, each once."""
    scope = left.scope.beside(right.scope)
    unique = {id(n): n for n in nodes}.values()
    compiled = [session.compile(node, scope) for node in unique]
    return [c for c in compiled if c is not None]


def compared(equality: Equality, width: int) -> Expression:
    """Return the equality as a condition over left's `width` columns, then right's."""
    mine, theirs, safe = equality
    shifted = moved(theirs, {i: i + width for i in columns_of(theirs)})
    text = "({0} IS NOT DISTINCT FROM {1})" if safe else "({0} = {1})"
    return Call("IS NOT DISTINCT FROM" if safe else "=", (mine, shifted), BOOLEAN, text)


_MATCHES = Field("matches", BOOLEAN, nullable=False)
"""What a mark join says of each row."""


def joined_columns(keyed: Keyed, kind: JoinKind) -> tuple[ScopeColumn, ...]:
    """Return the left columns, then the right ones; those of a side that may be padded may be NULL."""
    left, right = keyed.left.scope.columns, keyed.right.scope.columns
    if kind is JoinKind.MARK:
        return (*left, ScopeColumn(_MATCHES, alias=f"{INTERNAL}matches"))
    if not kind.shows_right:
        return left
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        left = tuple(map(_nullable, left))
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        right = tuple(map(_nullable, right))
    return (*left, *right)


def _nullable(column: ScopeColumn) -> ScopeColumn:
    """A column of a side that may be padded with NULLs, which are no times."""
    return replace(column, field=replace(column.field, nullable=True, time=TimeKind.NONE, again=TimeKind.NONE))
