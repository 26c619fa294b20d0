"""TYPEOF: the name of a type, as Flink shows it, or in full, as Flink stores it."""

from __future__ import annotations

from service.plan.expressions import Call, Expression
from service.plan.types import NULL, STRING, Text, flink
from service.sql.errors import SqlError
from service.sql.expressions.context import Context
from service.sql.expressions.literals import boolean, null
from service.sql.functions.signature import Arguments, Table, built, is_constant, template_text


def _typeof(name: str, arguments: Arguments, context: Context) -> Expression:
    """TYPEOF(x[, in full]): NOT NULL is known of constants alone."""
    type_, whole = arguments[0].type, arguments[1:] == (boolean(True),)
    if len(arguments) == 2 and arguments[1] not in (boolean(True), boolean(False)):
        raise SqlError(f"the second argument of {name} must be TRUE or FALSE")
    if whole and isinstance(type_, Text) and not type_.length:
        # No table has a column of that type, and Flink stores no name of it.
        return null(STRING)
    nullability = " NOT NULL" if is_constant(arguments[0]) and type_ != NULL else ""
    text = flink(type_, in_full=whole) + nullability
    return Call(name, (), STRING, template_text(text), constants=(text,))


TYPE_NAMES: Table = {"TYPEOF": (built("ANY", _typeof), built("ANY, BOOLEAN", _typeof))}
