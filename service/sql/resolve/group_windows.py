"""Windows that group: TUMBLE(ts, ...) in GROUP BY, or the window columns of a window table function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from sqlglot import exp

from service.plan.expressions import Column, columns_of
from service.plan.nodes import Attached, Field, Filter, Firing, Node, Place, Window, WindowAggregate, WindowRows
from service.plan.nodes import Session as SessionWindow
from service.plan.table import TimeKind
from service.plan.types import Timestamp
from service.plan.walk import fields as fields_of
from service.sql.errors import SqlError
from service.sql.resolve.aggregate_parts import AggregateInputs
from service.sql.resolve.context import ResolveContext
from service.sql.resolve.kept_times import with_time
from service.sql.resolve.relation import Relation, WindowColumns
from service.sql.resolve.syntax import call_name, names_of
from service.sql.resolve.windows import (
    GROUP_WINDOWS,
    group_call,
    time_attribute,
    window_time,
    window_zone,
)
from service.sql.scope import INTERNAL, Scope, ScopeColumn

START, END, TIME = (f"{INTERNAL}{name}" for name in ("window_start", "window_end", "window_time"))
_ENDS = {"START": START, "END": END, "ROWTIME": TIME, "PROCTIME": TIME}


@dataclass(frozen=True, slots=True)
class GroupWindow:
    """The window that a query groups by: a `function` in GROUP BY, or `columns` of the input, which give its start, end
    and time the names that they have over the aggregate."""

    scope: Scope
    time: int
    window: Window
    field: Field
    zone: str
    function: str
    columns: Mapping[int, str]

    def is_key(self, node: exp.Expr) -> bool:
        """Return whether `node`, of GROUP BY, is the window or a bound of it."""
        return call_name(node) == self.function if self.function else bool(self._column(node))

    def bound(self, node: exp.Expr) -> str:
        """Return the internal name of the bound that `node` computes, or nothing."""
        return self._end(node) if self.function else self._column(node)

    def _column(self, node: exp.Expr) -> str:
        if not isinstance(node, exp.Column):
            return ""
        try:
            return self.columns.get(self.scope.lookup(names_of(node)).index, "")
        except SqlError:
            return ""

    def _end(self, node: exp.Expr) -> str:
        """TUMBLE_START(ts, ...) and its companions, which must be about the window grouped by."""
        function, _, end = call_name(node).partition("_")
        if function != self.function or end not in _ENDS:
            return ""
        call = group_call(node)
        about = time_attribute(call.arguments["TIMECOL"], self.scope, call_name(node)), call.window()
        if about != (self.time, self.window):
            raise SqlError(
                f"{call_name(node)} is about another window than GROUP BY",
                hint=f"give it the arguments of {self.function} in GROUP BY",
                at=node,
            )
        processing = self.field.time is TimeKind.PROCESSING
        if end == ("ROWTIME" if processing else "PROCTIME"):
            other = "PROCTIME" if processing else "ROWTIME"
            raise SqlError(
                f"{call_name(node)} does not fit the window",
                detail=f"it is a window in {'processing' if processing else 'event'} time",
                hint=f"write {function}_{other}",
                at=node,
            )
        return _ENDS[end]


def with_window_time(nodes: Sequence[exp.Expr], relation: Relation, session: ResolveContext) -> Relation:
    """Return `relation`, in which the times that the windows among `nodes` are about are time attributes, if they can
    be."""
    for node in nodes:
        if call_name(node) in GROUP_WINDOWS:
            with suppress(SqlError):
                relation = with_time(relation, group_call(node).arguments["TIMECOL"], session)
    return relation


def find_group_window(nodes: list[exp.Expr], relation: Relation, session: ResolveContext) -> GroupWindow | None:
    """Return the window among the expressions of GROUP BY, None if there is none. Raises SqlError for one that is not
    possible."""
    functions = [n for n in nodes if call_name(n) in GROUP_WINDOWS]
    if len(functions) > 1:
        raise SqlError("a query groups by one window at most", at=functions[1])
    return _function(functions[0], relation, session) if functions else _columns(nodes, relation)


def _function(node: exp.Expr, relation: Relation, session: ResolveContext) -> GroupWindow:
    call = group_call(node)
    scope = relation.scope
    time = time_attribute(call.arguments["TIMECOL"], scope, f"the window {call.name}")
    shape = call.window()
    field = scope.field(time)
    return GroupWindow(
        scope=scope,
        time=time,
        window=shape,
        field=window_time(field),
        zone=window_zone(field, session.zone),
        function=call.name,
        columns={},
    )


def _columns(nodes: list[exp.Expr], relation: Relation) -> GroupWindow | None:
    """The window whose start and end are both grouped by."""
    grouped: dict[int, exp.Expr] = {}
    for node in nodes:
        if isinstance(node, exp.Column):
            try:
                grouped.setdefault(relation.scope.lookup(names_of(node)).index, node)
            except SqlError:
                continue
    for columns in relation.windows:
        if columns.start in grouped and columns.end in grouped:
            return _carried(columns, relation)
    return None


def _carried(columns: WindowColumns, relation: Relation) -> GroupWindow:
    return GroupWindow(
        scope=relation.scope,
        time=columns.time,
        window=Attached(columns.start, columns.end),
        field=columns.field,
        zone=columns.zone,
        function="",
        columns={columns.start: START, columns.end: END, columns.time: TIME},
    )


def windowed(parts: AggregateInputs, window: GroupWindow, place: Place, firing: Firing | None = None) -> Relation:
    """Return the aggregate per window and key. Where the windows were just given to the rows by a table function, and
    nothing else reads them, the rows are aggregated straight away; else by the windows that they carry."""
    added = (
        ScopeColumn(Field("window_start", Timestamp(3), False), alias=START),
        ScopeColumn(Field("window_end", Timestamp(3), False), alias=END),
        ScopeColumn(replace(window.field, name="window_time"), alias=TIME),
    )
    # A window comes out when it closes, long after the times that are among its keys.
    scope = Scope((*Scope(parts.columns).without_time().columns, *added))
    time, shape = window.time, window.window
    direct = _unwindowed(parts) if isinstance(shape, Attached) else None
    if direct is not None:
        rows, below = direct
        parts = replace(parts, relation=below)
        time, shape = rows.time, rows.window
        if isinstance(shape, SessionWindow):
            shape = SessionWindow(shape.gap)
    parts, time_place = parts.with_column(time)
    if isinstance(shape, Attached):
        parts, start = parts.with_column(shape.start)
        parts, end = parts.with_column(shape.end)
        shape = Attached(start, end)
    node = WindowAggregate(
        input=parts.projection(place),
        time=time_place,
        window=shape,
        keys=parts.keys,
        aggregates=parts.calls,
        fields=scope.fields,
        zone=window.zone,
        firing=firing,
        place=place,
    )
    width = len(parts.fields)
    carried = WindowColumns(width, width + 1, width + 2, added[2].field, window.zone)
    return Relation(node, scope, (carried,))


def _unwindowed(parts: AggregateInputs) -> tuple[WindowRows, Relation] | None:
    """The window table function under `parts`, and its input with the filters in between, if neither they nor the
    projected expressions read the window. Sessions are those of the keys, and of all rows, or the answer is another."""
    filters: list[Filter] = []
    node: Node = parts.relation.node
    while isinstance(node, Filter):
        filters.append(node)
        node = node.input
    if not isinstance(node, WindowRows):
        return None
    if isinstance(node.window, SessionWindow):
        keys = {e.index if isinstance(e, Column) else -1 for e in (parts.expressions[k] for k in parts.keys)}
        if filters or keys != set(node.window.partition):
            return None
    width = len(node.fields) - 3
    read = [i for e in (*parts.expressions, *(f.condition for f in filters)) for i in columns_of(e)]
    if any(i >= width for i in read):
        return None
    below: Node = node.input
    for each in reversed(filters):
        below = replace(each, input=below)
    columns = zip(parts.relation.scope.columns[:width], fields_of(node.input), strict=True)
    return node, Relation(below, Scope(tuple(replace(c, field=f) for c, f in columns)))
