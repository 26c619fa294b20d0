"""The nodes of eKuiper's windows: of rows, of groups, and of groups that time alone makes.

With grouping sets a window of rows is gathered once for each of them, since a row that was there once for each set
would be counted as often; the groups of all sets are then put together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from service.plan.expression_text import describe
from service.plan.expressions import Call, Column, Expression
from service.plan.nodes import AggregateCall, Field, Hop, Place, Project, StreamWindow, Tumble, Union
from service.plan.types import BIGINT, TimestampLtz
from service.sql.expressions.casts import cast
from service.sql.expressions.literals import null
from service.sql.resolve.aggregate_calls import AggregateCalls, TypedCall
from service.sql.resolve.aggregate_parts import AggregateInputs, call_alias, parts_of, set_number
from service.sql.resolve.context import ResolveContext
from service.sql.resolve.group_windows import START, TIME, GroupWindow, windowed
from service.sql.resolve.relation import Relation, column, extended, field_for
from service.sql.resolve.stream_window_calls import StreamWindowCall
from service.sql.resolve.windows import window_time, window_zone
from service.sql.scope import INTERNAL, Scope, ScopeColumn

FIRST_MS, LAST_MS, ROW_MS = (f"{INTERNAL}{name}" for name in ("first_ms", "last_ms", "row_ms"))


@dataclass(frozen=True, slots=True)
class ResolvedWindow:
    """A window whose conditions are expressions over the input; `time` is the event-time attribute, if there is one.
    `parted` are the expressions of PARTITION BY, each once, as they were written and compiled."""

    call: StreamWindowCall
    time: int | None
    conditions: tuple[Expression, ...]
    seen: Expression | None
    parted: tuple[tuple[exp.Expr, Expression], ...]

    @property
    def partition(self) -> tuple[Expression, ...]:
        """The expressions of PARTITION BY."""
        return tuple(expression for _, expression in self.parted)


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
        window: ResolvedWindow,
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


def grouped_windows(
    window: ResolvedWindow,
    relation: Relation,
    keys: Sequence[Expression],
    sets: tuple[frozenset[int], ...],
    calls: Sequence[TypedCall],
    session: ResolveContext,
    place: Place,
) -> Relation:
    """Return the groups of each closed window, by `keys`; by those of each of `sets` where there are some."""
    # Windows of one partition are apart from those of another, whether or not a set groups by what parts them.
    apart = [e for e in window.partition if any(e not in [keys[i] for i in each] for each in sets)]
    parted = frozenset(range(len(keys), len(keys) + len(apart)))
    keys, sets = [*keys, *apart], tuple(each | parted for each in sets)
    shape = window.call.shape
    if isinstance(shape, Tumble | Hop):
        return _groups_of_time(window, shape, parts_of(relation, keys, calls, sets), session, place)
    if not sets:
        return _groups(window, parts_of(relation, keys, calls), session, place)
    whole = parts_of(relation, keys, calls, sets)
    scope = Scope((*Scope(whole.columns).without_time().columns, *_milliseconds()))
    by_set: list[Project] = []
    for number, each in enumerate(sets):
        own = sorted(each)
        groups = _groups(window, parts_of(relation, [keys[i] for i in own], calls), session, place)
        shown = [column(groups.scope, own.index(i)) if i in each else null(e.type) for i, e in enumerate(keys)]
        rest = [column(groups.scope, i) for i in range(len(own), len(groups.scope))]
        expressions = (*shown, set_number(number), *rest)
        by_set.append(Project(input=groups.node, expressions=expressions, fields=scope.fields, place=place))
    return Relation(Union(inputs=tuple(by_set), fields=scope.fields, place=place), scope)


def _groups(window: ResolvedWindow, parts: AggregateInputs, session: ResolveContext, place: Place) -> Relation:
    """The groups of each closed window."""
    scope = Scope((*Scope(parts.columns).without_time().columns, *_milliseconds()))
    below = _Below(parts.relation, parts.expressions)
    return below.under(window, parts.keys, parts.calls, lambda _: scope, session, place)


def rows_of(
    window: ResolvedWindow, relation: Relation, calls: AggregateCalls, session: ResolveContext, place: Place
) -> Relation:
    """Return the rows of each closed window, and beside them the aggregates of the window that HAVING asks for."""
    width = len(relation.scope)
    below = _Below(relation, tuple(column(relation.scope, i) for i in range(width)))
    aggregates = tuple(call.placed(below.place_of) for call in calls.found)

    def shown(read: Project) -> Scope:
        own = [f.timeless for f in read.fields]
        return Scope(
            (
                *(replace(c, field=f) for c, f in zip(relation.scope.columns, own[:width], strict=True)),
                *(ScopeColumn(f, alias=f"{INTERNAL}read{i}") for i, f in enumerate(own[width:])),
                *(ScopeColumn(Field(c.shown, c.type), alias=call_alias(i)) for i, c in enumerate(calls.found)),
                *_milliseconds(),
            )
        )

    return below.under(window, None, aggregates, shown, session, place)


def _groups_of_time(
    window: ResolvedWindow, shape: Tumble | Hop, parts: AggregateInputs, session: ResolveContext, place: Place
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
