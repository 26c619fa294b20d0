"""The enforcement of a sink's column types: NOT NULL, and the length of text.

A NULL in a NOT NULL column ends a Flink job; here it costs its own row, which goes to the dead-letter output, or under
'table.exec.sink.not-null-enforcer' = 'DROP' nowhere. The check is a filter, so that keys of the plan stay proven.
"""

from __future__ import annotations

from collections.abc import Sequence

from service.plan.expressions import Call, Expression
from service.plan.passes.push_filters import both
from service.plan.types import BOOLEAN, BYTES, STRING, Binary, DataType, Text
from service.sql.expressions.casts import cast
from service.sql.expressions.literals import quoted
from service.sql.resolve.context import ResolveContext
from service.sql.resolve.relation import Relation, column, filtered


def without_nulls(relation: Relation, columns: Sequence[tuple[int, str]], session: ResolveContext, at: int) -> Relation:
    """Return `relation` with the NULLs of `columns` refused; each has the name of the sink's column."""
    checks = [_check(column(relation.scope, index), name, session) for index, name in columns]
    condition = both(checks)
    return relation if condition is None else filtered(relation, condition, session.place(at))


def _check(value: Expression, name: str, session: ResolveContext) -> Expression:
    if session.drops_nulls:
        return Call("IS NOT NULL", (value,), BOOLEAN, "({0} IS NOT NULL)")
    # The text depends on the value, so that the cast fails in the row and not when the statement is prepared.
    message = quoted(f'column "{name}" is NOT NULL, but has no value').replace("{", "{{").replace("}", "}}")
    fails = f"CAST(concat({message}, CAST({{0}} AS VARCHAR)) AS BOOLEAN)"
    template = f"(CASE WHEN {{0}} IS NULL THEN {fails} ELSE true END)"
    return Call("NOT NULL", (value,), BOOLEAN, template, constants=(name,))


def fitted(value: Expression, to: DataType, session: ResolveContext) -> Expression:
    """Return `value` as the sink's column takes it; 'table.exec.sink.type-length-enforcer' says whether text is cut."""
    if session.trims_text and isinstance(to, Text | Binary):
        free = STRING if isinstance(to, Text) else BYTES
        return cast(cast(value, free, implicit=True, zone=session.zone), to, zone=session.zone)
    return cast(value, to, implicit=True, zone=session.zone)
