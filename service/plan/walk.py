"""Walking over a job's nodes: a DAG in which a node may have several consumers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import assert_never

from service.plan.nodes import (
    Aggregate,
    AnyJoin,
    Field,
    Filter,
    IntervalJoin,
    Job,
    Join,
    LookupJoin,
    Node,
    Normalize,
    Over,
    PairJoin,
    Project,
    Scan,
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


def fields(node: Node) -> tuple[Field, ...]:
    """Return the columns of `node`."""
    return node.fields


def inputs(node: Node) -> tuple[Node, ...]:
    """Return the relations that `node` reads, left before right."""
    match node:
        case Scan() | Values():
            return ()
        case (
            Normalize()
            | Project()
            | Filter()
            | WindowRows()
            | WindowAggregate()
            | Aggregate()
            | Over()
            | TopN()
            | TimeSort()
            | Unnest()
            | StreamWindow()
        ):
            return (node.input,)
        case Union():
            return node.inputs
        case Join() | IntervalJoin() | WindowJoin() | TemporalJoin() | LookupJoin() | PairJoin() | SetOperation():
            return (node.left, node.right)
        case _:
            assert_never(node)


def with_inputs(node: Node, new: tuple[Node, ...]) -> Node:
    """Return `node` reading `new` instead; the very same object where nothing changes."""
    if all(a is b for a, b in zip(inputs(node), new, strict=True)):
        return node
    match node:
        case Scan() | Values():
            return node
        case (
            Normalize()
            | Project()
            | Filter()
            | WindowRows()
            | WindowAggregate()
            | Aggregate()
            | Over()
            | TopN()
            | TimeSort()
            | Unnest()
            | StreamWindow()
        ):
            return replace(node, input=new[0])
        case Union():
            return replace(node, inputs=new)
        case Join() | IntervalJoin() | WindowJoin() | TemporalJoin() | LookupJoin() | PairJoin() | SetOperation():
            return replace(node, left=new[0], right=new[1])
        case _:
            assert_never(node)


def shows_right(node: AnyJoin | PairJoin) -> bool:
    """Return whether a join's columns include those of its right input."""
    return node.kind.shows_right


def rewrite(job: Job, rule: Callable[[Node, tuple[bool, ...]], Node]) -> Job:
    """Apply `rule` to every node, inputs first; a node with several consumers is rewritten once and stays shared.

    The rule also hears which of the node's inputs are read by that node `alone`: a rule that reaches into an input of
    several consumers would make a second copy of it.
    """
    readers = consumers(job)
    done: dict[int, Node] = {}

    def visit(node: Node) -> Node:
        if id(node) not in done:
            old = inputs(node)
            new = with_inputs(node, tuple(visit(i) for i in old))
            done[id(node)] = rule(new, tuple(readers[id(i)] == 1 for i in old))
        return done[id(node)]

    return replace(job, sinks=tuple(replace(s, input=visit(s.input)) for s in job.sinks))


def in_order(roots: Iterable[Sink | Node]) -> list[Node]:
    """Return every node once, inputs before those who read them."""
    seen: set[int] = set()
    found: list[Node] = []

    def visit(node: Node) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        for each in inputs(node):
            visit(each)
        found.append(node)

    for root in roots:
        visit(root.input if isinstance(root, Sink) else root)
    return found


def consumers(job: Job) -> Counter[int]:
    """Return how many readers each node has, by id."""
    count = Counter(id(s.input) for s in job.sinks)
    for node in in_order(job.sinks):
        count.update(id(i) for i in inputs(node))
    return count
