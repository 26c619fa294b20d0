"""ROW_NUMBER, RANK and their kin in any order: the place of a row among those of its partition."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from service.plan.expressions import Column, Expression
from service.plan.nodes import Field, OrderBy, Place, RankFunction, TopN
from service.plan.table import TimeKind
from service.plan.types import BIGINT, DOUBLE, DataType
from service.sql.errors import SqlError
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.relation import Relation, extended
from service.sql.resolve.syntax import canonical
from service.sql.scope import Scope, ScopeColumn

RANK_FUNCTIONS = frozenset(function.value for function in RankFunction)
OF_ALL_ROWS = frozenset(function.value for function in RankFunction if function.of_all)
"""Those that need all rows of their partition."""

_MOST_BUCKETS = 2**31 - 1


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
    buckets: int


def rank_call(
    node: exp.Window,
    function: str,
    partition: list[exp.Expr],
    order: exp.Expr | None,
    relation: Relation,
    session: ResolveContext,
) -> RankCall:
    """Return the call of a rank function, its partition and its order compiled."""
    if order is None or not order.expressions:
        raise SqlError(f"{function} needs ORDER BY", at=node)
    scope = relation.scope
    parts = [session.compile(each, scope) for each in partition]
    known = tuple(each for each in parts if each is not None)
    if len(known) < len(parts):
        raise QueryRejected
    items = order_items(order, scope, session)
    window_time = _window_time(relation, known)
    if function in OF_ALL_ROWS and window_time is None:
        raise SqlError(
            f"{function} needs all rows of its partition, which a stream never has",
            hint="PARTITION BY window_start, window_end of a window, which has them when it closes",
            at=node,
        )
    buckets = _buckets(node.this) if function == "NTILE" else 0
    return RankCall(canonical(node, scope), RankFunction[function], known, items, window_time, buckets)


def _buckets(node: exp.Expr) -> int:
    """The number of buckets that NTILE is given."""
    (number,) = node.expressions if len(node.expressions) == 1 else (None,)
    if not isinstance(number, exp.Literal) or not number.name.isdigit() or not 1 <= int(number.name) <= _MOST_BUCKETS:
        raise SqlError(f"NTILE takes a whole number of buckets, from 1 to {_MOST_BUCKETS}", at=number or node)
    return int(number.name)


def order_items(order: exp.Expr, scope: Scope, session: ResolveContext) -> tuple[OrderItem, ...]:
    """Return the expressions of an ORDER BY clause."""
    items: list[OrderItem] = []
    for each in order.expressions:
        expression = session.compile(each.this, scope)
        if expression is None:
            raise QueryRejected
        items.append(OrderItem(expression, bool(each.args.get("desc")), bool(each.args.get("nulls_first"))))
    return tuple(items)


def ranked(relation: Relation, call: RankCall, name: str, ttl: int, place: Place) -> Relation:
    """Return the relation with the rank of each row as a column found under `name`."""
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
    rank = Field(f"{call.function.value}({call.buckets or ''})", _type(call.function), nullable=False)
    node = TopN(
        input=below.node,
        partition=partition,
        order=order,
        fields=(*below.fields, rank),
        function=call.function,
        latest_first=_is_last_row(call.order, relation),
        window_time=call.window_time,
        buckets=call.buckets,
        ttl=ttl,
        place=place,
    )
    return Relation(node, Scope((*below.scope.columns, ScopeColumn(rank, alias=name))), relation.windows)


def _type(function: RankFunction) -> DataType:
    return DOUBLE if function in (RankFunction.PERCENT_RANK, RankFunction.CUME_DIST) else BIGINT


def _is_last_row(order: tuple[OrderItem, ...], relation: Relation) -> bool:
    """Whether rows are ordered by a time attribute alone, the last first: of those of one time the last to arrive.

    As in Flink, what was the time attribute before a window table function is one here as well.
    """
    if len(order) != 1 or not order[0].descending or not isinstance(order[0].expression, Column):
        return False
    index = order[0].expression.index
    is_time = relation.scope.field(index).time is not TimeKind.NONE
    return is_time or any(index == windows.attribute for windows in relation.windows)


def _window_time(relation: Relation, partition: tuple[Expression, ...]) -> int | None:
    """The position of the windows' time, where rows are ranked within windows."""
    columns = {each.index for each in partition if isinstance(each, Column)}
    return next((w.time for w in relation.windows if {w.start, w.end} <= columns), None)
