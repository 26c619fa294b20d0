"""Many terms of one operator, a + b + c + ..., as an expression that does not nest once for each of them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from service.plan import types
from service.plan.expressions import FEW, Call, Expression, Literal, balanced, render
from service.plan.types import DataType
from service.sql.compiler.function_calls import applied
from service.sql.expressions.casts import cast
from service.sql.expressions.context import Context
from service.sql.expressions.type_rules import is_numeric

_ASSOCIATIVE = ("AND", "OR", "||")


def terms(node: exp.Expr) -> list[exp.Expr]:
    """Return the operands of `node` and of what is grouped to its left by the same operator, in their order."""
    kind, found = type(node), []
    while type(node) is kind:
        found.append(node.expression)
        node = node.this
    return [node, *reversed(found)]


def chained(name: str, operands: Sequence[Expression], context: Context) -> Expression:
    """Return `operands` put together by the operator `name`, which groups from the left.

    Sums keep their order, since that of DOUBLE and an overflow depend on it: once the type of the total stays the same,
    the rest is folded into it one by one.
    """

    def join(left: Expression, right: Expression) -> Expression:
        return applied(name, (left, right), context)

    if name in _ASSOCIATIVE or len(operands) <= FEW:
        return balanced(operands, join)
    totals = _totals(name, [o.type for o in operands], context)
    last = totals[-1]
    stable = totals.index(last) + 1
    total = operands[0]
    for operand in operands[1:stable]:
        total = join(total, operand)
    rest = operands[stable:]
    if not rest or not all(_fits(operand.type, last) for operand in rest):
        for operand in rest:
            total = join(total, operand)
        return total
    pair = join(Literal("x", last), Literal("y", last))
    step = render(pair).replace("{", "{{").replace("}", "}}")
    listed = ", ".join(f"{{{i}}}" for i in range(len(rest) + 1))
    arguments = (total, *(cast(operand, last, implicit=True) for operand in rest))
    versions = pair.versions if isinstance(pair, Call) else ()
    return Call(name, arguments, last, f"list_reduce([{listed}], lambda x, y: {step})", versions=versions)


def _totals(name: str, given: Sequence[DataType], context: Context) -> list[DataType]:
    """The type of the total after each operand."""
    totals = [given[0]]
    known: dict[tuple[DataType, DataType], DataType] = {}
    for type_ in given[1:]:
        pair = (totals[-1], type_)
        if pair not in known:
            known[pair] = applied(name, [Literal("0", t) for t in pair], context).type
        totals.append(known[pair])
    return totals


def _fits(type_: DataType, total: DataType) -> bool:
    """Whether an operand may be cast to the type of the total first: its value is not changed by that."""
    return is_numeric(type_) and is_numeric(total) and not (type_ == types.DOUBLE and total == types.FLOAT)
