"""Nodes that compute calls, without those that nobody reads: aggregates, windows over a stream, OVER."""

from __future__ import annotations

from dataclasses import replace

from service.plan.nodes import Aggregate, AggregateCall, Attached, Over, StreamWindow, WindowAggregate
from service.plan.passes.pruning.kept_calls import before_aggregates, kept_calls, kept_over_calls, kept_stream_calls
from service.plan.passes.pruning.places import Places, Pruned, at, in_new_order, picked, places_of
from service.plan.walk import fields


def narrowed_aggregate(node: WindowAggregate | Aggregate, needed: set[int], below: Pruned) -> Pruned:
    """Return an aggregate over what is left `below`, of which only `needed` columns are read."""
    input, places = below
    calls = kept_calls(node, needed)
    keys = len(node.keys)
    kept = [*range(keys), *(keys + i for i in calls), *range(keys + len(node.aggregates), len(node.fields))]
    aggregates = tuple(_call(node.aggregates[i], places) for i in calls)
    common = replace(
        node, input=input, keys=at(node.keys, places), aggregates=aggregates, fields=picked(node.fields, kept)
    )
    if isinstance(common, WindowAggregate):
        window = common.window
        if isinstance(window, Attached):
            window = Attached(places[window.start], places[window.end])
        common = replace(common, time=places[common.time], window=window)
    return Pruned(common, places_of(kept))


def narrowed_stream_window(node: StreamWindow, needed: set[int], below: Pruned) -> Pruned:
    """Return a window over a stream over what is left `below`, of which only `needed` columns are read."""
    input, places = below
    width, calls = before_aggregates(node), kept_stream_calls(node, needed)
    keys = None if node.keys is None else at(node.keys, places)
    shown = dict(places) if keys is None else {i: i for i in range(width)}
    behind = [*(width + i for i in calls), *range(width + len(node.aggregates), len(node.fields))]
    new = replace(
        node,
        input=input,
        time=None if node.time is None else places[node.time],
        partition=at(node.partition, places),
        conditions=at(node.conditions, places),
        seen=None if node.seen is None else places[node.seen],
        keys=keys,
        aggregates=tuple(_call(node.aggregates[i], places) for i in calls),
        fields=(*in_new_order(node.fields, shown), *picked(node.fields, behind)),
    )
    return Pruned(new, {**shown, **{old: len(shown) + n for n, old in enumerate(behind)}})


def narrowed_over(node: Over, needed: set[int], below: Pruned) -> Pruned:
    """Return OVER calls over what is left `below`, of which only `needed` columns are read."""
    input, places = below
    width, narrow_width = len(fields(node.input)), len(fields(input))
    calls = kept_over_calls(node, needed)
    new = replace(
        node,
        input=input,
        partition=at(node.partition, places),
        time=places[node.time],
        ties=at(node.ties, places),
        calls=tuple(
            replace(
                c,
                arguments=at(c.arguments, places),
                filter=None if c.filter is None else places[c.filter],
            )
            for c in (node.calls[i] for i in calls)
        ),
        fields=(*in_new_order(node.fields, places), *(node.fields[width + i] for i in calls)),
    )
    return Pruned(new, {**places, **{width + i: narrow_width + n for n, i in enumerate(calls)}})


def _call(call: AggregateCall, places: Places) -> AggregateCall:
    return replace(
        call, arguments=at(call.arguments, places), filter=None if call.filter is None else places[call.filter]
    )
