"""The properties of each relation of a plan: its changelog mode, its unique keys, its event-time column.

One function a property; each is right for any plan, and none looks at how the plan will be run.
"""

from __future__ import annotations

from itertools import product
from typing import assert_never

from service.plan.expressions import Column
from service.plan.formats import traits
from service.plan.nodes import (
    Aggregate,
    Attached,
    Cumulate,
    Filter,
    IntervalJoin,
    Join,
    JoinKind,
    LookupJoin,
    Mode,
    Node,
    Normalize,
    Over,
    PairJoin,
    Project,
    RankFunction,
    Scan,
    Session,
    SetKind,
    SetOperation,
    StreamWindow,
    TemporalJoin,
    TimeSort,
    TopN,
    Tumble,
    Union,
    Unnest,
    Values,
    WindowAggregate,
    WindowJoin,
    WindowRows,
)
from service.plan.table import Table, TimeKind
from service.plan.walk import fields, inputs, shows_right

Key = frozenset[int]
"""Positions of columns that no two rows of the relation share at any one time; NULL counts as a value."""

_ENOUGH = 12
"""Keys followed per relation: equivalent keys of a chain of joins would otherwise multiply."""


def carries_changes(table: Table) -> bool:
    """Return whether records of `table` may take rows back."""
    connector = table.connector
    value = connector.value_format
    return connector.kind == "upsert-kafka" or (value is not None and traits(value).carries_changes)


def mode(node: Node) -> Mode:
    """Return whether the relation only ever gains rows."""
    match node:
        case Scan(table=table):
            return Mode.RETRACT if carries_changes(table) else Mode.APPEND
        case WindowAggregate(firing=firing):
            return Mode.APPEND if firing is None else Mode.RETRACT
        case Values() | StreamWindow() | WindowRows(window=Session()) | Over():
            return Mode.APPEND
        case IntervalJoin() | WindowJoin() | PairJoin() | TimeSort():
            return Mode.APPEND
        case Aggregate() | Normalize():
            return Mode.RETRACT
        case TemporalJoin(left=left) | LookupJoin(left=left):
            return mode(left)
        case SetOperation(kind=SetKind.INTERSECT | SetKind.INTERSECT_ALL, ttl=0):
            retracts = any(mode(i) is Mode.RETRACT for i in inputs(node))
            return Mode.RETRACT if retracts else Mode.APPEND
        case SetOperation():
            return Mode.RETRACT
        case Join(kind=JoinKind.INNER | JoinKind.SEMI) | Project() | Filter() | Union() | WindowRows() | Unnest():
            retracts = any(mode(i) is Mode.RETRACT for i in inputs(node))
            return Mode.RETRACT if retracts else Mode.APPEND
        case TopN():
            return Mode.APPEND if node.window_time is not None or takes_arrivals(node) else Mode.RETRACT
        case Join():
            return Mode.RETRACT
        case _:
            assert_never(node)


def takes_arrivals(node: TopN) -> bool:
    """Return whether the answer is the first rows that arrive, none of which can leave it again: a LIMIT."""
    return not node.partition and not node.order and mode(node.input) is Mode.APPEND


def event_time(node: Node) -> int | None:
    """Return the position of the event-time column, which the watermark is about; None if there is none (any more)."""
    return next((i for i, f in enumerate(fields(node)) if f.time is TimeKind.EVENT), None)


def unique_keys(node: Node) -> tuple[Key, ...]:
    """Return the keys of the relation, smallest first; an empty key means that there is at most one row."""
    match node:
        case Scan():
            return _scan_keys(node)
        case Values() | StreamWindow():
            return ()
        case Normalize(key=key):
            return (frozenset(key),)
        case Unnest(ordinality=True):
            return _smallest([key | {len(node.fields) - 1} for key in unique_keys(node.input)])
        case Unnest():
            return ()
        case Over() | TimeSort() if mode(node.input) is Mode.RETRACT:
            return ()  # a row whose time has passed has come out, and may come again with another time
        case Filter() | Over() | TimeSort():
            return unique_keys(node.input)
        case TopN():
            return _ranked_keys(node)
        case Project():
            return _projected_keys(node)
        case Union(inputs=(only,)):
            return unique_keys(only)
        case Union():
            return ()
        case WindowRows(window=Tumble() | Session()):
            return unique_keys(node.input)
        case WindowRows():
            end = len(fields(node.input)) + 1
            return _smallest([key | {end} for key in unique_keys(node.input)])
        case WindowAggregate():
            return _window_keys(node)
        case Aggregate(keys=keys):
            return (frozenset(range(len(keys))),)
        case TemporalJoin(left=left):
            return unique_keys(left)
        case LookupJoin():
            return _lookup_keys(node)
        case PairJoin(left_keys=left_keys):
            return _smallest([*unique_keys(node.left), frozenset(left_keys)])
        case SetOperation(kind=kind, fields=columns):
            return unique_keys(node.left) if kind.all else (frozenset(range(len(columns))),)
        case Join() | IntervalJoin() | WindowJoin():
            return _join_keys(node)
        case _:
            assert_never(node)


def _scan_keys(scan: Scan) -> tuple[Key, ...]:
    key = scan.table.key
    if not key or not set(key) <= set(scan.columns):
        return ()
    return (frozenset(scan.columns.index(k) for k in key),)


def _ranked_keys(node: TopN) -> tuple[Key, ...]:
    """A subset of the input has its keys; a row number tells the rows of a partition apart.

    Of rows that may be retracted, those of a window have come out once it has closed, and may come again in another.
    """
    found = list(unique_keys(node.input))
    if node.window_time is not None and mode(node.input) is Mode.RETRACT:
        found = [key | {node.window_time} for key in found]
    if node.function is RankFunction.ROW_NUMBER:
        if node.first == node.last:
            found.append(frozenset(node.partition))
        if node.shown:
            found.append(frozenset(node.partition) | {len(node.fields) - 1})
    return _smallest(found)


def _projected_keys(node: Project) -> tuple[Key, ...]:
    places: dict[int, list[int]] = {}
    for place, expression in enumerate(node.expressions):
        if isinstance(expression, Column):
            places.setdefault(expression.index, []).append(place)
    found: list[Key] = []
    for key in unique_keys(node.input):
        if all(k in places for k in key):
            found.extend(frozenset(choice) for choice in product(*(places[k] for k in key)))
    return _smallest(found)


def _window_keys(node: WindowAggregate) -> tuple[Key, ...]:
    keys = frozenset(range(len(node.keys)))
    start, end, time = (len(node.keys) + len(node.aggregates) + i for i in range(3))
    match node.window:
        case Attached() | Session():
            return (keys | {start, end}, keys | {start, time})
        case Cumulate():
            return (keys | {end}, keys | {time})
        case _:
            # Windows of one kind never share a start or an end; only cumulating ones share a start.
            return (keys | {end}, keys | {time}, keys | {start})


def _join_keys(node: Join | IntervalJoin | WindowJoin) -> tuple[Key, ...]:
    left = unique_keys(node.left)
    if not shows_right(node):
        return left
    width = len(fields(node.left))
    right = [frozenset(k + width for k in key) for key in unique_keys(node.right)]
    right_keys = frozenset(k + width for k in node.right_keys)
    # A padded row has NULLs for a key, so a side that may be padded keeps its keys only beside those of the other.
    left_matches_once = any(key <= right_keys for key in right)
    right_matches_once = any(key <= frozenset(node.left_keys) for key in left)
    found: list[Key] = []
    if left_matches_once and node.kind in (JoinKind.INNER, JoinKind.LEFT):
        found += left
    if right_matches_once and node.kind in (JoinKind.INNER, JoinKind.RIGHT):
        found += right
    if node.kind is not JoinKind.FULL:
        found += [one | other for one in left for other in right]
    if node.kind is JoinKind.INNER:
        pairs = [(a, b + width) for a, b in zip(node.left_keys, node.right_keys, strict=True)]
        for a, b in pairs:
            found += [key - {a} | {b} for key in found if a in key] + [key - {b} | {a} for key in found if b in key]
    return _smallest(found)


def _lookup_keys(node: LookupJoin) -> tuple[Key, ...]:
    """Rows of the table may have met different rows at different times, so that their own keys tell nothing apart."""
    width = len(fields(node.left))
    left, right = unique_keys(node.left), unique_keys(node.right)
    if any(key <= frozenset(node.right_keys) for key in right):
        return left
    return _smallest([one | frozenset(k + width for k in other) for one in left for other in right])


def _smallest(keys: list[Key]) -> tuple[Key, ...]:
    """The keys that contain no other key, smallest first."""
    ordered = sorted(set(keys), key=lambda k: (len(k), sorted(k)))
    minimal = [k for i, k in enumerate(ordered) if not any(other <= k for other in ordered[:i])]
    return tuple(minimal[:_ENOUGH])
