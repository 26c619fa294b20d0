"""DISTINCT, UNION, INTERSECT and EXCEPT of rows that carry windows: answered once, when a window closes.

Equal rows are of one window, so that they are counted by window: how often a row is on each side says how often it is
in the answer. Nothing is retracted, and what is kept ends with the window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from service.plan.expressions import Call, Column, Expression, Literal
from service.plan.nodes import (
    AggregateCall,
    Attached,
    Field,
    Filter,
    Mode,
    Node,
    Place,
    Project,
    SetKind,
    Union,
    Unnest,
    WindowAggregate,
)
from service.plan.properties import mode
from service.plan.table import TimeKind
from service.plan.types import BIGINT, BOOLEAN, Array, Timestamp
from service.sql.expressions.casts import cast
from service.sql.resolve.relation import Relation, WindowColumns, column
from service.sql.scope import INTERNAL, Scope, ScopeColumn

_COPIES: Mapping[SetKind, str] = {
    SetKind.INTERSECT_ALL: "range(least({0}, {1}))",
    SetKind.EXCEPT_ALL: "range(greatest({0} - {1}, 0))",
}
"""An element for each copy that is in the answer, of the numbers of copies on the left and on the right."""


@dataclass(frozen=True, slots=True)
class SharedWindow:
    """The window that several relations carry at the same places of their shown columns; `time` is the place of
    window_time, None where not all of them show it. `columns` says where each relation itself has the window."""

    start: int
    end: int
    time: int | None
    columns: tuple[WindowColumns, ...]

    def carried(self, width: int) -> WindowColumns:
        """Return where `rows_of`, of `width` shown columns, has the window."""
        own = self.columns[0]
        return replace(own, start=self.start, end=self.end, time=width if self.time is None else self.time)


def shared_window(relations: Sequence[Relation]) -> SharedWindow | None:
    """Return the window that all of `relations` carry, if there is one that closes by the same kind of time for all.

    Retracted rows have none, since a window is answered once.
    """
    if any(mode(each.node) is not Mode.APPEND for each in relations):
        return None
    placed = [_placed(each) for each in relations]
    for bounds in placed[0]:
        if all(bounds in each for each in placed):
            columns = tuple(each[bounds] for each in placed)
            clocks = [r.scope.field(w.time) for r, w in zip(relations, columns, strict=True)]
            if len({(clock.time, clock.type) for clock in clocks}) == 1:
                times = {_place(r, w.time) for r, w in zip(relations, columns, strict=True)}
                return SharedWindow(*bounds, times.pop() if len(times) == 1 else None, columns)
    return None


def _placed(relation: Relation) -> dict[tuple[int, int], WindowColumns]:
    """The windows whose start and end are shown, by their places among the shown columns."""
    found: dict[tuple[int, int], WindowColumns] = {}
    for each in relation.windows:
        start, end = _place(relation, each.start), _place(relation, each.end)
        if start is not None and end is not None and relation.scope.field(each.time).time is not TimeKind.NONE:
            found[start, end] = each
    return found


def _place(relation: Relation, index: int) -> int | None:
    """The place of a column among those that are shown."""
    listed = relation.scope.starred()
    return listed.index(index) if index in listed else None


def rows_of(
    relation: Relation, window: SharedWindow, own: WindowColumns, fields: Sequence[Field], place: Place, zone: str
) -> Node:
    """Return the shown columns of `relation` with the types of `fields`, and window_time behind them where it is not
    among them."""
    scope = relation.scope
    time = replace(scope.field(own.time), name="window_time")
    listed = scope.starred()
    expressions = [
        cast(column(scope, i), f.type, implicit=True, zone=zone) for i, f in zip(listed, fields, strict=True)
    ]
    if window.time is None:
        expressions.append(column(scope, own.time))
    return Project(
        input=relation.node, expressions=tuple(expressions), fields=_with_time(fields, window, time), place=place
    )


def _with_time(fields: Sequence[Field], window: SharedWindow, time: Field) -> tuple[Field, ...]:
    return (*fields, time) if window.time is None else tuple(fields)


def windowed_union(inputs: Sequence[Node], width: int, window: SharedWindow, place: Place) -> Relation:
    """Return all rows of `inputs`, as `rows_of` gives them, `width` columns of which are shown."""
    node = inputs[0]
    if len(inputs) > 1:
        node = Union(inputs=tuple(inputs), fields=node.fields, place=place)
    return _carrying(node, width, window)


def windowed_distinct(node: Node, width: int, window: SharedWindow, place: Place) -> Relation:
    """Return each row of `node`, which is as `rows_of` gives it, once."""
    return _counted(node, width, window, (), place)


def windowed_set(kind: SetKind, left: Node, right: Node, width: int, window: SharedWindow, place: Place) -> Relation:
    """Return INTERSECT or EXCEPT of two inputs, as `rows_of` gives them."""
    inputs = tuple(_marked(node, of_left=of_left, place=place) for node, of_left in ((left, True), (right, False)))
    both = Union(inputs=inputs, fields=inputs[0].fields, place=place)
    marks = (len(both.fields) - 2, len(both.fields) - 1)
    calls = tuple(AggregateCall("COUNT", (), BIGINT, filter=mark) for mark in marks)
    counted = _counted(both, width, window, calls, place)
    copies = (column(counted.scope, len(counted.scope) - 2), column(counted.scope, len(counted.scope) - 1))
    node: Node
    if kind.all:
        listed = Call(f"copies of {kind.value}", copies, Array(BIGINT), _COPIES[kind])
        expressions: tuple[Expression, ...] = (*(column(counted.scope, i) for i in range(len(counted.scope))), listed)
        fields = (*counted.fields, Field("copies", listed.type, nullable=False))
        below = Project(input=counted.node, expressions=expressions, fields=fields, place=place)
        node = Unnest(
            input=below,
            column=len(fields) - 1,
            ordinality=False,
            outer=False,
            fields=(*fields, Field("copy", BIGINT, nullable=False)),
            place=place,
        )
    else:
        node = Filter(input=counted.node, condition=_is_there(kind, copies), place=place)
    kept = len(counted.scope) - 2
    alone = tuple(column(counted.scope, i) for i in range(kept))
    return _carrying(Project(input=node, expressions=alone, fields=counted.fields[:kept], place=place), width, window)


def _is_there(kind: SetKind, copies: tuple[Column, Column]) -> Expression:
    """Whether a row is in the answer once."""
    sign = ">" if kind is SetKind.INTERSECT else "="
    zero = Literal("CAST(0 AS BIGINT)", BIGINT, "0")
    left = Call(">", (copies[0], zero), BOOLEAN, "({0} > {1})")
    right = Call(sign, (copies[1], zero), BOOLEAN, f"({{0}} {sign} {{1}})")
    return Call("AND", (left, right), BOOLEAN, "({0} AND {1})")


def _marked(node: Node, *, of_left: bool, place: Place) -> Node:
    """The rows of one side with two more columns: whether they are of the left, and whether of the right."""
    own = tuple(Column(i, f.type, f.name) for i, f in enumerate(node.fields))
    marks = tuple(Literal(str(mark).lower(), BOOLEAN, str(mark).upper()) for mark in (of_left, not of_left))
    names = (Field("left copies", BOOLEAN, nullable=False), Field("right copies", BOOLEAN, nullable=False))
    return Project(input=node, expressions=(*own, *marks), fields=(*node.fields, *names), place=place)


def _counted(node: Node, width: int, window: SharedWindow, calls: tuple[AggregateCall, ...], place: Place) -> Relation:
    """The distinct rows of each window, as `rows_of` has their columns, and behind them what `calls` count."""
    carried = window.carried(width)
    bounds = (carried.start, carried.end, carried.time)
    keys = [i for i in range(width) if i not in bounds]
    counts = [Field(node.fields[c.filter].name, BIGINT, nullable=False) for c in calls if c.filter is not None]
    rows = [
        *(node.fields[k].timeless for k in keys),
        *counts,
        Field(node.fields[carried.start].name, Timestamp(3), nullable=False),
        Field(node.fields[carried.end].name, Timestamp(3), nullable=False),
        replace(window.columns[0].field, name=node.fields[carried.time].name),
    ]
    aggregate = WindowAggregate(
        input=node,
        time=carried.time,
        window=Attached(carried.start, carried.end),
        keys=tuple(keys),
        aggregates=calls,
        fields=tuple(rows),
        zone=carried.zone,
        place=place,
    )
    first = len(keys) + len(calls)
    places = {k: i for i, k in enumerate(keys)} | {b: first + i for i, b in enumerate(bounds)}
    order = [*(places[i] for i in sorted(places)), *range(len(keys), first)]
    scope = Scope.of(aggregate.fields)
    fields = tuple(aggregate.fields[i] for i in order)
    inorder = Project(input=aggregate, expressions=tuple(column(scope, i) for i in order), fields=fields, place=place)
    if calls:
        return Relation(inorder, Scope.of(fields))
    return _carrying(inorder, width, window)


def _carrying(node: Node, width: int, window: SharedWindow) -> Relation:
    """The relation of `node`, whose columns are `width` shown ones, and window_time where these lack it."""
    columns = tuple(ScopeColumn(f, alias="" if i < width else f"{INTERNAL}{f.name}") for i, f in enumerate(node.fields))
    return Relation(node, Scope(columns), (window.carried(width),))
