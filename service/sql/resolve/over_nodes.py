"""The nodes of OVER calls: one for each PARTITION BY and ORDER BY, and what puts the answers of several together.

Calls that are answered when the watermark reaches a row stand one behind another. A row that waits for others of its
partition comes out when its time has long passed, so that no other window of time can follow. Where several windows
wait, each reads the same numbered rows for itself, and their answers are joined by that number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from service.plan import types
from service.plan.expressions import Column, Expression
from service.plan.nodes import Field, Frame, Over, OverCall, PairJoin, Place
from service.sql.resolve.context import ResolveContext
from service.sql.resolve.over_calls import FramedCall, Reach
from service.sql.resolve.processing_time import retimed
from service.sql.resolve.ranking import RANK_FUNCTIONS
from service.sql.resolve.relation import Relation, column, extended, projected
from service.sql.scope import INTERNAL, Scope, ScopeColumn

_NUMBER = f"{INTERNAL}number"
"""The column that numbers the rows of a partition."""

_NEVER_NULL = ("COUNT", *RANK_FUNCTIONS)


def with_answers(
    relation: Relation,
    calls: Sequence[FramedCall],
    names: Mapping[str, str],
    ttl: int,
    place: Place,
    session: ResolveContext,
) -> Relation:
    """Return `relation` with a column for each of `calls`, found under the name that `names` has for its text."""
    groups: dict[tuple[Reach, tuple[Expression, ...], int], list[FramedCall]] = {}
    for call in calls:
        groups.setdefault((call.reach, call.partition, call.time), []).append(call)
    waiting: list[list[FramedCall]] = []
    held = False
    for (reach, *_), group in sorted(groups.items(), key=lambda each: each[0][0]):
        if held and group[0].processing:
            relation, held = retimed(relation, place, session), False
        if reach.outlasts_time:
            waiting.append(group)
        else:
            relation = _over(relation, group, names, ttl, place)
            held = held or not group[0].processing
    match waiting:
        case []:
            return retimed(relation, place, session) if held else relation
        case [group]:
            return _over(relation, group, names, ttl, place)
        case _:
            return _apart(relation, waiting, names, ttl, place)


def _over(
    relation: Relation, calls: Sequence[FramedCall], names: Mapping[str, str], ttl: int, place: Place
) -> Relation:
    """The node of calls that share PARTITION BY, ORDER BY and what they wait for."""
    places: dict[Expression, int] = {}
    added: list[Expression] = []
    width = len(relation.scope)

    def place_of(expression: Expression) -> int:
        if isinstance(expression, Column):
            return expression.index
        if expression not in places:
            places[expression] = width + len(added)
            added.append(expression)
        return places[expression]

    partition = tuple(place_of(e) for e in calls[0].partition)
    placed = tuple(
        OverCall(
            function=c.function,
            arguments=tuple(place_of(a) for a in c.arguments),
            type=c.type,
            frame=c.frame,
            distinct=c.distinct,
            filter=None if c.filter is None else place_of(c.filter),
            constants=c.constants,
        )
        for c in calls
    )
    below = extended(relation, added, place)
    new = [ScopeColumn(Field(c.shown, c.type, c.function not in _NEVER_NULL), alias=names[c.text]) for c in calls]
    own, windows = below.scope.columns, relation.windows
    if calls[0].reach.outlasts_time:
        own, windows = tuple(replace(c, field=c.field.timeless) for c in own), ()
    fields = (*(c.field for c in own), *(c.field for c in new))
    node = Over(
        input=below.node,
        partition=partition,
        time=calls[0].time,
        calls=placed,
        fields=fields,
        ttl=ttl,
        place=place,
    )
    return Relation(node, Scope((*own, *new)), windows)


def _apart(
    relation: Relation, groups: Sequence[Sequence[FramedCall]], names: Mapping[str, str], ttl: int, place: Place
) -> Relation:
    """Each of `groups` over the same rows, and their answers put together by row.

    A row is known by its partition in the first window, its time and its number there: no row that comes later, late
    or after a time to live, has the same. Rows are numbered in event time where a window asks for it, so that one that
    is late is late for all.
    """
    first = next((group[0] for group in groups if not group[0].processing), groups[0][0])
    width = len(relation.scope)
    computed = [e for e in first.partition if not isinstance(e, Column)]
    relation = extended(relation, computed, place)
    partition = tuple(
        e if isinstance(e, Column) else column(relation.scope, width + computed.index(e)) for e in first.partition
    )
    number = replace(
        first,
        text=_NUMBER,
        partition=partition,
        frame=Frame(rows=True, preceding=None),
        function="ROW_NUMBER",
        arguments=(),
        type=types.BIGINT,
        distinct=False,
        filter=None,
        constants=(),
    )
    rows = _over(relation, [number], {_NUMBER: _NUMBER}, ttl, place)
    keys = tuple(dict.fromkeys([*(c.index for c in partition), first.time, len(rows.scope) - 1]))
    left, *others = (_over(rows, group, names, ttl, place) for group in groups)
    for right, group in zip(others, groups[1:], strict=True):
        left = _paired(left, right, keys, len(group), place)
    return left


def _paired(left: Relation, right: Relation, keys: tuple[int, ...], answers: int, place: Place) -> Relation:
    """The rows of `left` with the last `answers` columns of `right`."""
    width = len(right.scope)
    shown = [*keys, *range(width - answers, width)]
    aliases = [
        *(f"{INTERNAL}key{i}" for i in range(len(keys))),
        *(right.scope.columns[i].alias for i in shown[len(keys) :]),
    ]
    right = projected(right, [(right.scope.field(i).name, column(right.scope, i)) for i in shown], place)
    new = (ScopeColumn(field, alias=alias) for field, alias in zip(right.fields, aliases, strict=True))
    columns = (*left.scope.columns, *new)
    node = PairJoin(
        left=left.node,
        right=right.node,
        left_keys=keys,
        right_keys=tuple(range(len(keys))),
        fields=tuple(c.field for c in columns),
        place=place,
    )
    return Relation(node, Scope(columns))
