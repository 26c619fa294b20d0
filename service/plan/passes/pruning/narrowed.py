"""Every node without the columns that nobody reads."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from service.plan.expressions import Column, moved
from service.plan.nodes import (
    Aggregate,
    Filter,
    IntervalJoin,
    Join,
    LookupJoin,
    Node,
    Normalize,
    Over,
    PairJoin,
    Project,
    Scan,
    Session,
    SetOperation,
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
from service.plan.passes.pruning.calls import narrowed_aggregate, narrowed_over, narrowed_stream_window
from service.plan.passes.pruning.joins import narrowed_join, narrowed_pair
from service.plan.passes.pruning.places import Pruned, at, in_new_order, picked, places_of
from service.plan.walk import fields


def narrowed(node: Node, needed: set[int], below: list[Pruned]) -> Pruned:
    """Return `node` over what is left of its inputs, `below`, when only `needed` of its columns are read."""
    match node:
        case Scan():
            watermark = {node.columns.index(c) for c in watermark_columns(node.table)}
            kept = sorted(needed | watermark)
            new: Node = replace(
                node, columns=tuple(node.columns[i] for i in kept), fields=tuple(node.fields[i] for i in kept)
            )
            return Pruned(new if len(kept) < len(node.columns) else node, places_of(kept))
        case Values():
            return Pruned(node, places_of(range(len(node.fields))))
        case Normalize(key=key):
            input, places = below[0]
            return Pruned(replace(node, input=input, key=at(key, places)), places)
        case Unnest(column=column):
            input, places = below[0]
            end, narrow_end = len(fields(node.input)), len(fields(input))
            added = {end + i: narrow_end + i for i in range(node.added)}
            new_fields = (*in_new_order(node.fields, places), *node.fields[end:])
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
                replace(node, input=input, expressions=expressions, fields=picked(node.fields, kept)), places_of(kept)
            )
        case Union():
            kept = sorted(needed)
            narrow = tuple(_just(pruned, kept) for pruned in below)
            return Pruned(replace(node, inputs=narrow, fields=picked(node.fields, kept)), places_of(kept))
        case WindowRows():
            input, places = below[0]
            width, narrow_width = len(fields(node.input)), len(fields(input))
            added = {width + i: narrow_width + i for i in range(3)}
            new_fields = (*in_new_order(node.fields, places), *node.fields[width:])
            window = node.window
            if isinstance(window, Session):
                window = replace(window, partition=at(window.partition, places))
            moved_rows = replace(node, input=input, time=places[node.time], window=window, fields=new_fields)
            return Pruned(moved_rows, {**places, **added})
        case WindowAggregate() | Aggregate():
            return narrowed_aggregate(node, needed, below[0])
        case TopN():
            return _narrowed_top_n(node, needed, below[0])
        case StreamWindow():
            return narrowed_stream_window(node, needed, below[0])
        case Over():
            return narrowed_over(node, needed, below[0])
        case SetOperation():
            kept = list(range(len(node.fields)))
            left, right = (_just(pruned, kept) for pruned in below)
            return Pruned(replace(node, left=left, right=right), places_of(kept))
        case PairJoin():
            return narrowed_pair(node, below[0], below[1])
        case Join() | IntervalJoin() | WindowJoin() | TemporalJoin() | LookupJoin():
            return narrowed_join(node, below[0], below[1])
        case _:
            assert_never(node)


def _narrowed_top_n(node: TopN, needed: set[int], below: Pruned) -> Pruned:
    """The rank is shown only where it is read: without it, fewer rows change."""
    input, places = below
    width = len(fields(node.input))
    shown = node.shown and width in needed
    new = replace(
        node,
        input=input,
        partition=at(node.partition, places),
        order=tuple(replace(key, column=places[key.column]) for key in node.order),
        window_time=None if node.window_time is None else places[node.window_time],
        fields=(*in_new_order(node.fields, places), *node.fields[width : width + shown]),
        shown=shown,
    )
    return Pruned(new, {**places, width: len(fields(input))} if shown else places)


def _just(pruned: Pruned, kept: list[int]) -> Node:
    """The input of a union with just the columns that are read, in order, since all inputs must agree."""
    if [pruned.places[i] for i in kept] == list(range(len(fields(pruned.node)))):
        return pruned.node
    below = fields(pruned.node)
    chosen = [below[pruned.places[i]] for i in kept]
    columns = tuple(Column(pruned.places[i], f.type, f.name) for i, f in zip(kept, chosen, strict=True))
    return Project(input=pruned.node, expressions=columns, fields=tuple(chosen))
