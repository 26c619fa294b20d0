"""The topology of a program: its exchanges between levels, and whose watermark a node observes."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from service.plan.program import Operator, Output, Program, Source


class Exchange(NamedTuple):
    """Changes of `producer` that go to `level`, each row to the shard of the hash of the columns `key`."""

    producer: int
    level: int
    key: tuple[int, ...]


class Topology:
    """Look-ups over a program that do not change while it runs."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.sources: dict[int, Source] = {s.id: s for s in program.sources}
        self.operators: dict[int, Operator] = {o.id: o for o in program.operators}
        self.level_of: dict[int, int] = {s.id: 0 for s in program.sources} | {o.id: o.level for o in program.operators}

    @cached_property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Every exchange; its position is the address on the envelopes."""
        found: dict[Exchange, None] = {}
        for operator in self.program.operators:
            for edge in operator.inputs:
                if edge.key is not None:
                    found.setdefault(Exchange(edge.producer, operator.level, edge.key))
        return tuple(found)

    @cached_property
    def address(self) -> dict[Exchange, int]:
        """The position of each exchange."""
        return {exchange: i for i, exchange in enumerate(self.exchanges)}

    def address_of(self, producer: int, level: int, key: tuple[int, ...]) -> int:
        """Return the address of one exchange."""
        return self.address[Exchange(producer, level, key)]

    def exchanges_from(self, producer: int) -> list[tuple[int, Exchange]]:
        """Return the exchanges of one producer, with their addresses."""
        return [(i, c) for i, c in enumerate(self.exchanges) if c.producer == producer]

    def outputs_of(self, producer: int) -> list[Output]:
        """Return the outputs that `producer` feeds."""
        return [o for o in self.program.outputs if o.edge.producer == producer]

    def operators_at(self, level: int) -> list[Operator]:
        """Return the operators of a level, in topological order."""
        return [o for o in self.program.operators if o.level == level]

    def sources_of(self, producer: int) -> frozenset[int]:
        """Return the sources whose rows reach a producer of level 0."""
        if producer in self.sources:
            return frozenset({producer})
        return frozenset().union(*(self.sources_of(e.producer) for e in self.operators[producer].inputs))

    def levels_receiving(self, source: int) -> list[int]:
        """Return the levels that take changes straight from level 0 of `source`, and so need its clock."""
        levels = {
            c.level for c in self.exchanges if self.level_of[c.producer] == 0 and source in self.sources_of(c.producer)
        }
        return sorted(levels)

    def levels_fed_by(self, producer: int) -> list[int]:
        """Return the later levels that receive the clock of an operator of level 1 or more."""
        return sorted({c.level for c in self.exchanges if c.producer == producer})
