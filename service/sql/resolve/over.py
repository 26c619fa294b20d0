"""OVER: aggregates over the rows around each row, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from sqlglot import exp

from service.sql.errors import SqlError
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.kept_times import with_time
from service.sql.resolve.over_calls import FramedCall, called_by, over_call
from service.sql.resolve.over_definition import definition, named_windows
from service.sql.resolve.over_nodes import with_answers
from service.sql.resolve.ranking import RANK_FUNCTIONS, RankCall, with_ranks
from service.sql.resolve.relation import Relation
from service.sql.resolve.syntax import canonical, reference, replaced
from service.sql.scope import INTERNAL

Item = tuple[str, exp.Expr]


def resolve_over(
    select: exp.Select, relation: Relation, items: list[Item], ttl: int, session: ResolveContext
) -> tuple[Relation, list[Item]]:
    """Return the relation with a column for each OVER call of `items`, and the items over it."""
    relation = _with_times(select, relation, items, session)
    calls = _calls(select, relation, items, session, final=False)
    if not calls:
        return relation, items
    orders = {(c.partition, c.order) for c in calls.values() if isinstance(c, RankCall) and c.window_time is None}
    if len(orders) > 1 or any(isinstance(call, FramedCall) for call in calls.values()):
        # A frame answers rows that may be retracted once, so that a number in the same order is final, too. So is one
        # beside ranks in other orders, which are of the rows that it numbers.
        calls = _calls(select, relation, items, session, final=True)
    scope, place = relation.scope, session.place(select)
    names = {text: f"{INTERNAL}over{i}" for i, text in enumerate(calls)}
    relation = with_answers(
        relation, [c for c in calls.values() if isinstance(c, FramedCall)], names, ttl, place, session
    )
    with session.all_or_nothing(), session.mistakes.collecting(select):
        relation = with_ranks(relation, [c for c in calls.values() if isinstance(c, RankCall)], names, ttl, place)

    def part(node: exp.Expr) -> exp.Expr | None:
        return reference(names[canonical(node, scope)], node) if isinstance(node, exp.Window) else None

    return relation, [(name, replaced(node, part)) for name, node in items]


def _with_times(select: exp.Select, relation: Relation, items: list[Item], session: ResolveContext) -> Relation:
    """`relation`, in which the times that aggregates are ordered by are time attributes, if they can be. Ranks have any
    order."""
    named = named_windows(select)
    for _, node in items:
        for window in _windows_in(node):
            with suppress(SqlError):
                _, order, _ = definition(window, named)
                if order is not None and called_by(window) not in RANK_FUNCTIONS:
                    relation = with_time(relation, order.expressions[0].this, session)
    return relation


def _calls(
    select: exp.Select, relation: Relation, items: list[Item], session: ResolveContext, *, final: bool
) -> dict[str, FramedCall | RankCall]:
    """The OVER calls of `items`, by their text."""
    named = named_windows(select)
    calls: dict[str, FramedCall | RankCall] = {}
    with session.all_or_nothing():
        for _, node in items:
            for window in _windows_in(node):
                with session.mistakes.collecting(window), suppress(QueryRejected):
                    call = over_call(window, named, relation, session, final=final)
                    calls.setdefault(call.text, call)
    return calls


def _windows_in(node: exp.Expr) -> Iterator[exp.Window]:
    """The OVER calls of an expression, those of queries inside it left out."""
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        yield node
    for child in node.iter_expressions():
        yield from _windows_in(child)
