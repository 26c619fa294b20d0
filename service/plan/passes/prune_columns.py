"""Columns that nobody reads are dropped, down to the scan: a decoder decodes only what is used."""

from __future__ import annotations

from dataclasses import replace

from service.plan.expressions import Column
from service.plan.nodes import Job, Project, Sink
from service.plan.passes.pruning.narrowed import narrowed
from service.plan.passes.pruning.needed import needed_of_inputs
from service.plan.passes.pruning.places import Pruned
from service.plan.walk import fields, in_order, inputs


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
        for each, wanted in zip(inputs(node), needed_of_inputs(node, needs[id(node)]), strict=True):
            needs[id(each)].update(wanted)
    done: dict[int, Pruned] = {}
    for node in nodes:
        done[id(node)] = narrowed(node, needs[id(node)], [done[id(i)] for i in inputs(node)])
    return replace(job, sinks=tuple(_reading_in_order(s, done[id(s.input)]) for s in job.sinks))


def _reading_in_order(sink: Sink, pruned: Pruned) -> Sink:
    """A sink over what is left `pruned` of its input: it reads all columns in their order, so none may have moved."""
    count = len(fields(sink.input))
    if [pruned.places[i] for i in range(count)] == list(range(len(fields(pruned.node)))):
        return replace(sink, input=pruned.node)
    below = fields(sink.input)
    columns = tuple(Column(pruned.places[i], below[i].type, below[i].name) for i in range(count))
    return replace(sink, input=Project(input=pruned.node, expressions=columns, fields=below, place=sink.place))
