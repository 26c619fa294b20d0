"""A relation while a query is resolved: its node, what names its columns have, which windows they carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from service.plan.expression_text import describe
from service.plan.expressions import Column, Expression
from service.plan.nodes import Field, Filter, Node, Place, Project
from service.plan.table import TimeKind
from service.sql.scope import INTERNAL, Scope, ScopeColumn


@dataclass(frozen=True, slots=True)
class WindowColumns:
    """The windows that a relation carries, those of a window table function or a window aggregate: the positions of
    window_start, window_end and window_time; `field` describes the last. `attribute` is the position of the time
    attribute that a window table function was given, while the relation has it: a plain timestamp since."""

    start: int
    end: int
    time: int
    field: Field
    zone: str
    attribute: int | None = None

    def shifted(self, by: int) -> WindowColumns:
        """Return the same behind `by` other columns."""
        attribute = None if self.attribute is None else self.attribute + by
        return replace(self, start=self.start + by, end=self.end + by, time=self.time + by, attribute=attribute)

    def moved(self, places: Mapping[int, int]) -> WindowColumns:
        """Return the same where `places` says at which place each column that is still there now is."""
        attribute = None if self.attribute is None else places.get(self.attribute)
        return replace(
            self, start=places[self.start], end=places[self.end], time=places[self.time], attribute=attribute
        )


@dataclass(frozen=True, slots=True)
class Relation:
    """`node` gives the rows; `scope` has one column for each of its fields, in order."""

    node: Node
    scope: Scope
    windows: tuple[WindowColumns, ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of its columns."""
        return self.scope.fields

    def qualified(self, qualifier: str) -> Relation:
        """Return the relation under an alias."""
        return replace(self, scope=self.scope.qualified(qualifier))


def column(scope: Scope, index: int) -> Column:
    """Return a reference to the column at `index`."""
    field = scope.field(index)
    return Column(index, field.type, field.name)


def field_for(name: str, expression: Expression, scope: Scope) -> Field:
    """Return the field that `expression` makes; a plain column keeps its time attribute, and whether it may be NULL."""
    if isinstance(expression, Column):
        return replace(scope.field(expression.index), name=name)
    time = TimeKind.PROCESSING if getattr(expression, "name", "") == "PROCTIME" else TimeKind.NONE
    return Field(name, expression.type, True, time)


def extended(relation: Relation, added: Sequence[Expression], place: Place) -> Relation:
    """Return `relation` with more columns behind its own, which no name of the query finds."""
    if not added:
        return relation
    scope = relation.scope
    own = tuple(column(scope, i) for i in range(len(scope)))
    new = tuple(field_for(describe(e), e, scope) for e in added)
    node = Project(
        input=relation.node,
        expressions=(*own, *added),
        fields=scope.fields + new,
        place=place,
    )
    columns = tuple(ScopeColumn(f, alias=f"{INTERNAL}{f.name}") for f in new)
    return Relation(node, Scope(scope.columns + columns), relation.windows)


def filtered(relation: Relation, condition: Expression, place: Place) -> Relation:
    """Return the rows of `relation` for which `condition` is true."""
    return replace(relation, node=Filter(input=relation.node, condition=condition, place=place))


def projected(
    relation: Relation,
    items: Sequence[tuple[str, Expression]],
    place: Place,
    qualifier: str = "",
    written: Sequence[Place] = (),
) -> Relation:
    """Return one column an item, named, `written` there; windows are carried on where their start and end are.

    The window_time of such windows comes along, under no name, since whoever groups by them again needs it.
    """
    scope = relation.scope
    expressions = [e for _, e in items]
    columns = [ScopeColumn(field_for(name, e, scope), qualifier) for name, e in items]
    places: dict[int, int] = {}
    for position, expression in enumerate(expressions):
        if isinstance(expression, Column):
            places.setdefault(expression.index, position)
    windows: list[WindowColumns] = []
    for each in relation.windows:
        if each.start in places and each.end in places:
            if each.time not in places:
                places[each.time] = len(columns)
                expressions.append(column(scope, each.time))
                columns.append(ScopeColumn(scope.field(each.time), alias=f"{INTERNAL}window_time{len(columns)}"))
            windows.append(each.moved(places))
    fields = tuple(c.field for c in columns)
    of_windows = (place,) * (len(expressions) - len(items)) if written else ()
    node = Project(
        input=relation.node,
        expressions=tuple(expressions),
        fields=fields,
        place=place,
        places=(*written, *of_windows),
    )
    return Relation(node, Scope(tuple(columns)), tuple(windows))


def uniquely_named(relation: Relation, place: Place) -> Relation:
    """Return `relation`, of whose columns of one name the later ones get a number: id, id0, id1."""
    listed = relation.scope.starred()
    names = [relation.scope.field(i).name for i in listed]
    if len(set(names)) == len(names):
        return relation
    taken: set[str] = set()
    items: list[tuple[str, Expression]] = []
    for i, name in zip(listed, names, strict=True):
        new = next(n for n in (name, *(f"{name}{k}" for k in range(len(names) + 1))) if n not in taken)
        taken.add(new)
        items.append((new, column(relation.scope, i)))
    return projected(relation, items, place)


def visible(relation: Relation, place: Place) -> Relation:
    """Return the columns that `*` stands for, alone."""
    listed = relation.scope.starred()
    if len(listed) == len(relation.scope):
        return relation
    bare = replace(relation, windows=())
    return projected(bare, [(relation.scope.field(i).name, column(relation.scope, i)) for i in listed], place)
