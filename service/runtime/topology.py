"""How the nodes of a program are wired: which blocks cross to which level, and whose watermark a node hears."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from service.plan.program import Operator, Output, Program, Source


class Crossing(NamedTuple):
    """Changes of `producer` that go to `level`, each row to the bucket of the hash of the columns `key`."""

    producer: int
    level: int
    key: tuple[int, ...]


class Wiring:
    """Look-ups over a program that do not change while it runs."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.sources: dict[int, Source] = {s.id: s for s in program.sources}
        self.operators: dict[int, Operator] = {o.id: o for o in program.operators}
        self.level_of: dict[int, int] = {s.id: 0 for s in program.sources} | {o.id: o.level for o in program.operators}

    @cached_property
    def crossings(self) -> tuple[Crossing, ...]:
        """Every exchange; its position is the address on the envelopes."""
        found: dict[Crossing, None] = {}
        for operator in self.program.operators:
            for edge in operator.inputs:
                if edge.key is not None:
                    found.setdefault(Crossing(edge.producer, operator.level, edge.key))
        return tuple(found)

    @cached_property
    def address(self) -> dict[Crossing, int]:
        """The position of each crossing."""
        return {crossing: i for i, crossing in enumerate(self.crossings)}

    def address_of(self, producer: int, level: int, key: tuple[int, ...]) -> int:
        """The address of one crossing."""
        return self.address[Crossing(producer, level, key)]

    def leaving(self, producer: int) -> list[tuple[int, Crossing]]:
        """The crossings of one producer, with their addresses."""
        return [(i, c) for i, c in enumerate(self.crossings) if c.producer == producer]

    def outputs_of(self, producer: int) -> list[Output]:
        """The outputs that `producer` feeds."""
        return [o for o in self.program.outputs if o.edge.producer == producer]

    def operators_at(self, level: int) -> list[Operator]:
        """The operators of a level, in topological order."""
        return [o for o in self.program.operators if o.level == level]

    def sources_of(self, producer: int) -> frozenset[int]:
        """The sources whose rows reach a producer of level 0."""
        if producer in self.sources:
            return frozenset({producer})
        return frozenset().union(*(self.sources_of(e.producer) for e in self.operators[producer].inputs))

    def levels_heard_by(self, source: int) -> list[int]:
        """The levels that take changes straight from level 0 of `source`, and so need its clock."""
        levels = {
            c.level for c in self.crossings if self.level_of[c.producer] == 0 and source in self.sources_of(c.producer)
        }
        return sorted(levels)

    def levels_fed_by(self, producer: int) -> list[int]:
        """The later levels that hear the clock of an operator of level 1 or more."""
        return sorted({c.level for c in self.crossings if c.producer == producer})
