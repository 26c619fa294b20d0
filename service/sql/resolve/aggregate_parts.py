"""What an aggregate node is made of, windowed or not: a projection of keys and arguments, and calls over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.plan.expressions import Column, Expression, describe
from service.plan.nodes import AggregateCall, Field, Place, Project
from service.plan.table import TimeKind
from service.sql.resolve.aggregate_calls import TypedCall
from service.sql.resolve.relation import Relation, field_for
from service.sql.scope import INTERNAL, Scope, ScopeColumn


def key_alias(position: int) -> str:
    return f"{INTERNAL}key{position}"


def call_alias(position: int) -> str:
    return f"{INTERNAL}aggregate{position}"


@dataclass(frozen=True, slots=True)
class Parts:
    """What an aggregate node is made of: its input, the expressions of its keys and arguments, to be projected, and the
    columns that its keys and aggregates give."""

    relation: Relation
    expressions: tuple[Expression, ...]
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    columns: tuple[ScopeColumn, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(c.field for c in self.columns)

    def with_column(self, index: int) -> tuple[Parts, int]:
        """The parts with the input's column `index` among the projected ones, and where it is."""
        field = self.relation.scope.field(index)
        wanted = Column(index, field.type, field.name)
        for place, expression in enumerate(self.expressions):
            if isinstance(expression, Column) and expression.index == index:
                return self, place
        return replace(self, expressions=(*self.expressions, wanted)), len(self.expressions)

    def projection(self, place: Place) -> Project:
        scope = self.relation.scope
        fields = tuple(field_for(_shown(e, scope), e, scope) for e in self.expressions)
        return Project(input=self.relation.node, expressions=self.expressions, fields=fields, place=place)


def parts_of(relation: Relation, grouped: Sequence[Expression], found: Sequence[TypedCall]) -> Parts:
    """The parts that every kind of aggregate node shares."""
    scope = relation.scope
    expressions: list[Expression] = []

    def place_of(expression: Expression) -> int:
        if expression not in expressions:
            expressions.append(expression)
        return expressions.index(expression)

    keys = tuple(place_of(expression) for expression in grouped)
    calls = tuple(call.placed(place_of) for call in found)
    key_columns = tuple(
        ScopeColumn(replace(field_for(_shown(e, scope), e, scope), time=TimeKind.NONE), alias=key_alias(i))
        for i, e in enumerate(grouped)
    )
    call_columns = tuple(
        ScopeColumn(
            Field(call.shown, call.type, call.function not in ("COUNT", "APPROX_COUNT_DISTINCT")), alias=call_alias(i)
        )
        for i, call in enumerate(found)
    )
    return Parts(relation, tuple(expressions), keys, calls, key_columns + call_columns)


def _shown(expression: Expression, scope: Scope) -> str:
    """The name of an expression's column, as `explain` shows it."""
    return scope.field(expression.index).name if isinstance(expression, Column) else describe(expression)
