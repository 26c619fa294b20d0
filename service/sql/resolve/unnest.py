"""UNNEST in FROM: the elements of an array, or the entries of a map, beside the row that holds them."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from service.plan.expressions import Call, Column, Literal
from service.plan.nodes import Field, Unnest, Values
from service.plan.types import INT, Array, DataType, Map, Multiset, Row, flink
from service.sql.errors import SqlError
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.relation import Relation, extended
from service.sql.scope import INTERNAL, Scope, ScopeColumn

_REPEATED = "flatten(list_transform(map_entries({0}), lambda e: list_resize([e.key], e.value, e.key)))"
"""Each element of a MULTISET as often as it is there."""


def single_row() -> Relation:
    """Return what an UNNEST at the beginning of FROM stands beside: one row without a column that can be named."""
    field = Field("row", INT, nullable=False)
    node = Values(rows=((Literal("CAST(0 AS INTEGER)", INT, "0"),),), fields=(field,))
    return Relation(node, Scope((ScopeColumn(field, alias=f"{INTERNAL}row"),)))


def unnested(left: Relation, unnest: exp.Unnest, *, outer: bool, session: ResolveContext) -> Relation:
    """Return `left` with the columns of each element of an array, map or multiset, which may be one of its columns."""
    if len(unnest.expressions) != 1:
        raise session.give_up(SqlError("UNNEST takes one ARRAY, MAP or MULTISET", at=unnest))
    written = unnest.expressions[0]
    expression = session.compile(written, left.scope)
    if expression is None:
        raise QueryRejected
    if isinstance(expression.type, Multiset):
        expression = Call("MULTISET elements", (expression,), Array(expression.type.key), _REPEATED)
    elements = _elements(expression.type)
    if elements is None:
        raise session.give_up(
            SqlError(f"UNNEST takes an ARRAY, a MAP or a MULTISET, not {flink(expression.type)}", at=written)
        )
    offset = unnest.args.get("offset")
    if offset:
        elements = [*elements, ("ORDINALITY", INT)]
    names = _names(unnest, session)
    if names and len(names) != len(elements):
        shown = ", ".join(f"{name} {flink(type_)}" for name, type_ in elements)
        raise session.give_up(
            SqlError(f"{len(names)} column names are given for {len(elements)} columns", detail=shown, at=unnest)
        )
    below = left if isinstance(expression, Column) else extended(left, [expression], session.place(unnest))
    index = expression.index if isinstance(expression, Column) else len(left.scope)
    fields = tuple(
        Field(names[i] if names else name, type_, nullable=outer or name != "ORDINALITY")
        for i, (name, type_) in enumerate(elements)
    )
    node = Unnest(
        input=below.node,
        column=index,
        ordinality=bool(offset),
        outer=outer,
        fields=(*below.fields, *fields),
        place=session.place(unnest),
    )
    alias = unnest.args.get("alias")
    qualifier = alias.name if alias is not None else ""
    if qualifier and qualifier in left.scope.qualifiers:
        raise session.give_up(
            SqlError(
                f'the name "{qualifier}" stands for two tables of the query',
                hint=f"name the elements otherwise: UNNEST(...) AS other_{qualifier}",
                at=unnest,
            )
        )
    columns = tuple(ScopeColumn(field, qualifier) for field in fields)
    return replace(below, node=node, scope=Scope((*below.scope.columns, *columns)))


def _elements(type_: DataType) -> list[tuple[str, DataType]] | None:
    """The columns of an element."""
    match type_:
        case Map(key, value):
            return [("KEY", key), ("VALUE", value)]
        case Array(Row(names, types)):
            return list(zip(names, types, strict=True))
        case Array(element):
            return [("f0", element)]
        case _:
            return None


def _names(unnest: exp.Unnest, session: ResolveContext) -> list[str]:
    """The names that the alias gives the columns; the parser takes the last for that of the ordinality."""
    alias, offset = unnest.args.get("alias"), unnest.args.get("offset")
    names = [] if alias is None else [c.name for c in alias.args.get("columns") or ()]
    return [*names, offset.name] if names and isinstance(offset, exp.Identifier) else names
