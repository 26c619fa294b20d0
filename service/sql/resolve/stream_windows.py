"""eKuiper's windows: COUNTWINDOW(5) and its kind among the items of GROUP BY.

FILTER chooses the rows that a window is made of, WHERE those of a closed window that are looked at; for windows of time
alone the two come to the same, and WHERE acts before the window. The closed window is grouped by the other items of
GROUP BY; a query without such items and without aggregates in its SELECT list gets the window's rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from service.plan.expressions import Call, Column, Expression, describe
from service.plan.nodes import AggregateCall, CountShape, Field, Hop, Place, Project, Scan, StreamWindow, Tumble
from service.plan.passes.push_filters import both
from service.plan.table import TimeKind
from service.plan.types import BIGINT, TimestampLtz
from service.plan.walk import in_order
from service.sql.errors import SqlError
from service.sql.expressions.casts import cast
from service.sql.parse.stream_window_grammar import STREAM_WINDOWS
from service.sql.resolve.aggregate_calls import AggregateCalls
from service.sql.resolve.aggregate_parts import AggregateInputs, call_alias, parts_of
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.group_by import (
    Grouped,
    GroupRewriter,
    group_keys,
    group_nodes,
    has_aggregate,
    look_further,
)
from service.sql.resolve.group_windows import START, TIME, GroupWindow, windowed
from service.sql.resolve.join_conditions import checked_condition
from service.sql.resolve.relation import Relation, column, extended, field_for, filtered
from service.sql.resolve.stream_window_calls import StreamWindowCall, find_call, stream_window_call
from service.sql.resolve.syntax import call_name, columns_in, has_query, names_of, reference, replaced
from service.sql.resolve.windows import window_time, window_zone
from service.sql.scope import INTERNAL, Scope, ScopeColumn

Item = tuple[str, exp.Expr]

FIRST_MS, LAST_MS, ROW_MS = (f"{INTERNAL}{name}" for name in ("first_ms", "last_ms", "row_ms"))
_BOUNDS = {"WINDOW_START": FIRST_MS, "WINDOW_END": LAST_MS, "EVENT_TIME": ROW_MS}


@dataclass(frozen=True, slots=True)
class _Bounds:
    """window_start(), window_end() and event_time(), each BIGINT ms since the epoch."""

    def is_key(self, node: exp.Expr) -> bool:
        return call_name(node) in STREAM_WINDOWS

    def bound(self, node: exp.Expr) -> str:
        name = call_name(node)
        return _BOUNDS.get(name, "") if name in _BOUNDS and not node.expressions else ""


@dataclass(frozen=True, slots=True)
class _Resolved:
    """A window whose conditions are expressions over the input; `time` is the event-time attribute, if there is one."""

    call: StreamWindowCall
    time: int | None
    conditions: tuple[Expression, ...]
    seen: Expression | None
    partition: tuple[Expression, ...]


def stream_window_of(select: exp.Select, session: ResolveContext) -> StreamWindowCall | None:
    """Return the window of eKuiper's that a SELECT groups by, if it does."""
    group = select.args.get("group")
    if group is None:
        return None
    try:
        node = find_call(group.expressions)
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
    bounds = _Bounds()
    with session.all_or_nothing(lambda: look_further([node for _, node in items], relation, session)):
        nodes = group_nodes(select, session)
        keys = group_keys(nodes, bounds, relation, session)
        grouped = bool(keys) or any(has_aggregate(node) for _, node in items)
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
            result = _rows(window, relation, calls, session, place)
            rewriter = _RowRewriter(bounds, calls, session)
            items = [(name, rewriter.item(node)) for name, node in items]
            having = None if having is None else rewriter.having(having)
        else:
            named = {e: n for n, e in keys}
            nodes_of = [
                *keys,
                *((n, e) for n, e in zip(call.partition, window.partition, strict=True) if e not in named),
            ]
            parts = parts_of(relation, [e for _, e in nodes_of], calls.found)
            if isinstance(call.shape, Tumble | Hop):
                result = _of_time(window, call.shape, parts, session, place)
            else:
                result = _groups(window, parts, session, place)
            regroup = GroupRewriter(Grouped(relation, nodes_of, bounds, calls))
            items = [(name, regroup.rewrite(node, session)) for name, node in items]
            having = None if having is None else regroup.rewrite(having, session)
    return result, items, having


def _resolved(
    call: StreamWindowCall, relation: Relation, where: list[exp.Expr], session: ResolveContext
) -> _Resolved | None:
    """The window's expressions over the input; None, the mistakes noted, if there are any."""
    before = len(session.mistakes)
    conditions = [_condition(node, relation, session) for node in call.conditions]
    seen = [_condition(node, relation, session) for node in where]
    partition = [session.compile(node, relation.scope) for node in call.partition]
    time: int | None = None
    with session.mistakes.collecting(call.at):
        time = _event_time(call, relation)
    if len(session.mistakes) > before:
        return None
    return _Resolved(
        call,
        time,
        tuple(c for c in conditions if c is not None),
        both(c for c in seen if c is not None),
        tuple(dict.fromkeys(p for p in partition if p is not None)),
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
    if isinstance(call.shape, CountShape) or any(f.time is TimeKind.PROCESSING for f in fields):
        return None
    timed = [n for n in in_order([relation.node]) if isinstance(n, Scan) and n.table.watermark is not None]
    if timed:
        raise SqlError(
            f'the event time of "{timed[0].table.name}" does not reach {call.name}',
            detail="a time attribute is lost in a regular join, a GROUP BY or an expression, or is not selected",
            hint="select it as it is, or add PROCTIME() for a window in processing time",
        )
    return None


def _filtered(window: _Resolved, relation: Relation, session: ResolveContext, place: Place) -> Relation:
    """The rows that the window is made of."""
    call, conditions = window.call, []
    if call.filter is not None and (inside := _condition(call.filter, relation, session)) is not None:
        conditions.append(inside)
    if isinstance(call.shape, Tumble | Hop) and window.seen is not None:
        conditions.append(window.seen)
    condition = both(conditions)
    return relation if condition is None else filtered(relation, condition, place)


def _milliseconds() -> tuple[ScopeColumn, ...]:
    names = (("window_start", FIRST_MS), ("window_end", LAST_MS), ("event_time", ROW_MS))
    return tuple(ScopeColumn(Field(name, BIGINT, False), alias=alias) for name, alias in names)


class _Below:
    """The columns below a window: those it starts with, and what else it reads, each once."""

    def __init__(self, relation: Relation, expressions: tuple[Expression, ...]) -> None:
        self.relation = relation
        self.expressions = list(expressions)

    def place_of(self, expression: Expression) -> int:
        if expression not in self.expressions:
            self.expressions.append(expression)
        return self.expressions.index(expression)

    def under(
        self,
        window: _Resolved,
        keys: tuple[int, ...] | None,
        aggregates: tuple[AggregateCall, ...],
        shown: Callable[[Project], Scope],
        session: ResolveContext,
        place: Place,
    ) -> Relation:
        """The window over a projection of these columns, of which `shown` says what comes out."""
        scope, seen = self.relation.scope, window.seen
        if isinstance(window.call.shape, Tumble | Hop):
            seen = None
        time = None if window.time is None else self.place_of(column(scope, window.time))
        partition = tuple(map(self.place_of, window.partition))
        conditions = tuple(map(self.place_of, window.conditions))
        seen_at = None if seen is None else self.place_of(seen)
        fields = tuple(
            field_for(scope.field(e.index).name if isinstance(e, Column) else describe(e), e, scope)
            for e in self.expressions
        )
        below = Project(input=self.relation.node, expressions=tuple(self.expressions), fields=fields, place=place)
        result = shown(below)
        node = StreamWindow(
            input=below,
            shape=window.call.shape,
            time=time,
            partition=partition,
            conditions=conditions,
            seen=seen_at,
            keys=keys,
            aggregates=aggregates,
            fields=result.fields,
            zone=session.zone,
            place=place,
        )
        return Relation(node, result)


def _groups(window: _Resolved, parts: AggregateInputs, session: ResolveContext, place: Place) -> Relation:
    """The groups of each closed window."""
    scope = Scope((*parts.columns, *_milliseconds()))
    below = _Below(parts.relation, parts.expressions)
    return below.under(window, parts.keys, parts.calls, lambda _: scope, session, place)


def _rows(
    window: _Resolved, relation: Relation, calls: AggregateCalls, session: ResolveContext, place: Place
) -> Relation:
    """The rows of each closed window, and beside them the aggregates of the window that HAVING asks for."""
    width = len(relation.scope)
    below = _Below(relation, tuple(column(relation.scope, i) for i in range(width)))
    aggregates = tuple(call.placed(below.place_of) for call in calls.found)

    def shown(read: Project) -> Scope:
        own = [replace(f, time=TimeKind.NONE) for f in read.fields]
        return Scope(
            (
                *(replace(c, field=f) for c, f in zip(relation.scope.columns, own[:width], strict=True)),
                *(ScopeColumn(f, alias=f"{INTERNAL}read{i}") for i, f in enumerate(own[width:])),
                *(ScopeColumn(Field(c.shown, c.type), alias=call_alias(i)) for i, c in enumerate(calls.found)),
                *_milliseconds(),
            )
        )

    return below.under(window, None, aggregates, shown, session, place)


def _of_time(
    window: _Resolved, shape: Tumble | Hop, parts: AggregateInputs, session: ResolveContext, place: Place
) -> Relation:
    """The groups of windows that time alone makes: the ordinary window aggregate, spread by the keys."""
    relation, time = parts.relation, window.time
    if time is None:
        proctime = session.compile(exp.Anonymous(this="PROCTIME", expressions=[]), relation.scope)
        assert proctime is not None, "PROCTIME() is always there"
        time = len(relation.scope)
        relation = extended(relation, [proctime], place)
    field = relation.scope.field(time)
    of_time = GroupWindow(
        scope=relation.scope,
        time=time,
        window=shape,
        field=window_time(field),
        zone=window_zone(field, session.zone),
        function=window.call.name,
        columns={},
    )
    result = windowed(replace(parts, relation=relation), of_time, place)
    start, end = (column(result.scope, result.scope.lookup([name]).index) for name in (START, TIME))
    first: Expression = start
    if isinstance(field.type, TimestampLtz):
        first = cast(start, TimestampLtz(3), zone=session.zone)
    last = Call("window_end", (end,), BIGINT, "(epoch_ms({0}) + 1)")
    added = (Call("window_start", (first,), BIGINT, "epoch_ms({0})"), last, last)
    own = tuple(column(result.scope, i) for i in range(len(result.scope)))
    scope = Scope((*result.scope.columns, *_milliseconds()))
    node = Project(input=result.node, expressions=(*own, *added), fields=scope.fields, place=place)
    return Relation(node, scope)


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
