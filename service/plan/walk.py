"""Walking over a job's nodes: a DAG in which a node may have several consumers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from service.plan.nodes import AnyJoin, Field, Job, Node, OneInput, PairJoin, Sink, TwoInputs, Union


def fields(node: Node) -> tuple[Field, ...]:
    """Return the columns of `node`."""
    return node.fields


def inputs(node: Node) -> tuple[Node, ...]:
    """Return the relations that `node` reads, left before right."""
    if isinstance(node, OneInput):
        return (node.input,)
    if isinstance(node, TwoInputs):
        return (node.left, node.right)
    return node.inputs if isinstance(node, Union) else ()


def with_inputs(node: Node, new: tuple[Node, ...]) -> Node:
    """Return `node` reading `new` instead; the very same object where nothing changes."""
    if all(a is b for a, b in zip(inputs(node), new, strict=True)):
        return node
    if isinstance(node, OneInput):
        return replace(node, input=new[0])
    if isinstance(node, TwoInputs):
        return replace(node, left=new[0], right=new[1])
    return replace(node, inputs=new) if isinstance(node, Union) else node


def shows_right(node: AnyJoin | PairJoin) -> bool:
    """Return whether a join's columns include those of its right input."""
    return node.kind.shows_right


def rewrite(job: Job, rule: Callable[[Node, tuple[bool, ...]], Node]) -> Job:
    """Apply `rule` to every node, inputs first; a node with several consumers is rewritten once and stays shared.

    The rule also receives which of the node's inputs are read by that node `alone`: a rule that reaches into an input
    of several consumers would make a second copy of it.
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
