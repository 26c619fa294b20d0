"""OVER: aggregates over the rows around each row, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import IntEnum

from sqlglot import exp

from service.plan import types
from service.plan.expressions import Column, Expression, Literal, describe, render
from service.plan.nodes import NEIGHBOURS, NOT_AGGREGATES, Field, Frame, Mode, Over, OverCall, Place
from service.plan.properties import mode
from service.plan.table import TimeKind
from service.plan.types import DataType, flink
from service.sql.errors import SqlError, did_you_mean
from service.sql.expressions.aggregate_types import AGGREGATES
from service.sql.expressions.casts import assignable, cast
from service.sql.resolve.aggregate_calls import typed_call
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.over_frame import MOST_ROWS, frame_of
from service.sql.resolve.ranking import OF_ALL_ROWS, RANK_FUNCTIONS, RankCall, rank_call, ranked
from service.sql.resolve.relation import Relation, extended
from service.sql.resolve.syntax import call_name, canonical, positions, reference, replaced
from service.sql.resolve.windows import not_a_time_attribute
from service.sql.scope import INTERNAL, Scope, ScopeColumn

Item = tuple[str, exp.Expr]


class _Reach(IntEnum):
    """What a row waits for, in the order of nodes: where it waits for other rows, its time has passed long ago."""

    ROW = 0
    TIME = 1
    ROWS = 2


@dataclass(frozen=True, slots=True)
class _Call:
    """One OVER call over expressions of the input; calls of equal `partition`, `time` and `reach` share a node."""

    text: str
    partition: tuple[Expression, ...]
    time: int
    frame: Frame
    function: str
    arguments: tuple[Expression, ...]
    type: DataType
    distinct: bool
    filter: Expression | None
    constants: tuple[str, ...]
    node: exp.Expr

    @property
    def reach(self) -> _Reach:
        """What its answer waits for."""
        spec = OverCall(self.function, (), self.type, self.frame, constants=self.constants).spec
        return _Reach.ROWS if spec.rows_ahead else _Reach.TIME if spec.time_ahead else _Reach.ROW

    @property
    def shown(self) -> str:
        return f"{self.function}({', '.join(map(describe, self.arguments)) or '*'})"


def resolve_over(
    select: exp.Select, relation: Relation, items: list[Item], ttl: int, session: ResolveContext
) -> tuple[Relation, list[Item]]:
    """Return the relation with a column for each OVER call of `items`, and the items over it."""
    named = {w.name: w for w in select.args.get("windows") or ()}
    calls: dict[str, _Call | RankCall] = {}
    with session.all_or_nothing():
        for _, node in items:
            for window in _windows_in(node):
                with session.mistakes.collecting(window), suppress(QueryRejected):
                    call = _call(window, named, relation, session)
                    calls.setdefault(call.text, call)
    if not calls:
        return relation, items
    names: dict[str, str] = {}
    groups: dict[tuple[_Reach, tuple[Expression, ...], int], list[_Call]] = {}
    for call in calls.values():
        if isinstance(call, _Call):
            groups.setdefault((call.reach, call.partition, call.time), []).append(call)
    scope, place = relation.scope, session.place(select)
    with session.all_or_nothing():
        _one_waits_for_rows(list(groups.values()), session)
    for _, group in sorted(groups.items(), key=lambda each: each[0][0]):
        relation = _over(relation, group, names, ttl, place)
    for call in calls.values():
        if isinstance(call, RankCall):
            names[call.text] = f"{INTERNAL}over{len(names)}"
            relation = ranked(relation, call, names[call.text], ttl, place)

    def part(node: exp.Expr) -> exp.Expr | None:
        return reference(names[canonical(node, scope)], node) if isinstance(node, exp.Window) else None

    return relation, [(name, replaced(node, part)) for name, node in items]


def _one_waits_for_rows(groups: list[list[_Call]], session: ResolveContext) -> None:
    """Refuse a second window whose rows wait for others: the first hands them on when their time has long passed."""
    waiting = [group for group in groups if group[0].reach is _Reach.ROWS]
    for others in waiting[1:]:
        session.mistakes.add(
            "LEAD and frames that end some rows behind share one PARTITION BY in a query",
            detail="a row waits for the next ones of its partition; those of another would wait for it in turn",
            hint="give them the same PARTITION BY and ORDER BY, or end the frames with INTERVAL ... FOLLOWING",
            at=others[0].node,
        )


def _windows_in(node: exp.Expr) -> Iterator[exp.Window]:
    """The OVER calls of an expression, those of queries inside it left out."""
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        yield node
    for child in node.iter_expressions():
        yield from _windows_in(child)


def _over(relation: Relation, calls: list[_Call], names: dict[str, str], ttl: int, place: Place) -> Relation:
    places: dict[Expression, int] = {}
    added: list[Expression] = []
    width = len(relation.scope)

    def place_of(expression: Expression) -> int:
        if isinstance(expression, Column):
            return expression.index
        if expression not in places:
            places[expression] = width + len(added)
            added.append(expression)
        return places[expression]

    partition = tuple(place_of(e) for e in calls[0].partition)
    placed = tuple(
        OverCall(
            function=c.function,
            arguments=tuple(place_of(a) for a in c.arguments),
            type=c.type,
            frame=c.frame,
            distinct=c.distinct,
            filter=None if c.filter is None else place_of(c.filter),
            constants=c.constants,
        )
        for c in calls
    )
    below = extended(relation, added, place)
    new = []
    for call in calls:
        names[call.text] = f"{INTERNAL}over{len(names)}"
        field = Field(call.shown, call.type, call.function not in ("COUNT", *RANK_FUNCTIONS))
        new.append(ScopeColumn(field, alias=names[call.text]))
    own, windows = below.scope.columns, relation.windows
    processing = relation.scope.field(calls[0].time).time is TimeKind.PROCESSING
    if calls[0].reach is _Reach.ROWS or (calls[0].reach is _Reach.TIME and processing):
        # What comes out has waited, who knows how long: its time has passed, and says nothing of rows to come.
        own, windows = tuple(replace(c, field=replace(c.field, time=TimeKind.NONE)) for c in own), ()
    fields = (*(c.field for c in own), *(c.field for c in new))
    node = Over(
        input=below.node,
        partition=partition,
        time=calls[0].time,
        calls=placed,
        fields=fields,
        ttl=ttl,
        place=place,
    )
    return Relation(node, Scope((*own, *new)), windows)


def _call(
    node: exp.Window, named: dict[str, exp.Window], relation: Relation, session: ResolveContext
) -> _Call | RankCall:
    scope = relation.scope
    partition_nodes, order, spec = _definition(node, named)
    function_node = node.this
    function = call_name(function_node.this if isinstance(function_node, exp.Filter) else function_node)
    numbered_by_time = _by_rising_time(order, partition_nodes, function, relation)
    if function in OF_ALL_ROWS or (function in RANK_FUNCTIONS and not numbered_by_time):
        return rank_call(node, function, partition_nodes, order, relation, session)
    if function not in AGGREGATES and function not in NOT_AGGREGATES:
        known = (*AGGREGATES, *NOT_AGGREGATES)
        raise SqlError(f"{function or 'this'} is no function for OVER", hint=did_you_mean(function, known), at=node)
    time = _time(order, scope, node)
    partition = tuple(e for n in partition_nodes if (e := session.compile(n, scope)) is not None)
    frame = frame_of(spec, function)
    text = canonical(node, scope)
    if function in RANK_FUNCTIONS:
        if (spec is not None and frame.preceding is not None) or frame.following:
            raise SqlError(f"{function} counts all rows up to the current one: its frame cannot be another", at=node)
        return _Call(text, partition, time, frame, function, (), types.BIGINT, False, None, (), node)
    if function in NEIGHBOURS:
        argument, constants = _neighbour(function, function_node, scope, session)
        return _Call(text, partition, time, frame, function, (argument,), argument.type, False, None, constants, node)
    if function == "NTH_VALUE":
        argument, number = _numbered(function_node, scope, session)
        return _Call(text, partition, time, frame, function, (argument,), argument.type, False, None, (number,), node)
    typed = typed_call(function_node, scope, session)
    return _Call(
        text,
        partition,
        time,
        frame,
        function,
        typed.arguments,
        typed.type,
        typed.distinct,
        typed.filter,
        typed.constants,
        node,
    )


def _by_rising_time(order: exp.Expr | None, partition: Sequence[exp.Expr], function: str, relation: Relation) -> bool:
    """Whether rows are numbered by a time attribute, ascending: each then has its final number once it is due.

    RANK and DENSE_RANK need event time, in which no row of the same time comes later. The ranks within a window of time
    are known when it closes.
    """
    if order is None or len(order.expressions) != 1:
        return False
    ordered = order.expressions[0]
    found = positions(ordered.this, relation.scope)
    if not isinstance(ordered.this, exp.Column) or ordered.args.get("desc") or found is None or not found:
        return False
    time = relation.scope.field(min(found)).time
    if mode(relation.node) is not Mode.APPEND or time is TimeKind.NONE:
        return False
    if function == "ROW_NUMBER":
        return True
    columns = {i for each in partition if isinstance(each, exp.Column) for i in positions(each, relation.scope) or ()}
    return time is TimeKind.EVENT and not any({w.start, w.end} <= columns for w in relation.windows)


def _definition(
    node: exp.Window, named: dict[str, exp.Window]
) -> tuple[list[exp.Expr], exp.Expr | None, exp.WindowSpec | None]:
    """PARTITION BY, ORDER BY and the frame, from the call itself and the window that it names."""
    partition = list(node.args.get("partition_by") or ())
    order, spec = node.args.get("order"), node.args.get("spec")
    alias = node.args.get("alias")
    if alias is None:
        return partition, order, spec
    name = alias.name if isinstance(alias, exp.Expr) else str(alias)
    if name not in named:
        raise SqlError(
            f'window "{name}" does not exist',
            detail=f"WINDOW declares {', '.join(named)}" if named else "the query has no WINDOW clause",
            hint=did_you_mean(name, named),
            at=node,
        )
    base_partition, base_order, base_spec = _definition(named[name], {k: v for k, v in named.items() if k != name})
    return partition or base_partition, order or base_order, spec or base_spec


def _time(order: exp.Expr | None, scope: Scope, at: exp.Expr) -> int:
    """The time attribute that rows are ordered by."""
    if order is None or not order.expressions:
        raise SqlError("OVER needs ORDER BY", hint="order by the time attribute of the table", at=at)
    if len(order.expressions) > 1:
        raise SqlError("OVER is ordered by one column, a time attribute", at=order.expressions[1])
    ordered = order.expressions[0]
    node = ordered.this
    try:
        index = scope.lookup([p.name for p in node.parts]).index if isinstance(node, exp.Column) else None
    except SqlError as error:
        error.at = node
        raise
    if ordered.args.get("desc"):
        raise SqlError("OVER is ordered by time, ascending", at=ordered)
    if index is None:
        raise SqlError("OVER is ordered by a time attribute, not an expression", at=node)
    if scope.field(index).time is TimeKind.NONE:
        raise not_a_time_attribute(scope.field(index), "ORDER BY in OVER", node)
    return index


def _neighbour(
    function: str, node: exp.Expr, scope: Scope, session: ResolveContext
) -> tuple[Expression, tuple[str, ...]]:
    """The argument of LAG or LEAD, and its constants: how many rows away, and the value where there is none."""
    if not isinstance(node, exp.Anonymous) or not 1 <= len(node.expressions) <= 3:
        raise SqlError(f"{function} takes a value, a number of rows and a default", at=node)
    compiled = [session.compile(e, scope) for e in node.expressions]
    known = [c for c in compiled if c is not None]
    if len(known) < len(compiled):
        raise QueryRejected
    for constant, each in zip(known[1:], node.expressions[1:], strict=True):
        if not isinstance(constant, Literal):
            raise SqlError(f"the number of rows and the default of {function} are constants", at=each)
    constants = [c.text for c in known[1:2] if isinstance(c, Literal)]
    if not all(text.isdigit() and int(text) <= MOST_ROWS for text in constants):
        raise SqlError(f"{function} takes a whole number of rows up to {MOST_ROWS}", at=node.expressions[1])
    if len(known) == 3:
        if not assignable(known[2].type, known[0].type):
            raise SqlError(
                f"the default of {function} is {flink(known[2].type)}, its value {flink(known[0].type)}",
                hint="use CAST",
                at=node.expressions[2],
            )
        default = cast(known[2], known[0].type, implicit=True, zone=session.zone)
        constants.append(render(default))
    return known[0], tuple(constants) or ("1",)


def _numbered(node: exp.Expr, scope: Scope, session: ResolveContext) -> tuple[Expression, str]:
    """The argument of NTH_VALUE, and which row of the frame it reads."""
    if not isinstance(node, exp.Anonymous) or len(node.expressions) != 2:
        raise SqlError("NTH_VALUE takes a value and the number of a row", at=node)
    argument = session.compile(node.expressions[0], scope)
    if argument is None:
        raise QueryRejected
    number = node.expressions[1]
    if not isinstance(number, exp.Literal) or not number.name.isdigit() or not 1 <= int(number.name) <= MOST_ROWS:
        raise SqlError(f"NTH_VALUE takes a whole number of a row, from 1 to {MOST_ROWS}", at=number)
    return argument, number.name
