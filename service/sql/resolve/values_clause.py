"""VALUES: constant rows."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from service.plan.expressions import Expression
from service.plan.nodes import Values
from service.plan.types import DataType
from service.sql.errors import SqlError
from service.sql.expressions.casts import cast, common_type
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.relation import Relation, field_for
from service.sql.scope import Scope


def resolve_values(values: exp.Values, session: ResolveContext) -> Relation:
    """Return the relation of VALUES (...), (...): constant rows, each column of one type."""
    empty = Scope()
    rows: list[list[Expression]] = []
    for row in values.expressions:
        cells = row.expressions if isinstance(row, exp.Tuple) else [row]
        compiled = [session.compile(cell, empty) for cell in cells]
        rows.append([c for c in compiled if c is not None])
        if len(rows[-1]) < len(compiled):
            raise QueryRejected
        if len(rows[-1]) != len(rows[0]):
            raise session.give_up(SqlError("the rows of VALUES differ in length", at=row))
    alias = values.args.get("alias")
    names = [c.name for c in alias.args.get("columns") or ()] if alias else []
    if names and len(names) != len(rows[0]):
        raise session.give_up(SqlError("the alias names another number of columns than VALUES has", at=alias))
    types: list[DataType] = []
    for position in range(len(rows[0])):
        kind = common_type([row[position].type for row in rows])
        if kind is None:
            raise session.give_up(
                SqlError(f"column {position + 1} of VALUES has types that do not go together", at=values)
            )
        types.append(kind)
    fields = tuple(
        replace(field_for(names[i] if names else f"EXPR${i}", rows[0][i], empty), type=kind)
        for i, kind in enumerate(types)
    )
    node = Values(
        rows=tuple(
            tuple(cast(cell, kind, implicit=True, zone=session.zone) for cell, kind in zip(row, types, strict=True))
            for row in rows
        ),
        fields=fields,
        place=session.place(values),
    )
    return Relation(node, Scope.of(fields, alias.name if alias else ""))
