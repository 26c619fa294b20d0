"""The program: what both runners execute. A DAG of kernels laid out as levels.

Level 0 runs where rows enter, in tasks that read some Kafka partitions each; each further level is one exchange and one
stateful step, in which a shard hosts every node of that level. A node reads its inputs over edges: an edge within a
level hands an Arrow table on, an edge to a later level is an exchange by the hash of some columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from operators.kernel import Kernel
from service.plan.meaning import Meaning
from service.plan.table import Table


@dataclass(frozen=True, slots=True)
class Edge:
    """An input of a node. `key` holds the positions (in the producer's output) whose hash chooses the shard when the
    edge crosses levels; () sends everything to one shard; None = the same level, no exchange."""

    producer: int
    key: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A table that is read. It is a producer by `id`, in level 0: the decoder's output has the *physical and metadata*
    columns at `columns` (indexes into table.columns) as c0, c1, ... and `_weight`.

    The decoded rows then go through ordinary level-0 nodes (computed columns, filters, pre-aggregation). `watermark` is
    DuckDB text over the decoded columns that gives each row's asserted watermark (a TIMESTAMP in UTC), or None.
    `rises_with` is the decoded column, if there is one, whose highest value has the highest watermark, if it has any.
    It is read `after` other sources, by id: when they have been read to where they ended at the job's first start.
    """

    id: int
    table: Table
    columns: tuple[int, ...]
    watermark: str | None
    rises_with: int | None = None
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Lookup:
    """A table of a database that an operator asks: the rows with given values in `keys`, positions among `columns`,
    which are indexes into table.columns."""

    table: Table
    columns: tuple[int, ...]
    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """A kernel at its place. `name` is what people and metrics call it, with a running number; `identity` is what its
    state is kept under: what it means (`service.plan.meaning`), or what that was called when the state was begun.
    `ports` are the names that the columns of each input have in the query, for showing rows to people; of partial
    totals only the keys have names.
    `order` says which columns of its key, by their place in it, choose the shard of its rows; None for all in order.
    `lookup` is what a lookup join asks.
    """

    id: int
    name: str
    level: int
    kernel: Kernel
    inputs: tuple[Edge, ...]
    ports: tuple[tuple[str, ...], ...] = ()
    order: tuple[int, ...] | None = None
    identity: str = ""
    lookup: Lookup | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """A sink: changes of the edge's producer, already net and at their place, encoded and written.

    `key` are the positions, among c0, c1, ..., of what tells rows apart: the table's primary key, or else a unique key
    of the plan, () if there is one row at most, None if nothing tells them apart; rows of one key are in one shard.
    `columns` are the indexes into table.columns that c0, c1, ... fill. `append` says that no row is ever retracted.
    Rows that an output `discards` are counted where they are made: they need not travel to be thrown away.
    """

    id: int
    table: Table
    edge: Edge
    columns: tuple[int, ...]
    append: bool
    key: tuple[int, ...] | None = None
    discards: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """One job, ready to run. Ids of sources, outputs and operators are distinct; sources come first and then outputs,
    so that a change of what is between them leaves their ids as they were. All are in topological order.

    `levels` is the number of the last level, so of exchanges in a row; 0 if every row is done where it enters.
    """

    name: str
    sources: tuple[Source, ...]
    operators: tuple[Operator, ...]
    outputs: tuple[Output, ...]
    levels: int
    fingerprint: str
    meaning: Meaning = field(default=Meaning(""))


def discarding(program: Program) -> Program:
    """Return `program` with the rows of 'blackhole' tables thrown away where they are made."""
    outputs = tuple(replace(o, discards=o.table.connector.kind == "blackhole") for o in program.outputs)
    return replace(program, outputs=outputs)


def starts_in_plan(program: Program) -> list[int]:
    """Return the positions of the sources of which the plan of a batch tells where it begins: those to which partitions
    may come, and all where there is no state, since a batch without rows leaves no plan then."""
    return [
        position
        for position, source in enumerate(program.sources)
        if source.table.connector.topic_pattern or not program.levels
    ]
