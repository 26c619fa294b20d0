"""TYPEOF: the name of a type, as Flink shows it, or in full, as Flink stores it."""

from __future__ import annotations

from service.plan.expressions import Call, Expression
from service.plan.types import BYTES, NULL, STRING, Array, DataType, Map, Multiset, Row, Text, TimestampLtz, flink
from service.sql.errors import SqlError
from service.sql.expressions.context import Context
from service.sql.expressions.literals import boolean, null
from service.sql.functions.signature import Arguments, Table, built, is_constant, template_text

_LONGEST = 2_147_483_647
"""The length of STRING and BYTES."""


def _typeof(name: str, arguments: Arguments, context: Context) -> Expression:
    """TYPEOF(x[, in full]): NOT NULL is known of constants alone."""
    type_, whole = arguments[0].type, arguments[1:] == (boolean(True),)
    if len(arguments) == 2 and arguments[1] not in (boolean(True), boolean(False)):
        raise SqlError(f"the second argument of {name} must be TRUE or FALSE")
    if whole and isinstance(type_, Text) and not type_.length:
        # No table has a column of that type, and Flink stores no name of it.
        return null(STRING)
    nullability = " NOT NULL" if is_constant(arguments[0]) and type_ != NULL else ""
    text = (in_full(type_) if whole else flink(type_)) + nullability
    return Call(name, (), STRING, template_text(text), constants=(text,))


def in_full(type_: DataType) -> str:
    """Return how Flink writes a type that it stores, without the short names.

    >>> in_full(Array(STRING))
    'ARRAY<VARCHAR(2147483647)>'
    """
    if type_ == STRING:
        return f"VARCHAR({_LONGEST})"
    if type_ == BYTES:
        return f"VARBINARY({_LONGEST})"
    match type_:
        case TimestampLtz(precision):
            return f"TIMESTAMP({precision}) WITH LOCAL TIME ZONE"
        case Array(element):
            return f"ARRAY<{in_full(element)}>"
        case Multiset(element):
            return f"MULTISET<{in_full(element)}>"
        case Map(key, value):
            return f"MAP<{in_full(key)}, {in_full(value)}>"
        case Row(names, types):
            return "ROW<" + ", ".join(f"`{n}` {in_full(t)}" for n, t in zip(names, types, strict=True)) + ">"
        case _:
            return flink(type_)


TYPE_NAMES: Table = {"TYPEOF": (built("ANY", _typeof), built("ANY, BOOLEAN", _typeof))}
