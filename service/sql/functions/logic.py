"""Comparison, three-valued logic and choice: =, AND, IS TRUE, IN, LIKE, CASE, COALESCE and their kin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from service.plan import types
from service.plan.expressions import COMPARISONS, NEVER_FAIL, Call, Column, Expression, may_fail
from service.plan.types import BOOLEAN, Row, Timestamp, TimestampLtz, flink
from service.sql.errors import SqlError
from service.sql.expressions.casts import cast
from service.sql.expressions.context import Context
from service.sql.expressions.type_rules import common_type, is_numeric, is_text
from service.sql.functions.signature import Arguments, Table, built, plain


def unified(arguments: Sequence[Expression], context: Context, what: str) -> tuple[Expression, ...]:
    """Return `arguments`, all cast to the type that they have in common. Raises SqlError if there is none; `what`, in
    it, is what needs one."""
    type_ = common_type([a.type for a in arguments])
    if type_ is None:
        given = ", ".join(dict.fromkeys(flink(a.type) for a in arguments))
        raise SqlError(f"{what} needs values of one type", detail=f"the types are {given}", hint="use CAST")
    return tuple(cast(a, type_, implicit=True, zone=context.zone) for a in arguments)


def comparable(
    left: Expression, right: Expression, context: Context, equality: bool = True
) -> tuple[Expression, Expression]:
    """Return both sides of a comparison in a form that can be compared: text beside another type is read as a value of
    that type. Raises SqlError if that is not possible, as for the equality of a number and a text."""
    if is_numeric(left.type) and is_numeric(right.type):
        # DuckDB compares any two numbers by value, but would make a DECIMAL beside a FLOAT a FLOAT.
        if types.FLOAT in (left.type, right.type) and left.type != right.type:
            return cast(left, types.DOUBLE), cast(right, types.DOUBLE)
        return left, right
    match left.type, right.type:
        # An instant meets a wall clock as what the clocks of the session's zone show.
        case (TimestampLtz(p), Timestamp() | types.DATE):
            left = cast(left, Timestamp(p), zone=context.zone)
        case (Timestamp() | types.DATE, TimestampLtz(p)):
            right = cast(right, Timestamp(p), zone=context.zone)
    if is_text(left.type) != is_text(right.type) and types.NULL not in (left.type, right.type):
        if equality and (is_numeric(left.type) or is_numeric(right.type)):
            raise SqlError(f"{flink(left.type)} and {flink(right.type)} cannot be compared", hint="use CAST")
        if is_text(left.type):
            return cast(left, right.type, zone=context.zone), right
        return left, cast(right, left.type, zone=context.zone)
    a, b = unified((left, right), context, "a comparison")
    return a, b


def _comparison(name: str, arguments: Arguments, context: Context) -> Expression:
    left, right = comparable(arguments[0], arguments[1], context, equality=name not in _ORDERS)

    return Call(name, (left, right), BOOLEAN, f"({{0}} {name} {{1}})")


def _between(name: str, arguments: Arguments, context: Context) -> Expression:
    value, low, high = arguments
    (left, first), (same, second) = comparable(value, low, context, False), comparable(value, high, context, False)
    if left == same:
        inside = Call("BETWEEN", (left, first, second), BOOLEAN, "({0} BETWEEN {1} AND {2})")
    else:
        tests = (_comparison(">=", (value, low), context), _comparison("<=", (value, high), context))
        inside = Call("AND", tests, BOOLEAN, "({0} AND {1})")
    if name == "BETWEEN":
        return inside
    return Call("OR", (inside, _between("BETWEEN", (value, high, low), context)), BOOLEAN, "({0} OR {1})")


def _among(name: str, arguments: Arguments, context: Context) -> Expression:
    value, *candidates = arguments
    if all(is_text(a.type) or a.type == types.NULL for a in arguments):
        found = tuple(cast(a, types.STRING) if a.type == types.NULL else a for a in arguments)
    else:
        pairs = [comparable(value, c, context) for c in candidates]
        if any(left is not value for left, _ in pairs):
            tests = tuple(Call("=", pair, BOOLEAN, "({0} = {1})") for pair in pairs)
            return Call("OR", tests, BOOLEAN, "(" + " OR ".join(f"{{{i}}}" for i in range(len(tests))) + ")")
        found = (value, *(right for _, right in pairs))
    listed = ", ".join(f"{{{i}}}" for i in range(1, len(found)))
    return Call("IN", found, BOOLEAN, f"({{0}} IN ({listed}))")


def _connected(name: str, arguments: Arguments, context: Context) -> Expression:
    """AND and OR: what the operands before decide is decided, even where a later one cannot be computed.

    DuckDB computes both operands of a connective for all rows; the branches of CASE only for the rows that reach them.
    """
    left, right = arguments
    if not may_fail(right):
        return Call(name, arguments, BOOLEAN, f"({{0}} {name} {{1}})")
    operands = (*left.arguments, right) if _is_chain(left, name) else arguments
    decided = ("WHEN NOT {%d} THEN false" if name == "AND" else "WHEN {%d} THEN true").__mod__
    whens = " ".join(map(decided, range(len(operands) - 1)))
    every = f" {name} ".join(f"{{{i}}}" for i in range(len(operands)))
    # An operand that decides nothing and is never NULL leaves the others alone.
    *before, last = range(len(operands))
    open_ones = (*(b for b in before if not _never_null(operands[b])), last)
    rest = f" {name} ".join(f"{{{i}}}" for i in open_ones)
    fails = any(map(_fails_at_times, operands[1:]))
    places = tuple(Column(i, BOOLEAN) for i in range(len(operands)))
    faster = Call(name, places, BOOLEAN, f"CASE {whens} ELSE ({rest}) END" if fails else f"({every})")
    return Call(name, operands, BOOLEAN, f"CASE {whens} ELSE ({every}) END", faster=faster)


def _is_chain(expression: Expression, name: str) -> TypeGuard[Call]:
    """Whether `expression` is what `_connected` made of operands that may fail: one more joins them."""
    return isinstance(expression, Call) and expression.name == name and may_fail(expression.arguments[-1])


def _fails_at_times(expression: Expression) -> bool:
    """Whether `expression` may have no value for a row: a field taken out of a ROW has one, and so has what
    is only given another type."""
    if not isinstance(expression, Call):
        return False
    taken = expression.name.startswith(".") and isinstance(expression.arguments[0].type, Row)
    there = taken or expression.name in NEVER_FAIL or expression.template == "{0}"
    return not there or any(map(_fails_at_times, expression.arguments))


def _never_null(expression: Expression) -> bool:
    """Whether `expression` is true or false whatever its operands are."""
    if not isinstance(expression, Call):
        return False
    if expression.name in ("AND", "OR", "NOT"):
        return all(map(_never_null, expression.arguments))
    return expression.name in _NEVER_NULL


def _case(name: str, arguments: Arguments, context: Context) -> Expression:
    """Conditions and values in turn, then the value of ELSE."""
    conditions, values = arguments[:-1:2], (*arguments[1:-1:2], arguments[-1])
    for condition in conditions:
        if condition.type not in (BOOLEAN, types.NULL):
            raise SqlError(f"a condition is a BOOLEAN, not {flink(condition.type)}")
    results = unified(values, context, name)
    parts = [a for pair in zip(conditions, results, strict=False) for a in pair]
    whens = " ".join(f"WHEN {{{i}}} THEN {{{i + 1}}}" for i in range(0, len(parts), 2))
    template = f"CASE {whens} ELSE {{{len(parts)}}} END"
    return Call(name, (*parts, results[-1]), results[-1].type, template)


def _coalesce(name: str, arguments: Arguments, context: Context) -> Expression:
    values = unified(arguments, context, name)
    listed = ", ".join(f"{{{i}}}" for i in range(len(values)))
    return Call(name, values, values[0].type, f"coalesce({listed})")


def _extreme(name: str, arguments: Arguments, context: Context) -> Expression:
    """GREATEST and LEAST: NULL if any argument is, where DuckDB passes over it."""
    values = unified(arguments, context, name)
    places = [f"{{{i}}}" for i in range(len(values))]
    known = " AND ".join(f"{p} IS NOT NULL" for p in places)
    return Call(name, values, values[0].type, f"CASE WHEN {known} THEN {name.lower()}({', '.join(places)}) END")


def _nullif(name: str, arguments: Arguments, context: Context) -> Expression:
    first, second = arguments
    left, right = comparable(first, second, context)
    if left is first:
        return Call(name, (first, right), first.type, "CASE WHEN {0} = {1} THEN NULL ELSE {0} END")
    equal = _comparison("=", (first, second), context)
    return Call(name, (equal, first), first.type, "CASE WHEN {0} THEN NULL ELSE {1} END")


def _if(name: str, arguments: Arguments, context: Context) -> Expression:
    return _case(name, arguments, context)


_ORDERS = ("<", "<=", ">", ">=")
_NEVER_NULL = {"IS NULL", "IS TRUE", "IS FALSE", "IS NOT DISTINCT FROM", "IS DISTINCT FROM"}

ONLY_ROW = "ONLY ROW"
"""The function that SINGLE_VALUE becomes, over the least value of a group and how many rows it has; no name that a user
can call has a blank."""

_SEVERAL_ROWS = (
    "(CASE WHEN (CASE WHEN {1} > 1 THEN CAST(concat('SINGLE_VALUE of ', CAST({1} AS VARCHAR), ' rows') AS BOOLEAN)"
    " ELSE true END) THEN {0} END)"
)
"""A text that is no BOOLEAN where there are several rows, which fails in the row itself."""


def _only_row(name: str, arguments: Arguments, context: Context) -> Expression:
    return Call(name, arguments, arguments[0].type, _SEVERAL_ROWS)


LOGIC: Table = {
    ONLY_ROW: (built("ANY, INTEGER", _only_row),),
    **{name: (built("ANY, ANY", _comparison),) for name in COMPARISONS},
    "AND": (built("BOOLEAN, BOOLEAN", _connected),),
    "OR": (built("BOOLEAN, BOOLEAN", _connected),),
    "NOT": (plain("BOOLEAN", BOOLEAN, "(NOT {0})"),),
    "IS NULL": (plain("ANY", BOOLEAN, "({0} IS NULL)"),),
    "IS TRUE": (plain("BOOLEAN", BOOLEAN, "({0} IS TRUE)"),),
    "IS FALSE": (plain("BOOLEAN", BOOLEAN, "({0} IS FALSE)"),),
    "BETWEEN": (built("ANY, ANY, ANY", _between),),
    "BETWEEN SYMMETRIC": (built("ANY, ANY, ANY", _between),),
    "IN": (built("ANY, ANY*", _among),),
    "CASE": (built("ANY, ANY, ANY*", _case),),
    "IF": (built("BOOLEAN, ANY, ANY", _if),),
    "COALESCE": (built("ANY, ANY*", _coalesce),),
    "IFNULL": (built("ANY, ANY", _coalesce),),
    "NULLIF": (built("ANY, ANY", _nullif),),
    "GREATEST": (built("ANY, ANY*", _extreme),),
    "LEAST": (built("ANY, ANY*", _extreme),),
}
