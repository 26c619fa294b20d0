"""Arguments that a template names often are written once.

A repeated expression would be computed each time, and its text would grow with every level of nesting; and one that is
not deterministic must be evaluated once only.
"""

from __future__ import annotations

from dataclasses import replace

from service.plan.expressions import Call, Column, Expression, Literal, render

_OFTEN = 2
"""Times up to which a short argument is written out: to bind it to a name costs more than to compute it twice."""

_LONG = 2_000
"""Characters of DuckDB text that are written once even where two would do: nested, they double with each level."""


def shared(expression: Expression) -> Expression:
    """Return `expression`, its long arguments bound to names if its template repeats them."""
    if not isinstance(expression, Call) or not any(_repeated(expression, i) for i in range(len(expression.arguments))):
        return expression
    places = range(len(expression.arguments))
    fields = ", ".join(f"a{i} := {{{i}}}" for i in places)
    body = expression.template
    for i in places:
        body = body.replace(f"{{{i}}}", f"x.a{i}")
    return replace(expression, template=f"list_transform([struct_pack({fields})], lambda x: {body})[1]")


def _repeated(call: Call, place: int) -> bool:
    argument = call.arguments[place]
    if isinstance(argument, Column | Literal):
        return False
    times = call.template.count(f"{{{place}}}")
    return times > 1 and (times > _OFTEN or not deterministic(argument) or len(render(argument)) > _LONG)


def deterministic(expression: Expression) -> bool:
    """Return whether `expression` has the same value each time it is evaluated over one row."""
    if isinstance(expression, Call):
        return expression.deterministic and all(map(deterministic, expression.arguments))
    return True
