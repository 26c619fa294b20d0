"""The parts of an aggregate node, windowed or not: a projection of keys and arguments, and calls over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.plan.expression_text import describe
from service.plan.expressions import Column, Expression, Literal
from service.plan.nodes import AggregateCall, Field, Node, Place, Project, Union
from service.plan.types import BIGINT
from service.sql.expressions.literals import null
from service.sql.resolve.aggregate_calls import TypedCall
from service.sql.resolve.grouping_sets import SET
from service.sql.resolve.relation import Relation, field_for
from service.sql.scope import INTERNAL, Scope, ScopeColumn

_SET_SHOWN = "grouping set"


def key_alias(position: int) -> str:
    """Return the internal name of the key of a group at `position`."""
    return f"{INTERNAL}key{position}"


def call_alias(position: int) -> str:
    """Return the internal name of the aggregate at `position`."""
    return f"{INTERNAL}aggregate{position}"


@dataclass(frozen=True, slots=True)
class AggregateInputs:
    """The parts of an aggregate node: its input, the expressions of its keys and arguments, to be projected, and the
    columns that its keys and aggregates give.

    With grouping `sets` the keys come first and have a column of their own behind them, the number of the set; each row
    is there once for each set, with NULL for the keys that the set does not have.
    """

    relation: Relation
    expressions: tuple[Expression, ...]
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    columns: tuple[ScopeColumn, ...]
    sets: tuple[frozenset[int], ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of the keys and aggregates."""
        return tuple(c.field for c in self.columns)

    def with_column(self, index: int) -> tuple[AggregateInputs, int]:
        """Return the parts with the input's column `index` among the projected ones, and where it is."""
        field = self.relation.scope.field(index)
        wanted = Column(index, field.type, field.name)
        for place, expression in enumerate(self.expressions):
            replaced = self.sets and place < len(self.keys)
            if isinstance(expression, Column) and expression.index == index and not replaced:
                return self, place
        return replace(self, expressions=(*self.expressions, wanted)), len(self.expressions)

    def projection(self, place: Place) -> Node:
        """Return the rows that the aggregate reads."""
        scope = self.relation.scope
        fields = tuple(field_for(_shown(e, scope), e, scope) for e in self.expressions)
        node = self.relation.node
        if not self.sets:
            return Project(input=node, expressions=self.expressions, fields=fields, place=place)
        last = len(self.keys) - 1
        optional = set(range(last)) - frozenset.intersection(*self.sets)
        fields = tuple(
            replace(f.timeless if i <= last else f, nullable=f.nullable or i in optional) for i, f in enumerate(fields)
        )
        fields = (*fields[:last], replace(fields[last], name=_SET_SHOWN), *fields[last + 1 :])
        copies = tuple(
            Project(input=node, expressions=self._of_set(number), fields=fields, place=place)
            for number in range(len(self.sets))
        )
        return Union(inputs=copies, fields=fields, place=place)

    def _of_set(self, number: int) -> tuple[Expression, ...]:
        """What is projected of a row for one grouping set."""
        last = len(self.keys) - 1
        own = [e if i in self.sets[number] else null(e.type) for i, e in enumerate(self.expressions[:last])]
        return (*own, set_number(number), *self.expressions[last + 1 :])


def parts_of(
    relation: Relation,
    grouped: Sequence[Expression],
    found: Sequence[TypedCall],
    sets: tuple[frozenset[int], ...] = (),
) -> AggregateInputs:
    """Return the parts that every kind of aggregate node shares; `sets` has the positions of the keys of each grouping
    set."""
    scope = relation.scope
    expressions: list[Expression] = [*grouped, set_number(0)] if sets else []
    replaced = len(expressions)
    # Where there are sets a key is NULL at times, so an aggregate of it reads a column of its own.
    places: dict[Expression, int] = {}

    def place_of(expression: Expression) -> int:
        if expression not in places:
            places[expression] = len(expressions)
            expressions.append(expression)
        return places[expression]

    keys = tuple(range(replaced)) if sets else tuple(place_of(expression) for expression in grouped)
    calls = tuple(call.placed(place_of) for call in found)
    optional = frozenset(range(len(grouped))) - frozenset.intersection(*sets) if sets else frozenset[int]()
    key_columns = tuple(
        ScopeColumn(_key_field(e, scope, optional=i in optional), alias=key_alias(i)) for i, e in enumerate(grouped)
    )
    if sets:
        key_columns += (ScopeColumn(Field(_SET_SHOWN, BIGINT, False), alias=SET),)
    call_columns = tuple(
        ScopeColumn(
            Field(call.shown, call.type, call.function not in ("COUNT", "APPROX_COUNT_DISTINCT")), alias=call_alias(i)
        )
        for i, call in enumerate(found)
    )
    return AggregateInputs(relation, tuple(expressions), keys, calls, key_columns + call_columns, sets)


def _key_field(expression: Expression, scope: Scope, *, optional: bool) -> Field:
    field = field_for(_shown(expression, scope), expression, scope)
    return replace(field.timeless, nullable=True) if optional else field.keyed


def set_number(number: int) -> Literal:
    """Return the place of a grouping set among all, as an expression."""
    return Literal(f"CAST({number} AS BIGINT)", BIGINT, str(number))


def _shown(expression: Expression, scope: Scope) -> str:
    """The name of an expression's column, as `explain` shows it."""
    return scope.field(expression.index).name if isinstance(expression, Column) else describe(expression)
