"""ROW_NUMBER, RANK and their kin in any order: the place of a row among those of its partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from service.plan.expressions import Column, Expression
from service.plan.nodes import Field, Join, JoinKind, OrderBy, Place, RankFunction, TopN
from service.plan.properties import unique_keys
from service.plan.table import TimeKind
from service.plan.types import BIGINT, DOUBLE, DataType
from service.sql.errors import SqlError
from service.sql.resolve.context import QueryRejected, ResolveContext
from service.sql.resolve.relation import Relation, column, extended, projected
from service.sql.resolve.syntax import canonical
from service.sql.scope import Scope, ScopeColumn

RANK_FUNCTIONS = frozenset(function.value for function in RankFunction)
OF_ALL_ROWS = frozenset(function.value for function in RankFunction if function.of_all)
"""Those that need all rows of their partition."""

_MOST_BUCKETS = 2**31 - 1
"""The greatest INT, which is the type of the argument of NTILE."""


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
    node: exp.Window


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
    return RankCall(canonical(node, scope), RankFunction[function], known, items, window_time, buckets, node)


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


def with_ranks(
    relation: Relation, calls: Sequence[RankCall], names: Mapping[str, str], ttl: int, place: Place
) -> Relation:
    """Return the relation with the rank of each row for each of `calls`, found under the name that `names` has for its
    text. Raises SqlError where rows that are ranked in several orders cannot be told apart.

    Ranks in windows of time are answered one behind another, when the window closes. Others change with each row, and a
    condition on one of them must leave out no row that others count: each order ranks the same rows, and what it shows
    of them is joined.
    """
    for call in calls:
        if call.window_time is not None:
            relation = _ranked(relation, [call], names, ttl, place)
    orders: dict[tuple[tuple[Expression, ...], tuple[OrderItem, ...]], list[RankCall]] = {}
    for call in calls:
        if call.window_time is None:
            orders.setdefault((call.partition, call.order), []).append(call)
    first, *others = orders.values() or ([],)
    if not others:
        return _ranked(relation, first, names, ttl, place)
    keys = unique_keys(relation.node)
    if not keys:
        raise SqlError(
            "rows that are ranked in several orders need a key, which tells each from all others",
            detail="a row is shown with all its ranks, of which each is known apart",
            hint="declare PRIMARY KEY (...) NOT ENFORCED in CREATE TABLE, or rank what is grouped by a key",
            at=others[0][0].node,
        )
    shown = _ranked(relation, first, names, ttl, place)
    for each in others:
        shown = _beside(shown, _ranked(relation, each, names, ttl, place), sorted(keys[0]), len(each), ttl, place)
    return shown


def _beside(left: Relation, right: Relation, key: list[int], ranks: int, ttl: int, place: Place) -> Relation:
    """The rows that both have, by their `key`, with the last `ranks` columns of `right`."""
    width = len(right.scope)
    at = [*key, *range(width - ranks, width)]
    shown = projected(right, [(right.scope.field(i).name, column(right.scope, i)) for i in at], place)
    found = [right.scope.columns[i].alias for i in at[len(key) :]]
    aliases = [*(f"{found[0]}key{i}" for i in range(len(key))), *found]
    added = (ScopeColumn(field, alias=alias) for field, alias in zip(shown.fields, aliases, strict=True))
    scope = Scope((*left.scope.columns, *added)).without_time()
    node = Join(
        left=left.node,
        right=shown.node,
        kind=JoinKind.INNER,
        left_keys=tuple(key),
        right_keys=tuple(range(len(key))),
        null_safe=(True,) * len(key),
        residual=None,
        fields=scope.fields,
        left_ttl=ttl,
        right_ttl=ttl,
        place=place,
    )
    return Relation(node, scope)


def _ranked(
    relation: Relation, calls: Sequence[RankCall], names: Mapping[str, str], ttl: int, place: Place
) -> Relation:
    """The relation with the ranks of each row, all in one order of the same partitions."""
    added: list[Expression] = []
    width = len(relation.scope)

    def place_of(expression: Expression) -> int:
        if isinstance(expression, Column):
            return expression.index
        if expression not in added:
            added.append(expression)
        return width + added.index(expression)

    if not calls:
        return relation
    partition = tuple(place_of(each) for each in calls[0].partition)
    order = tuple(
        OrderBy(column=place_of(each.expression), descending=each.descending, nulls_first=each.nulls_first)
        for each in calls[0].order
    )
    latest_first = _is_last_row(calls[0].order, relation)
    relation = extended(relation, added, place)
    for call in calls:
        rank = Field(f"{call.function.value}({call.buckets or ''})", _type(call.function), nullable=False)
        node = TopN(
            input=relation.node,
            partition=partition,
            order=order,
            fields=(*relation.fields, rank),
            function=call.function,
            latest_first=latest_first,
            window_time=call.window_time,
            buckets=call.buckets,
            ttl=ttl,
            place=place,
        )
        column_ = ScopeColumn(rank, alias=names[call.text])
        relation = Relation(node, Scope((*relation.scope.columns, column_)), relation.windows)
    return relation


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
