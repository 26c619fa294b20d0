"""ROW_NUMBER, RANK and DENSE_RANK in any order: the rank of a row among those of its partition."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from service.plan.expressions import Column, Expression
from service.plan.nodes import Field, OrderBy, Place, RankFunction, TopN
from service.plan.table import TimeKind
from service.plan.types import BIGINT
from service.sql.errors import SqlError
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.relation import Relation, extended
from service.sql.resolve.syntax import canonical
from service.sql.scope import Scope, ScopeColumn

RANK_FUNCTIONS = frozenset(function.value for function in RankFunction)


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One expression of ORDER BY; NULL is less than any value unless it says otherwise."""

    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class RankCall:
    """A rank over expressions of the input, found again by the canonical `text` of its call."""

    text: str
    function: RankFunction
    partition: tuple[Expression, ...]
    order: tuple[OrderItem, ...]
    window_time: int | None


def rank_call(
    node: exp.Window,
    function: str,
    partition: list[exp.Expr],
    order: exp.Expr | None,
    relation: Relation,
    session: ResolveContext,
) -> RankCall:
    """The call of a rank function, its partition and its order compiled."""
    if order is None or not order.expressions:
        raise SqlError(f"{function} needs ORDER BY", at=node)
    scope = relation.scope
    parts = [session.compile(each, scope) for each in partition]
    known = tuple(each for each in parts if each is not None)
    if len(known) < len(parts):
        raise QueryRejected
    items = order_items(order, scope, session)
    return RankCall(canonical(node, scope), RankFunction[function], known, items, _window_time(relation, known))


def order_items(order: exp.Expr, scope: Scope, session: ResolveContext) -> tuple[OrderItem, ...]:
    """The expressions of an ORDER BY clause."""
    items: list[OrderItem] = []
    for each in order.expressions:
        expression = session.compile(each.this, scope)
        if expression is None:
            raise QueryRejected
        items.append(OrderItem(expression, bool(each.args.get("desc")), bool(each.args.get("nulls_first"))))
    return tuple(items)


def ranked(relation: Relation, call: RankCall, name: str, ttl: int, place: Place) -> Relation:
    """The relation with the rank of each row as a column found under `name`."""
    added: list[Expression] = []
    width = len(relation.scope)

    def place_of(expression: Expression) -> int:
        if isinstance(expression, Column):
            return expression.index
        if expression not in added:
            added.append(expression)
        return width + added.index(expression)

    partition = tuple(place_of(each) for each in call.partition)
    order = tuple(
        OrderBy(column=place_of(each.expression), descending=each.descending, nulls_first=each.nulls_first)
        for each in call.order
    )
    below = extended(relation, added, place)
    rank = Field(f"{call.function.value}()", BIGINT, nullable=False)
    node = TopN(
        input=below.node,
        partition=partition,
        order=order,
        fields=(*below.fields, rank),
        function=call.function,
        latest_first=_is_last_row(call.order, relation.scope),
        window_time=call.window_time,
        ttl=ttl,
        place=place,
    )
    return Relation(node, Scope((*below.scope.columns, ScopeColumn(rank, alias=name))), relation.windows)


def _is_last_row(order: tuple[OrderItem, ...], scope: Scope) -> bool:
    """Whether rows are ordered by a time attribute alone, the last first: of those of one time the last to arrive."""
    if len(order) != 1 or not order[0].descending or not isinstance(order[0].expression, Column):
        return False
    return scope.field(order[0].expression.index).time is not TimeKind.NONE


def _window_time(relation: Relation, partition: tuple[Expression, ...]) -> int | None:
    """The position of the windows' time, where rows are ranked within windows."""
    columns = {each.index for each in partition if isinstance(each, Column)}
    return next((w.time for w in relation.windows if {w.start, w.end} <= columns), None)
