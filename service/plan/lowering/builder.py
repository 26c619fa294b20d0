"""The construction of a program: numbers, names, edges, and the exchanges before operators with several inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from operators.fingerprint import fingerprint_of_format_6
from operators.kernel import Kernel
from operators.rows.union import UnionAll
from service.plan.expressions import Expression, render
from service.plan.lowering.distribution import Input, Stream, co_locate
from service.plan.lowering.monotone import rises_with
from service.plan.meaning import Computed, Lineage, Meaning, output_meaning, source_meaning
from service.plan.nodes import Job, Node, Sink
from service.plan.program import Edge, Lookup, Operator, Output, Program, Source
from service.plan.table import Table

Relation = tuple[Stream, ...]
"""A relation as it is computed: one stream, or the inputs of a UNION ALL that no operator has needed as one yet."""


Names = tuple[tuple[str, ...], ...]
"""The names of the columns of each input."""


class Port(NamedTuple):
    """An input of an operator that keeps state: its streams, the key by which their rows must meet, their columns."""

    relation: Relation
    key: tuple[int, ...]
    schema: pa.Schema


class CoLocated(NamedTuple):
    """The place where the ports meet: the level, one edge a port, and which of the key columns the shard is chosen by:
    `order` is `key_order`, but None where it is all of them in their order."""

    level: int
    edges: tuple[Edge, ...]
    key_order: tuple[int, ...]
    order: tuple[int, ...] | None


class Builder:
    """A program in the making; what is added gets the next number, so numbers are in topological order."""

    def __init__(self) -> None:
        self._sources: list[Source] = []
        self._after: dict[int, frozenset[int]] = {}
        self._operators: list[Operator] = []
        self._outputs: list[Output] = []
        self._named: Counter[str] = Counter()
        self._next = 0
        self._of: Node | Sink | None = None
        self._made_for: dict[int, Node | Sink] = {}

    @contextmanager
    def building(self, of: Node | Sink) -> Iterator[None]:
        """Record that what is added inside computes `of`, except inside a nested `building`."""
        outer, self._of = self._of, of
        yield
        self._of = outer

    def source(self, table: Table, columns: tuple[int, ...], watermark: Expression | None) -> Stream:
        """Read a table; `watermark` is in terms of the columns that are read."""
        text = None if watermark is None else render(watermark)
        rising = None if watermark is None else rises_with(watermark)
        self._sources.append(Source(self._number(), table, columns, text, rising))
        return Stream(self._sources[-1].id, 0)

    def read_after(self, source: int, others: frozenset[int]) -> None:
        """Make the source with the id `source` wait for those with the ids `others`."""
        self._after[source] = others

    def operator(
        self,
        name: str,
        level: int,
        kernel: Kernel,
        inputs: tuple[Edge, ...],
        ports: Names = (),
        order: tuple[int, ...] | None = None,
        lookup: Lookup | None = None,
    ) -> int:
        """Add a kernel; the name is completed by a number of its own."""
        self._named[name] += 1
        named = f"{name}_{self._named[name]}"
        added = Operator(self._number(), named, level, kernel, inputs, ports, order, lookup=lookup)
        self._operators.append(added)
        return added.id

    def stateful(
        self, name: str, kernel: Kernel, placed: CoLocated, ports: Names = (), lookup: Lookup | None = None
    ) -> int:
        """Add a kernel with state at the level where its inputs are co-located."""
        return self.operator(name, placed.level, kernel, placed.edges, ports, placed.order, lookup)

    def output(
        self, table: Table, producer: int, columns: tuple[int, ...], *, append: bool, key: tuple[int, ...] | None
    ) -> None:
        """Write the output of `producer`."""
        self._outputs.append(Output(self._number(), table, Edge(producer), columns, append, key))

    def stateless(
        self,
        name: str,
        kernel: Kernel,
        stream: Stream,
        places: Mapping[int, Sequence[int]],
        ports: Names,
        merged: Mapping[tuple[int, int], Sequence[int]] | None = None,
    ) -> Stream:
        """Add a stateless kernel where `stream` is; `places` says where each of its columns comes out, `merged` where
        COALESCE of two of them does."""
        added = self.operator(name, stream.level, kernel, (Edge(stream.producer),), ports)
        return stream.renamed(added, places, merged)

    def exchange_to_key(self, ports: Sequence[Port]) -> CoLocated:
        """Add the exchanges that bring rows of equal keys to one shard of one level."""
        inputs = [Input(stream, port.key) for port in ports for stream in port.relation]
        placement = co_locate(inputs)
        edges = [Edge(input.stream.producer, key) for input, key in zip(inputs, placement.exchanges, strict=True)]
        united: list[Edge] = []
        for port in ports:
            own, edges = edges[: len(port.relation)], edges[len(port.relation) :]
            united.append(own[0] if len(own) == 1 else self._union(placement.level, port.schema, tuple(own)))
        whole = placement.key_order == tuple(range(len(ports[0].key)))
        return CoLocated(placement.level, tuple(united), placement.key_order, None if whole else placement.key_order)

    def finish(self, job: Job) -> tuple[Program, Mapping[int, Node | Sink]]:
        """Return the program, and what each of its sources and operators computes, by id."""
        ids = [each.id for group in (self._sources, self._outputs, self._operators) for each in group]
        number = {old: new for new, old in enumerate(ids)}

        def moved(edge: Edge) -> Edge:
            return replace(edge, producer=number[edge.producer])

        sources = tuple(
            replace(s, id=number[s.id], after=tuple(sorted(number[each] for each in self._after.get(s.id, ()))))
            for s in self._sources
        )
        outputs = tuple(replace(o, id=number[o.id], edge=moved(o.edge)) for o in self._outputs)
        levels = max((o.level for o in self._operators), default=0)
        lineage, operators, stateful = Lineage(job), [], []
        versions: dict[int, Mapping[str, int]] = {}
        for operator in self._operators:
            of = self._made_for[operator.id]
            computed = _computed(operator, [versions.get(edge.producer, {}) for edge in operator.inputs])
            versions[operator.id] = computed.versions
            identity = lineage.identity(of, computed)
            edges = tuple(map(moved, operator.inputs))
            operators.append(replace(operator, id=number[operator.id], inputs=edges, identity=identity.now))
            if operator.kernel.traces():
                stateful.append(lineage.operator(of, identity, operator.name, computed))
        program = Program(
            name=job.name,
            sources=sources,
            operators=tuple(operators),
            outputs=outputs,
            levels=levels,
            fingerprint=lineage.query,
            meaning=Meaning(
                query=lineage.query,
                zone=job.zone,
                levels=levels,
                sources=tuple(source_meaning(s.table, s.id) for s in sources),
                outputs=tuple(output_meaning(o.table, o.columns, o.key, append=o.append) for o in outputs),
                operators=tuple(stateful),
                used_ids=len(sources),
                formerly=lineage.query_formerly,
            ),
        )
        return program, {number[old]: of for old, of in self._made_for.items()}

    def _union(self, level: int, schema: pa.Schema, edges: tuple[Edge, ...]) -> Edge:
        return Edge(self.operator("union", level, UnionAll(ports=len(edges), output=schema), edges))

    def _number(self) -> int:
        self._next += 1
        if self._of is not None:
            self._made_for[self._next - 1] = self._of
        return self._next - 1


def _computed(operator: Operator, below: Sequence[Mapping[str, int]]) -> Computed:
    """What an operator computes; `below` are the versions of its inputs."""
    kind = operator.name.rpartition("_")[0]
    return Computed(
        kind=kind,
        spec=operator.kernel.fingerprint(),
        formerly=fingerprint_of_format_6(operator.kernel),
        placing=str(operator.order),
        level=operator.level,
        versions={k: v for each in below for k, v in each.items()} | {kind: operator.kernel.version},
    )
