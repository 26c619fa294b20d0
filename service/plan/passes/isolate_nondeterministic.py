"""Lots are drawn before anything is computed from them.

A row that cannot be computed is computed a second time, apart from the others: by then RAND() would be another number.
And DuckDB lets nothing stand inside TRY that draws. So a RAND() or UUID() becomes a column of a projection of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from service.plan.expressions import Call, Column, Expression, deterministic
from service.plan.nodes import Field, Filter, Job, Node, Project
from service.plan.walk import fields, rewrite


def draw_first(job: Job) -> Job:
    """Put a projection that draws under each one, and each filter, that computes with what is drawn."""
    return rewrite(job, lambda node, _: _apart(node))


def _apart(node: Node) -> Node:
    match node:
        case Project(expressions=expressions) if not (all(map(deterministic, expressions)) or _only_draws(expressions)):
            draws = _Draws(node.input)
            computed = tuple(draws.without(each) for each in expressions)
            return replace(node, input=draws.projection(node), expressions=computed)
        case Filter(condition=condition) if not deterministic(condition):
            draws = _Draws(node.input)
            computed_condition = draws.without(condition)
            kept = fields(node.input)
            below = replace(node, input=draws.projection(node), condition=computed_condition)
            return Project(input=below, expressions=_columns(kept), fields=kept, place=node.place)
        case _:
            return node


@dataclass(slots=True)
class _Draws:
    """What is drawn for the rows of `below`: columns that follow its own."""

    below: Node
    drawn: list[Call] = field(default_factory=list)

    def without(self, expression: Expression) -> Expression:
        """`expression` with a column for everything in it that draws; what stands there twice is drawn twice."""
        if not isinstance(expression, Call) or deterministic(expression):
            return expression
        if not expression.deterministic and all(map(deterministic, expression.arguments)):
            self.drawn.append(expression)
            return Column(len(fields(self.below)) + len(self.drawn) - 1, expression.type, expression.name)
        return replace(expression, arguments=tuple(map(self.without, expression.arguments)))

    def projection(self, reader: Project | Filter) -> Project:
        """All of `below`, and what was drawn."""
        own = fields(self.below)
        made = tuple(Field(each.name, each.type, nullable=False) for each in self.drawn)
        expressions = (*_columns(own), *self.drawn)
        return Project(input=self.below, expressions=expressions, fields=(*own, *made), place=reader.place)


def _only_draws(expressions: Iterable[Expression]) -> bool:
    """Whether nothing is computed, so that nothing can fail."""
    return not any(isinstance(each, Call) and (each.deterministic or each.arguments) for each in expressions)


def _columns(of: tuple[Field, ...]) -> tuple[Expression, ...]:
    return tuple(Column(i, each.type, each.name) for i, each in enumerate(of))
