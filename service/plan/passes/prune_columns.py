"""Columns that nobody reads are dropped, down to the scan: a decoder decodes only what is used.

A join keeps rows without their weights, and an Arrow table without columns forgets how many rows it has; so an input of
a join of which nothing is read gets one constant column. Its rows are then equal, and are kept as one with its count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar, assert_never

from service.plan.expressions import Column, Literal, columns_of, moved
from service.plan.nodes import (
    Aggregate,
    AggregateCall,
    AnyJoin,
    Attached,
    Field,
    Filter,
    IntervalJoin,
    Job,
    Join,
    JoinKind,
    LookupJoin,
    Node,
    Normalize,
    Over,
    OverCall,
    Project,
    Scan,
    Session,
    SetOperation,
    Sink,
    StreamWindow,
    TemporalJoin,
    TimeSort,
    TopN,
    Union,
    Unnest,
    Values,
    WindowAggregate,
    WindowJoin,
    WindowRows,
)
from service.plan.passes.expand_computed import watermark_columns
from service.plan.types import BOOLEAN
from service.plan.walk import fields, in_order, inputs, shows_right

Places = Mapping[int, int]
"""Old positions of the columns that are left, and their new ones."""

T = TypeVar("T")

_ANY_ROW = Literal("true", BOOLEAN, "TRUE")
"""The column of a relation whose rows are only counted."""


class Pruned(NamedTuple):
    """A node without its unused columns, and where the others are now."""

    node: Node
    places: Places


def prune_columns(job: Job) -> Job:
    """Drop what no consumer of a node reads; a node that several read keeps what any of them does.

    >>> from tests.sql.outline import shown
    >>> print(shown("SELECT a1 FROM (SELECT a1, a2 + 1 AS s FROM a)", prune_columns))
    project a1
      project a1
        scan a
    """
    nodes = in_order(job.sinks)
    needs: dict[int, set[int]] = {id(n): set() for n in nodes}
    for sink in job.sinks:
        needs[id(sink.input)].update(range(len(fields(sink.input))))
    for node in reversed(nodes):
        for each, wanted in zip(inputs(node), _wanted(node, needs[id(node)]), strict=True):
            needs[id(each)].update(wanted)
    done: dict[int, Pruned] = {}
    for node in nodes:
        done[id(node)] = _pruned(node, needs[id(node)], [done[id(i)] for i in inputs(node)])
    return replace(job, sinks=tuple(_sink(s, done[id(s.input)]) for s in job.sinks))


def _sink(sink: Sink, pruned: Pruned) -> Sink:
    """A sink reads all columns of its input in their order, so none may have moved."""
    count = len(fields(sink.input))
    if [pruned.places[i] for i in range(count)] == list(range(len(fields(pruned.node)))):
        return replace(sink, input=pruned.node)
    below = fields(sink.input)
    columns = tuple(Column(pruned.places[i], below[i].type, below[i].name) for i in range(count))
    return replace(sink, input=Project(input=pruned.node, expressions=columns, fields=below, place=sink.place))


def _wanted(node: Node, needed: set[int]) -> list[set[int]]:
    """Which columns of each input `node` must see when `needed` of its own are read."""
    match node:
        case Scan() | Values():
            return []
        case Normalize(key=key):
            return [needed | set(key)]
        case Unnest(column=column):
            return [{i for i in needed if i < len(fields(node.input))} | {column}]
        case TimeSort(order=order):
            return [needed | {key.column for key in order}]
        case Filter(condition=condition):
            return [needed | set(columns_of(condition))]
        case Project(expressions=expressions):
            return [{c for i in needed for c in columns_of(expressions[i])}]
        case Union():
            return [needed for _ in node.inputs]
        case WindowRows(time=time, window=window):
            partition = set(window.partition) if isinstance(window, Session) else set()
            return [{i for i in needed if i < len(fields(node.input))} | {time} | partition]
        case WindowAggregate() | Aggregate():
            calls = [node.aggregates[i] for i in _kept_calls(node, needed)]
            own = {node.time, *_attached(node)} if isinstance(node, WindowAggregate) else set()
            return [set(node.keys) | own | _read_by(calls)]
        case TopN():
            read = _read_by_top_n(node) | {i for i in needed if i < len(fields(node.input))}
            return [read or {0}]  # of a row of which nothing is read, a column still says that it is there
        case StreamWindow():
            own = {*node.partition, *node.conditions, *_given(node.time), *_given(node.seen)}
            calls = [node.aggregates[i] for i in _kept_stream_calls(node, needed)]
            width = len(fields(node.input))
            shown = {i for i in needed if i < width} if node.keys is None else set(node.keys)
            return [own | shown | _read_by(calls)]
        case Over():
            width = len(fields(node.input))
            over = [node.calls[i] for i in _kept_over(node, needed)]
            return [{i for i in needed if i < width} | set(node.partition) | {node.time} | _read_by(over)]
        case SetOperation():
            # Rows are compared as a whole.
            return [set(range(len(node.fields)))] * 2
        case Join() | IntervalJoin() | WindowJoin() | TemporalJoin() | LookupJoin():
            width = len(fields(node.left))
            read = {i for i in needed if i < width or shows_right(node)}
            read |= set(columns_of(node.residual) if node.residual else ())
            left = {i for i in read if i < width} | set(node.left_keys)
            right = {i - width for i in read if i >= width} | set(node.right_keys)
            if isinstance(node, IntervalJoin | WindowJoin):
                left, right = left | {node.left_time}, right | {node.right_time}
            if isinstance(node, TemporalJoin):
                left = left | {node.left_time}
                right = right if node.right_time is None else right | {node.right_time}
            return [left, right]
        case _:
            assert_never(node)


def _read_by(calls: Iterable[AggregateCall | OverCall]) -> set[int]:
    return {c for call in calls for c in (*call.arguments, *(() if call.filter is None else (call.filter,)))}


def _given(position: int | None) -> tuple[int, ...]:
    return () if position is None else (position,)


def _attached(node: WindowAggregate) -> tuple[int, ...]:
    return (node.window.start, node.window.end) if isinstance(node.window, Attached) else ()


def _kept_calls(node: WindowAggregate | Aggregate, needed: set[int]) -> list[int]:
    """The calls that are read; where there would be no column at all, the first, so that the one row stays a row."""
    kept = [i for i in range(len(node.aggregates)) if i + len(node.keys) in needed]
    return kept if kept or len(node.fields) > len(node.aggregates) else [0]


def _stream_keys(node: StreamWindow) -> int:
    """How many columns come before the aggregates."""
    return len(fields(node.input)) if node.keys is None else len(node.keys)


def _kept_stream_calls(node: StreamWindow, needed: set[int]) -> list[int]:
    return [i for i in range(len(node.aggregates)) if i + _stream_keys(node) in needed]


def _kept_over(node: Over, needed: set[int]) -> list[int]:
    width = len(fields(node.input))
    return [i for i in range(len(node.calls)) if i + width in needed] or [0]


def _pruned(node: Node, needed: set[int], below: list[Pruned]) -> Pruned:
    match node:
        case Scan():
            watermark = {node.columns.index(c) for c in watermark_columns(node.table)}
            kept = sorted(needed | watermark)
            new: Node = replace(
                node, columns=tuple(node.columns[i] for i in kept), fields=tuple(node.fields[i] for i in kept)
            )
            return Pruned(new if len(kept) < len(node.columns) else node, _places(kept))
        case Values():
            return Pruned(node, _places(range(len(node.fields))))
        case Normalize(key=key):
            input, places = below[0]
            return Pruned(replace(node, input=input, key=_at(key, places)), places)
        case Unnest(column=column):
            input, places = below[0]
            end, narrow_end = len(fields(node.input)), len(fields(input))
            added = {end + i: narrow_end + i for i in range(node.added)}
            new_fields = (*_ordered(node.fields, places), *node.fields[end:])
            return Pruned(replace(node, input=input, column=places[column], fields=new_fields), {**places, **added})
        case TimeSort(order=order):
            input, places = below[0]
            moved_order = tuple(replace(key, column=places[key.column]) for key in order)
            return Pruned(replace(node, input=input, order=moved_order), places)
        case Filter(condition=condition):
            input, places = below[0]
            return Pruned(replace(node, input=input, condition=moved(condition, places)), places)
        case Project():
            input, places = below[0]
            kept = sorted(needed)
            expressions = tuple(moved(node.expressions[i], places) for i in kept)
            return Pruned(
                replace(node, input=input, expressions=expressions, fields=_pick(node.fields, kept)), _places(kept)
            )
        case Union():
            kept = sorted(needed)
            narrow = tuple(_only(pruned, kept, node.fields) for pruned in below)
            return Pruned(replace(node, inputs=narrow, fields=_pick(node.fields, kept)), _places(kept))
        case WindowRows():
            input, places = below[0]
            width, narrow_width = len(fields(node.input)), len(fields(input))
            added = {width + i: narrow_width + i for i in range(3)}
            new_fields = (*_ordered(node.fields, places), *node.fields[width:])
            window = node.window
            if isinstance(window, Session):
                window = replace(window, partition=_at(window.partition, places))
            moved_rows = replace(node, input=input, time=places[node.time], window=window, fields=new_fields)
            return Pruned(moved_rows, {**places, **added})
        case WindowAggregate() | Aggregate():
            return _pruned_aggregate(node, needed, below[0])
        case TopN():
            return _pruned_top_n(node, needed, below[0])
        case StreamWindow():
            return _pruned_stream(node, needed, below[0])
        case Over():
            return _pruned_over(node, needed, below[0])
        case SetOperation():
            kept = list(range(len(node.fields)))
            left, right = (_only(pruned, kept, node.fields) for pruned in below)
            return Pruned(replace(node, left=left, right=right), _places(kept))
        case Join() | IntervalJoin() | WindowJoin() | TemporalJoin() | LookupJoin():
            return _pruned_join(node, below[0], below[1])
        case _:
            assert_never(node)


def _pruned_aggregate(node: WindowAggregate | Aggregate, needed: set[int], below: Pruned) -> Pruned:
    input, places = below
    calls = _kept_calls(node, needed)
    keys = len(node.keys)
    kept = [*range(keys), *(keys + i for i in calls), *range(keys + len(node.aggregates), len(node.fields))]
    aggregates = tuple(_call(node.aggregates[i], places) for i in calls)
    common = replace(
        node, input=input, keys=_at(node.keys, places), aggregates=aggregates, fields=_pick(node.fields, kept)
    )
    if isinstance(common, WindowAggregate):
        window = common.window
        if isinstance(window, Attached):
            window = Attached(places[window.start], places[window.end])
        common = replace(common, time=places[common.time], window=window)
    return Pruned(common, _places(kept))


def _pruned_stream(node: StreamWindow, needed: set[int], below: Pruned) -> Pruned:
    input, places = below
    width, calls = _stream_keys(node), _kept_stream_calls(node, needed)
    keys = None if node.keys is None else _at(node.keys, places)
    shown = dict(places) if keys is None else {i: i for i in range(width)}
    behind = [*(width + i for i in calls), *range(width + len(node.aggregates), len(node.fields))]
    new = replace(
        node,
        input=input,
        time=None if node.time is None else places[node.time],
        partition=_at(node.partition, places),
        conditions=_at(node.conditions, places),
        seen=None if node.seen is None else places[node.seen],
        keys=keys,
        aggregates=tuple(_call(node.aggregates[i], places) for i in calls),
        fields=(*_ordered(node.fields, shown), *_pick(node.fields, behind)),
    )
    return Pruned(new, {**shown, **{old: len(shown) + n for n, old in enumerate(behind)}})


def _pruned_over(node: Over, needed: set[int], below: Pruned) -> Pruned:
    input, places = below
    width, narrow_width = len(fields(node.input)), len(fields(input))
    calls = _kept_over(node, needed)
    new = replace(
        node,
        input=input,
        partition=_at(node.partition, places),
        time=places[node.time],
        calls=tuple(
            replace(
                c,
                arguments=_at(c.arguments, places),
                filter=None if c.filter is None else places[c.filter],
            )
            for c in (node.calls[i] for i in calls)
        ),
        fields=(*_ordered(node.fields, places), *(node.fields[width + i] for i in calls)),
    )
    return Pruned(new, {**places, **{width + i: narrow_width + n for n, i in enumerate(calls)}})


def _read_by_top_n(node: TopN) -> set[int]:
    time = set() if node.window_time is None else {node.window_time}
    return {*node.partition, *(key.column for key in node.order)} | time


def _pruned_top_n(node: TopN, needed: set[int], below: Pruned) -> Pruned:
    """The rank is shown only where it is read: without it, fewer rows change."""
    input, places = below
    width = len(fields(node.input))
    shown = node.shown and width in needed
    new = replace(
        node,
        input=input,
        partition=_at(node.partition, places),
        order=tuple(replace(key, column=places[key.column]) for key in node.order),
        window_time=None if node.window_time is None else places[node.window_time],
        fields=(*_ordered(node.fields, places), *node.fields[width : width + shown]),
        shown=shown,
    )
    return Pruned(new, {**places, width: len(fields(input))} if shown else places)


def _pruned_join(node: AnyJoin, left: Pruned, right: Pruned) -> Pruned:
    left, right = _with_a_column(left), _with_a_column(right)
    width, narrow_width = len(fields(node.left)), len(fields(left.node))
    both = {**left.places, **{width + i: narrow_width + p for i, p in right.places.items()}}
    shown = both if shows_right(node) else left.places
    if node.kind is JoinKind.MARK:
        shown = {**shown, width: narrow_width}
    new = replace(
        node,
        left=left.node,
        right=right.node,
        left_keys=_at(node.left_keys, left.places),
        right_keys=_at(node.right_keys, right.places),
        residual=None if node.residual is None else moved(node.residual, both),
        fields=_joined_fields(node, left, right),
    )
    if isinstance(new, IntervalJoin | WindowJoin):
        new = replace(new, left_time=left.places[new.left_time], right_time=right.places[new.right_time])
    if isinstance(new, TemporalJoin):
        right_time = None if new.right_time is None else right.places[new.right_time]
        new = replace(new, left_time=left.places[new.left_time], right_time=right_time)
    return Pruned(new, shown)


def _with_a_column(pruned: Pruned) -> Pruned:
    """The input of a join, with a constant column where it has none."""
    if fields(pruned.node):
        return pruned
    field = Field("", BOOLEAN, nullable=False)
    return Pruned(Project(input=pruned.node, expressions=(_ANY_ROW,), fields=(field,)), pruned.places)


def _joined_fields(node: AnyJoin, left: Pruned, right: Pruned) -> tuple[Field, ...]:
    """The fields of both inputs as the join shows them: of a side that it may pad they may be NULL."""
    width = len(fields(node.left))
    own = {p: node.fields[i] for i, p in left.places.items()}
    shown = [own.get(p, field) for p, field in enumerate(fields(left.node))]
    if shows_right(node):
        theirs = {p: node.fields[width + i] for i, p in right.places.items()}
        shown += [theirs.get(p, field) for p, field in enumerate(fields(right.node))]
    return (*shown, *((node.fields[-1],) if node.kind is JoinKind.MARK else ()))


def _only(pruned: Pruned, kept: list[int], wanted: tuple[object, ...]) -> Node:
    """The input of a union with just the columns that are read, in order, since all inputs must agree."""
    if [pruned.places[i] for i in kept] == list(range(len(fields(pruned.node)))):
        return pruned.node
    below = fields(pruned.node)
    chosen = [below[pruned.places[i]] for i in kept]
    columns = tuple(Column(pruned.places[i], f.type, f.name) for i, f in zip(kept, chosen, strict=True))
    return Project(input=pruned.node, expressions=columns, fields=tuple(chosen))


def _call(call: AggregateCall, places: Places) -> AggregateCall:
    return replace(
        call, arguments=_at(call.arguments, places), filter=None if call.filter is None else places[call.filter]
    )


def _at(positions: Iterable[int], places: Places) -> tuple[int, ...]:
    return tuple(places[p] for p in positions)


def _places(kept: Iterable[int]) -> Places:
    return {old: new for new, old in enumerate(kept)}


def _pick(items: tuple[T, ...], kept: Iterable[int]) -> tuple[T, ...]:
    return tuple(items[i] for i in kept)


def _ordered(items: tuple[T, ...], places: Places) -> tuple[T, ...]:
    """The items that are left, in their new order."""
    return tuple(items[old] for old, _ in sorted(places.items(), key=lambda p: p[1]))
