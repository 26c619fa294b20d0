"""The layout of a plan's drawing: rows from tables down to sinks, few crossings, lines that pass.

Sugiyama's method in small: every step stands one row below the lowest of its inputs, a line that skips a row gets a
place of its own in it, and each row is put into the order of what stands above and below it, some times over.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Generic, TypeVar

Node = TypeVar("Node", bound=Hashable)

SWEEPS = 4
"""Times that the order within each level is improved: further ones leave drawings of plans as they are."""


@dataclass(frozen=True, slots=True)
class Passing(Generic[Node]):
    """The place of a line in a row that it passes."""

    above: Node
    below: Node
    row: int


@dataclass(frozen=True, slots=True)
class Drawing(Generic[Node]):
    """`rows` from the top; `lines[i]` are pairs of places in rows i and i + 1."""

    rows: tuple[tuple[Node | Passing[Node], ...], ...]
    lines: tuple[tuple[tuple[int, int], ...], ...]


def draw(inputs: Mapping[Node, Sequence[Node]]) -> Drawing[Node]:
    """Lay out a graph, given as the inputs of each node; a node comes after all of its inputs."""
    row = _rows(inputs)
    placed: list[list[Node | Passing[Node]]] = [[] for _ in range(max(row.values(), default=-1) + 1)]
    for node, number in row.items():
        placed[number].append(node)
    above: dict[Node | Passing[Node], list[Node | Passing[Node]]] = {node: [] for node in inputs}
    for node, from_ in inputs.items():
        for each in dict.fromkeys(from_):
            upper: Node | Passing[Node] = each
            for number in range(row[each] + 1, row[node]):
                passing = Passing(each, node, number)
                placed[number].append(passing)
                above[passing] = [upper]
                upper = passing
            above[node].append(upper)
    below: dict[Node | Passing[Node], list[Node | Passing[Node]]] = {}
    for lower, uppers in above.items():
        for upper in uppers:
            below.setdefault(upper, []).append(lower)
    for _ in range(SWEEPS):
        for number in range(1, len(placed)):
            placed[number] = _ordered(placed[number], placed[number - 1], above)
        for number in reversed(range(len(placed) - 1)):
            placed[number] = _ordered(placed[number], placed[number + 1], below)
    lines = []
    for number in range(len(placed) - 1):
        place = {node: at for at, node in enumerate(placed[number])}
        lines.append(tuple((place[upper], at) for at, lower in enumerate(placed[number + 1]) for upper in above[lower]))
    return Drawing(tuple(map(tuple, placed)), tuple(lines))


def _rows(inputs: Mapping[Node, Sequence[Node]]) -> dict[Node, int]:
    """The row of each node; what has no inputs stands right above the first that reads it, not all at the top."""
    row: dict[Node, int] = {}
    for node, from_ in inputs.items():
        row[node] = max((row[each] + 1 for each in from_), default=0)
    for node, from_ in inputs.items():
        readers = [row[reader] for reader, read in inputs.items() if node in read]
        if not from_ and readers:
            row[node] = min(readers) - 1
    return row


def _ordered(
    nodes: list[Node | Passing[Node]],
    beside: Sequence[Node | Passing[Node]],
    linked: Mapping[Node | Passing[Node], Sequence[Node | Passing[Node]]],
) -> list[Node | Passing[Node]]:
    """A row in the order of the means of what its nodes are linked with; those with no link keep their place."""
    place = {node: at / len(beside) for at, node in enumerate(beside)}

    def mean(item: tuple[int, Node | Passing[Node]]) -> float:
        at, node = item
        links = [place[each] for each in linked.get(node, ()) if each in place]
        return fmean(links) if links else at / len(nodes)

    return [node for _, node in sorted(enumerate(nodes), key=mean)]
