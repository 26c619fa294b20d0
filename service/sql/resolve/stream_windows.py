"""eKuiper's windows: COUNTWINDOW(5) and its kind among the items of GROUP BY.

FILTER chooses the rows that a window is made of, WHERE those of a closed window that are looked at; for windows of time
alone the two come to the same, and WHERE acts before the window. The closed window is grouped by the other items of
GROUP BY; a query without such items and without aggregates in its SELECT list gets the window's rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from service.plan.expressions import Expression
from service.plan.nodes import CountShape, Hop, Place, Scan, Tumble
from service.plan.passes.push_filters import both
from service.plan.table import TimeKind
from service.plan.walk import in_order
from service.sql.errors import SqlError
from service.sql.parse.stream_window_grammar import STREAM_WINDOWS
from service.sql.resolve.aggregate_calls import AggregateCalls
from service.sql.resolve.aggregate_parts import call_alias
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.group_by import (
    Grouped,
    GroupRewriter,
    check_sets,
    group_keys,
    grouping_of,
    has_aggregate,
    key_sets,
    look_further,
)
from service.sql.resolve.grouping_sets import nodes_in
from service.sql.resolve.join_conditions import checked_condition
from service.sql.resolve.kept_times import timed_again
from service.sql.resolve.relation import Relation, filtered
from service.sql.resolve.stream_window_calls import StreamWindowCall, find_call, stream_window_call
from service.sql.resolve.stream_window_nodes import (
    FIRST_MS,
    LAST_MS,
    ROW_MS,
    ResolvedWindow,
    grouped_windows,
    rows_of,
)
from service.sql.resolve.syntax import call_name, columns_in, has_query, names_of, reference, replaced
from service.sql.scope import INTERNAL

Item = tuple[str, exp.Expr]

_BOUNDS = {"WINDOW_START": FIRST_MS, "WINDOW_END": LAST_MS, "EVENT_TIME": ROW_MS}


@dataclass(frozen=True, slots=True)
class _Bounds:
    """window_start(), window_end() and event_time(), each BIGINT ms since the epoch."""

    def is_key(self, node: exp.Expr) -> bool:
        return call_name(node) in STREAM_WINDOWS

    def bound(self, node: exp.Expr) -> str:
        name = call_name(node)
        return _BOUNDS.get(name, "") if name in _BOUNDS and not node.expressions else ""


def stream_window_of(select: exp.Select, session: ResolveContext) -> StreamWindowCall | None:
    """Return the window of eKuiper's that a SELECT groups by, if it does."""
    group = select.args.get("group")
    if group is None:
        return None
    try:
        node = find_call(nodes_in(group))
        return None if node is None else stream_window_call(node)
    except SqlError as error:
        raise session.give_up(error, group) from error


def resolve_stream_window(
    call: StreamWindowCall,
    select: exp.Select,
    relation: Relation,
    where: list[exp.Expr],
    items: list[Item],
    having: exp.Expr | None,
    session: ResolveContext,
) -> tuple[Relation, list[Item], exp.Expr | None]:
    """Return the relation of the closed windows, with the SELECT list and the HAVING condition written over it."""
    relation = _with_event_time(call, relation, session)
    bounds = _Bounds()
    with session.all_or_nothing(lambda: look_further([node for _, node in items], relation, session)):
        by = grouping_of(select, relation, session)
        with session.mistakes.collecting(select):
            check_sets(by, bounds, relation.scope)
        keys = group_keys(list(by.nodes), bounds, relation, session)
        grouped = bool(keys) or by.several or any(has_aggregate(node) for _, node in items)
        calls = AggregateCalls(relation.scope, session)
        for node in (*(n for _, n in items if grouped), *([having] if having is not None else [])):
            calls.collect(node)
        window = _resolved(call, relation, where, session)
    if window is None:
        raise QueryRejected
    place = session.place(call.at)
    relation = _filtered(window, relation, session, place)
    with session.all_or_nothing():
        if not grouped:
            result = rows_of(window, relation, calls, session, place)
            rewriter = _RowRewriter(bounds, calls, session)
            items = [(name, rewriter.item(node)) for name, node in items]
            having = None if having is None else rewriter.having(having)
        else:
            sets = key_sets(by, keys, relation.scope)
            known = [e for _, e in keys]
            keys += [(n, e) for n, e in window.parted if e not in known]
            sets = tuple(each | frozenset(range(len(known), len(keys))) for each in sets)
            result = grouped_windows(window, relation, [e for _, e in keys], sets, calls.found, session, place)
            regroup = GroupRewriter(Grouped(relation, keys, bounds, calls, by))
            items = [(name, regroup.rewrite(node, session)) for name, node in items]
            having = None if having is None else regroup.rewrite(having, session)
    return result, items, having


def _resolved(
    call: StreamWindowCall, relation: Relation, where: list[exp.Expr], session: ResolveContext
) -> ResolvedWindow | None:
    """The window's expressions over the input; None, the mistakes noted, if there are any."""
    before = session.mistakes.noted
    conditions = [_condition(node, relation, session) for node in call.conditions]
    seen = [_condition(node, relation, session) for node in where]
    parted = [(n, e) for n in call.partition if (e := session.compile(n, relation.scope)) is not None]
    time: int | None = None
    with session.mistakes.collecting(call.at):
        time = _event_time(call, relation)
    if session.mistakes.noted > before:
        return None
    return ResolvedWindow(
        call,
        time,
        tuple(c for c in conditions if c is not None),
        both(c for c in seen if c is not None),
        tuple({e: (n, e) for n, e in reversed(parted)}.values())[::-1],
    )


def _condition(node: exp.Expr, relation: Relation, session: ResolveContext) -> Expression | None:
    with session.mistakes.collecting(node):
        if has_query(node):
            raise SqlError(
                "a query cannot stand in a condition of such a window, nor in WHERE beside it",
                hint="write the condition in a subquery: FROM (SELECT * FROM ... WHERE ...)",
                at=node,
            )
        compiled = session.compile(node, relation.scope)
        return None if compiled is None else checked_condition(compiled, node)
    return None


def _with_event_time(call: StreamWindowCall, relation: Relation, session: ResolveContext) -> Relation:
    """The relation with the only event time that groups have kept as a key, where no column is one."""
    fields = relation.fields
    again = [i for i, f in enumerate(fields) if f.again is TimeKind.EVENT]
    if len(again) != 1 or any(f.time is TimeKind.EVENT for f in fields):
        return relation
    return timed_again(relation, again[0], call.at, session)


def _event_time(call: StreamWindowCall, relation: Relation) -> int | None:
    """The event-time attribute of the input: the window is in event time where there is one."""
    fields = relation.fields
    found = [i for i, f in enumerate(fields) if f.time is TimeKind.EVENT]
    if len(found) > 1:
        raise SqlError(
            f"{call.name} finds more than one event time",
            detail=f"there are {' and '.join(fields[i].name for i in found)}",
            hint="read from a subquery that selects one of them",
        )
    if found:
        return found[0]
    if isinstance(call.shape, CountShape) or any(TimeKind.PROCESSING in (f.time, f.again) for f in fields):
        return None
    timed = [n for n in in_order([relation.node]) if isinstance(n, Scan) and n.table.watermark is not None]
    if timed:
        raise SqlError(
            f'the event time of "{timed[0].table.name}" does not reach {call.name}',
            detail="a time attribute is lost in a regular join, a GROUP BY or an expression, or is not selected",
            hint="select it as it is, or add PROCTIME() for a window in processing time",
        )
    return None


def _filtered(window: ResolvedWindow, relation: Relation, session: ResolveContext, place: Place) -> Relation:
    """The rows that the window is made of."""
    call, conditions = window.call, []
    if call.filter is not None and (inside := _condition(call.filter, relation, session)) is not None:
        conditions.append(inside)
    if isinstance(call.shape, Tumble | Hop) and window.seen is not None:
        conditions.append(window.seen)
    condition = both(conditions)
    return relation if condition is None else filtered(relation, condition, place)


class _RowRewriter:
    """Replaces the bounds of the window, and in HAVING its aggregates, by references to the columns of its rows."""

    def __init__(self, bounds: _Bounds, calls: AggregateCalls, session: ResolveContext) -> None:
        self.bounds = bounds
        self.calls = calls
        self.session = session

    def item(self, node: exp.Expr) -> exp.Expr:
        return replaced(node, self._part)

    def having(self, node: exp.Expr) -> exp.Expr:
        written = replaced(node, self._part)
        for left in columns_in(written):
            if not left.name.startswith(INTERNAL):
                self.session.mistakes.add(
                    f'column "{".".join(names_of(left))}" is not aggregated',
                    detail="HAVING is about the whole window",
                    hint="write WHERE to choose rows of the window, FILTER (WHERE ...) to choose what it is made of",
                    at=left,
                )
        return written

    def _part(self, node: exp.Expr) -> exp.Expr | None:
        if name := self.bounds.bound(node):
            return reference(name, node)
        position = self.calls.position(node)
        return None if position is None else reference(call_alias(position), node)
