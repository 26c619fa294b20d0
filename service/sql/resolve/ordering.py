"""ORDER BY, LIMIT, OFFSET and FETCH of a query: the first rows of all, or all rows in the order of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from service.plan.expression_text import describe
from service.plan.nodes import OrderBy, Project, TimeSort, TopN
from service.plan.table import TimeKind
from service.sql.errors import SqlError
from service.sql.resolve.context import ResolveContext, not_yet
from service.sql.resolve.kept_times import timed_again
from service.sql.resolve.processing_time import retimed
from service.sql.resolve.relation import Relation
from service.sql.resolve.syntax import names_of
from service.sql.scope import INTERNAL, Scope, ScopeColumn

MODIFIERS = ("order", "limit", "offset")
"""The arguments of a query's syntax tree that are resolved here."""


MOST_ROWS = 2**31 - 1
"""The highest LIMIT, OFFSET or FETCH."""


@dataclass(frozen=True, slots=True)
class OrderColumn:
    """A column of ORDER BY: where it stands in the query's relation."""

    column: int
    node: exp.Ordered


def hidden_items(
    query: exp.Select, listed: Sequence[tuple[str, exp.Expr]], session: ResolveContext
) -> list[tuple[str, exp.Expr]]:
    """Return what ORDER BY computes that is no column of the list: columns that no name of a query finds."""
    order = query.args.get("order")
    if order is None:
        return []
    names = [name for name, _ in listed]
    hidden = [
        (f"{INTERNAL}order{i}", each.this)
        for i, each in enumerate(order.expressions)
        if ordinal(each.this) is None and _named(each.this) not in names
    ]
    if hidden and query.args.get("distinct"):
        raise session.give_up(not_selected(hidden[0][1]))
    return hidden


def not_selected(at: exp.Expr) -> SqlError:
    """Return the error of a SELECT DISTINCT that is in the order of what it does not have."""
    return SqlError("ORDER BY of SELECT DISTINCT names a column that is not selected", at=at)


def with_names(relation: Relation) -> Relation:
    """Return the relation, a projection, whose columns of ORDER BY are shown to people as what they compute."""
    node = relation.node
    if not isinstance(node, Project):
        return relation
    columns = tuple(
        ScopeColumn(replace(c.field, name=describe(e)), alias=c.name) if c.name.startswith(f"{INTERNAL}order") else c
        for c, e in zip(relation.scope.columns, node.expressions, strict=True)
    )
    scope = Scope(columns)
    return Relation(replace(node, fields=scope.fields), scope, relation.windows)


def ordered(query: exp.Expr, relation: Relation, session: ResolveContext, ttl: int) -> Relation:
    """Return the relation in the order, and of the number of rows, that `query` asks for."""
    order = query.args.get("order")
    first, last = row_bounds(query, session)
    columns = [] if order is None else _columns(order, relation, session)
    keys = tuple(
        OrderBy(
            column=each.column,
            descending=bool(each.node.args.get("desc")),
            nulls_first=bool(each.node.args.get("nulls_first")),
        )
        for each in columns
    )
    if last is not None:
        place = session.place(order or query.args.get("limit"))
        latest = len(keys) == 1 and keys[0].descending and _is_time(relation, keys[0])
        node = TopN(
            input=relation.node,
            partition=(),
            order=keys,
            fields=relation.fields,
            first=first,
            last=last,
            latest_first=latest,
            shown=False,
            ttl=ttl,
            place=place,
        )
        return Relation(node, relation.scope, relation.windows)
    if not keys:
        return relation
    relation = timed_again(relation, keys[0].column, columns[0].node, session)
    if keys[0].descending or not _is_time(relation, keys[0]):
        raise session.give_up(
            SqlError(
                "ORDER BY without LIMIT needs a time attribute, ascending, as its first column",
                detail="a stream has no end to sort up to",
                hint="add LIMIT, or order by the time attribute of the table",
                at=columns[0].node,
            )
        )
    place = session.place(order)
    sorted_ = replace(relation, node=TimeSort(input=relation.node, order=keys, place=place))
    waits = relation.scope.field(keys[0].column).time is TimeKind.EVENT
    return retimed(sorted_, place, session) if waits else sorted_


def _is_time(relation: Relation, key: OrderBy) -> bool:
    return relation.scope.field(key.column).time is not TimeKind.NONE


def _columns(order: exp.Expr, relation: Relation, session: ResolveContext) -> list[OrderColumn]:
    scope = relation.scope
    listed = scope.starred()
    names = [scope.field(j).name for j in listed]
    found: list[OrderColumn] = []
    for i, each in enumerate(order.expressions):
        place = next((j for j, c in enumerate(scope.columns) if c.name == f"{INTERNAL}order{i}"), None)
        if place is None:
            named = selected_place(each, names, session)
            if named is None:
                raise session.give_up(
                    SqlError(
                        "ORDER BY names no column of the query",
                        detail=f"it has the columns {', '.join(names)}",
                        at=each,
                    )
                )
            place = listed[named]
        found.append(OrderColumn(place, each))
    return found


def selected_place(each: exp.Expr, names: Sequence[str], session: ResolveContext) -> int | None:
    """Return the place among `names`, which a query selects, of what an item of ORDER BY names or numbers, if any."""
    number = ordinal(each.this)
    if number is None:
        name = _named(each.this)
        return names.index(name) if name in names else None
    if not 1 <= number <= len(names):
        raise session.give_up(SqlError(f"ORDER BY {number} names no column: the query has {len(names)}", at=each))
    return number - 1


def ordinal(node: exp.Expr) -> int | None:
    """Return the number that a column is named by."""
    return int(node.name) if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit() else None


def _named(node: exp.Expr) -> str | None:
    """The name of a column without a qualifier."""
    names = names_of(node) if isinstance(node, exp.Column) else []
    return names[0] if len(names) == 1 else None


def row_bounds(query: exp.Expr, session: ResolveContext) -> tuple[int, int | None]:
    """Return the numbers of the first and the last row that are wanted; None = without an end."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    skipped = 0 if offset is None else _count(offset.expression, "OFFSET", session)
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        for key, shown in (("percent", "FETCH ... PERCENT"), ("with_ties", "FETCH ... WITH TIES")):
            if options is not None and options.args.get(key):
                raise session.give_up(not_yet(shown, limit))
        count = limit.args.get("count")
        return skipped + 1, skipped + (1 if count is None else _count(count, "FETCH", session))
    value = None if limit is None else limit.expression
    if value is None or (isinstance(value, exp.Column) and value.name.upper() == "ALL"):
        if skipped:
            raise session.give_up(
                SqlError("OFFSET needs LIMIT", detail="a stream has no end", hint="add LIMIT", at=offset)
            )
        return 1, None
    return skipped + 1, skipped + _count(value, "LIMIT", session)


def _count(node: exp.Expr, name: str, session: ResolveContext) -> int:
    number = ordinal(node)
    if number is None or number > MOST_ROWS:
        raise session.give_up(SqlError(f"{name} takes a whole number up to {MOST_ROWS}", at=node))
    return number
