"""Lowering of a plan to a program: kernels, laid out as levels.

A stateless step runs where its input is. An operator with state needs the rows of one key in one shard: it runs in the
level of its inputs if they are distributed by that key already, else in the next one. Partial aggregates are computed
before the exchange.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from operators.aggregates.group_by import GroupPartial
from operators.kernel import Kernel
from operators.rows.consolidate import Consolidate
from operators.rows.materialize import Materialize
from operators.windows.session_partial import SessionPartial
from operators.windows.window_partial import WindowPartial
from service.plan.deep_stack import on_a_deep_stack
from service.plan.expressions import Call, Column, Expression, moved
from service.plan.lowering import kernels
from service.plan.lowering.builder import Builder, CoLocated, Names, Port, Relation
from service.plan.lowering.distribution import Input, Stream, co_locate
from service.plan.nodes import (
    Aggregate,
    AnyJoin,
    Filter,
    IntervalJoin,
    Job,
    Join,
    JoinKind,
    LookupJoin,
    Mode,
    Node,
    Normalize,
    Over,
    PairJoin,
    Project,
    Scan,
    Session,
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
from service.plan.passes import normalize
from service.plan.passes.expand_computed import watermark
from service.plan.program import Edge, Lookup, Program
from service.plan.properties import mode, unique_keys
from service.plan.validate.check import check
from service.plan.validate.sink_keys import materializes, sink_key
from service.plan.waiting import awaited
from service.plan.walk import consumers, fields, shows_right


@on_a_deep_stack
def compile_job(job: Job, *, late_rows: bool = False) -> Program:
    """Normalize, check and lower `job`. Raises `validate.PlanErrors` with all mistakes."""
    job = normalize(job)
    check(job)
    return lower(job, late_rows=late_rows)


def lower(job: Job, *, late_rows: bool = False) -> Program:
    """Return the program of a normalized and checked job. With `late_rows` a window aggregate gets its rows whole, so
    that a late row can be stored and not only counted."""
    return lower_traced(job, late_rows=late_rows)[0]


def lower_traced(job: Job, *, late_rows: bool = False) -> tuple[Program, Mapping[int, Node | Sink]]:
    """Return the program, and what each of its sources and operators computes, by id: a step of the plan, or a sink."""
    lowering = _Lowering(job, late_rows)
    for sink in job.sinks:
        with lowering.builder.building(sink):
            lowering.sink(sink)
    lowering.order_sources(job)
    return lowering.builder.finish(job)


class _Lowering:
    def __init__(self, job: Job, late_rows: bool) -> None:
        self.builder = Builder()
        self._late_rows = late_rows
        self._readers = consumers(job)
        self._done: dict[int, Relation] = {}

    def sink(self, sink: Sink) -> None:
        """Write a relation to its table."""
        relation = self._relation(sink.input)
        key = sink_key(sink)
        if mode(sink.input) is Mode.APPEND:
            for stream in relation:
                self.builder.output(sink.table, stream.producer, sink.columns, append=True, key=key or None)
            return
        schema = kernels.schema(fields(sink.input))
        by = _net_key(sink, relation)
        port = Port(relation, tuple(range(len(schema))) if by is None else by, schema)
        placed = self.builder.exchange_to_key([port])
        if materializes(sink):
            net = self.builder.stateful("materialize", Materialize(output=schema, key=key), placed)
        else:
            net = self.builder.operator(
                "consolidate", placed.level, Consolidate(output=schema, key=by or ()), placed.edges
            )
        self.builder.output(sink.table, net, sink.columns, append=False, key=by)

    def order_sources(self, job: Job) -> None:
        """Record which tables are read after others."""
        for scan, tables in awaited(job):
            ids = frozenset(self._relation(table)[0].producer for table in tables)
            self.builder.read_after(self._relation(scan)[0].producer, ids)

    def _relation(self, node: Node) -> Relation:
        if id(node) not in self._done:
            with self.builder.building(node):
                self._done[id(node)] = self._lowered(node)
        return self._done[id(node)]

    def _lowered(self, node: Node) -> Relation:
        match node:
            case Scan():
                return (self._scan(node),)
            case Values():
                raise TypeError("VALUES are read from a table, which a pass has put in their place")
            case Project(input=Filter() as below) if self._readers[id(below)] == 1:
                return self._calc(below.input, node.expressions, below.condition)
            case Project():
                return self._calc(node.input, node.expressions, None)
            case Filter():
                return self._calc(node.input, _all_columns(node.input), node.condition)
            case Union():
                return tuple(stream for each in node.inputs for stream in self._relation(each))
            case WindowRows(window=Session(partition=partition) as window):
                return self._keyed("session_rows", kernels.session_rows(node, window), node.input, partition)
            case WindowRows():
                kernel = kernels.window_rows(node)
                same = {i: (i,) for i in range(len(fields(node.input)))}
                return tuple(
                    self.builder.stateless("window_rows", kernel, s, same, _names(node.input))
                    for s in self._relation(node.input)
                )
            case WindowAggregate() if (
                self._late_rows or mode(node.input) is Mode.RETRACT or kernels.in_order_of_arrival(node)
            ):
                return self._window_of_whole_rows(node)
            case WindowAggregate() | Aggregate():
                return self._two_steps(node)
            case StreamWindow():
                return self._stream_window(node)
            case Over():
                return self._timed("over", kernels.over(node), node.input, node.partition, node.time)
            case TopN(window_time=time) if time is not None:
                return self._timed("top_n", kernels.top_n(node), node.input, node.partition, time)
            case TopN():
                return self._top_n(node)
            case Unnest():
                same = {i: (i,) for i in range(len(fields(node.input)))}
                return tuple(
                    self.builder.stateless("unnest", kernels.unnest(node), s, same, _names(node.input))
                    for s in self._relation(node.input)
                )
            case TimeSort():
                return self._timed("sort", kernels.time_sort(node), node.input, (), node.time)
            case Normalize():
                return self._keyed("normalize", kernels.normalize(node), node.input, node.key)
            case Join():
                return self._join("join", kernels.join(node), node)
            case PairJoin():
                return self._join("pair_join", kernels.pair(node), node)
            case IntervalJoin():
                return self._join("interval_join", kernels.interval(node), node)
            case WindowJoin():
                return self._join("window_join", kernels.window(node), node)
            case SetOperation():
                return self._set_operation(node)
            case TemporalJoin():
                return self._join("temporal_join", kernels.temporal(node), node)
            case LookupJoin():
                return self._lookup(node)
            case _:
                assert_never(node)

    def _scan(self, scan: Scan) -> Stream:
        asserted = watermark(scan.table)
        places = {index: place for place, index in enumerate(scan.columns)}
        return self.builder.source(scan.table, scan.columns, None if asserted is None else moved(asserted, places))

    def _calc(self, input: Node, expressions: tuple[Expression, ...], where: Expression | None) -> Relation:
        kernel = kernels.calc(kernels.schema(fields(input)), expressions, where)
        places: dict[int, list[int]] = {}
        merged: dict[tuple[int, int], list[int]] = {}
        for place, expression in enumerate(expressions):
            match expression:
                case Column(index):
                    places.setdefault(index, []).append(place)
                case Call("COALESCE", (Column(first), Column(second))):
                    merged.setdefault((first, second), []).append(place)
        names = _names(input)
        return tuple(self.builder.stateless("calc", kernel, s, places, names, merged) for s in self._relation(input))

    def _two_steps(self, node: WindowAggregate | Aggregate) -> Relation:
        """Partial aggregates where the rows are, merged where the rows of a key are co-located."""
        partial: GroupPartial | WindowPartial | SessionPartial
        whole: Kernel
        if isinstance(node, WindowAggregate) and isinstance(node.window, Session):
            name, partial = "session_aggregate", kernels.partial_session(node, node.window.gap)
            whole = kernels.full_session(node, node.window.gap, whole=False)
            partials = self._partials("session_partial", partial, node)
        elif isinstance(node, Aggregate):
            name, partial, whole = "group_by", kernels.group_partial(node), kernels.group(node)
            partials = self._partials("group_partial", partial, node)
        else:
            name, partial, whole = "window_aggregate", kernels.partial_window(node), kernels.full_window(node)
            partials = self._partials("window_partial", partial, node)
        key = tuple(range(len(node.keys)))
        placed = self.builder.exchange_to_key([Port(partials, key, partial.output)])
        ports = (tuple(f.name for f in node.fields[: len(key)]),)
        return (_distributed(self.builder.stateful(name, whole, placed, ports), placed, [key]),)

    def _partials(self, name: str, kernel: Kernel, node: Aggregate | WindowAggregate) -> Relation:
        places: dict[int, list[int]] = {}
        for place, column in enumerate(node.keys):
            places.setdefault(column, []).append(place)
        return tuple(
            self.builder.stateless(name, kernel, s, places, _names(node.input)) for s in self._relation(node.input)
        )

    def _window_of_whole_rows(self, node: WindowAggregate) -> Relation:
        """An aggregate over whole rows, without partials: late rows can be stored, and retracted rows can be found."""
        schema = kernels.schema(fields(node.input))
        placed = self.builder.exchange_to_key([Port(self._relation(node.input), node.keys, schema)])
        if isinstance(node.window, Session):
            both = kernels.full_session(node, node.window.gap, whole=True)
            whole = self.builder.stateful("session_aggregate", both, placed, _names(node.input))
            return (_distributed(whole, placed, [range(len(node.keys))]),)
        if kernels.in_order_of_arrival(node):
            numbered = kernels.numbered_windows(node)
            whole = self.builder.stateful("window_aggregate", numbered, placed, _names(node.input))
            return (_distributed(whole, placed, [range(len(node.keys))]),)
        kernel = kernels.partial_window(node)
        partial = self.builder.operator("window_partial", placed.level, kernel, placed.edges, _names(node.input))
        whole = self.builder.stateful(
            "window_aggregate", kernels.full_window(node), placed._replace(edges=(Edge(partial),))
        )
        return (_distributed(whole, placed, [range(len(node.keys))]),)

    def _top_n(self, node: TopN) -> Relation:
        """A Top-N. If all rows are ranked together, only those that may be among the first are sent to the one
        shard."""
        relation, schema = self._relation(node.input), kernels.schema(fields(node.input))
        if not node.partition and mode(node.input) is Mode.APPEND:
            partial, same = kernels.top_n_partial(node), {i: (i,) for i in range(len(schema))}
            relation = tuple(
                self.builder.stateless("top_n_partial", partial, s, same, _names(node.input)) for s in relation
            )
        placed = self.builder.exchange_to_key([Port(relation, node.partition, schema)])
        top = self.builder.stateful("top_n", kernels.top_n(node), placed, _names(node.input))
        return (_distributed(top, placed, [node.partition]),)

    def _keyed(self, name: str, kernel: Kernel, input: Node, key: tuple[int, ...]) -> Relation:
        """An operator with one input, whose columns keep their positions."""
        placed = self.builder.exchange_to_key([Port(self._relation(input), key, kernels.schema(fields(input)))])
        return (_distributed(self.builder.stateful(name, kernel, placed, _names(input)), placed, [key]),)

    def _timed(self, name: str, kernel: Kernel, input: Node, key: tuple[int, ...], time: int) -> Relation:
        """As `_keyed`, for an operator that emits a row once: rows of an updating input wait until the watermark has
        reached their `time`."""
        if mode(input) is Mode.APPEND:
            return self._keyed(name, kernel, input, key)
        port = Port(self._relation(input), key, kernels.schema(fields(input)))
        placed, ports = self.builder.exchange_to_key([port]), _names(input)
        final_rows = self.builder.stateful("settle", kernels.settle(input, key, time), placed, ports)
        answers = self.builder.stateful(name, kernel, placed._replace(edges=(Edge(final_rows),)), ports)
        return (_distributed(answers, placed, [key]),)

    def _stream_window(self, node: StreamWindow) -> Relation:
        """A window of eKuiper's: rows are distributed by partition, whose columns are among the keys of an
        aggregate."""
        port = Port(self._relation(node.input), node.partition, kernels.schema(fields(node.input)))
        placed = self.builder.exchange_to_key([port])
        kernel = kernels.stream_window(node)
        added = self.builder.stateful("stream_window", kernel, placed, _names(node.input))
        shown = node.partition if node.keys is None else tuple(node.keys.index(p) for p in node.partition)
        return (_distributed(added, placed, [shown]),)

    def _set_operation(self, node: SetOperation) -> Relation:
        kernel = kernels.set_operation(node)
        key = tuple(range(len(node.fields)))
        ports = [Port(self._relation(each), key, kernel.output) for each in (node.left, node.right)]
        placed = self.builder.exchange_to_key(ports)
        names = _names(node.left, node.right)
        added = self.builder.stateful("set_operation", kernel, placed, names)
        return (_distributed(added, placed, [key]),)

    def _join(self, name: str, kernel: Kernel, node: AnyJoin | PairJoin) -> Relation:
        left = Port(self._relation(node.left), node.left_keys, kernels.schema(fields(node.left)))
        right = Port(self._relation(node.right), node.right_keys, kernels.schema(fields(node.right)))
        placed = self.builder.exchange_to_key([left, right])
        width = len(left.schema)
        # A padded row is in the shard of the side that it has.
        keys: list[Iterable[int]] = []
        if node.kind not in (JoinKind.RIGHT, JoinKind.FULL):
            keys += _equal_keys(left)
        if shows_right(node) and node.kind in (JoinKind.INNER, JoinKind.RIGHT):
            keys += [[k + width for k in key] for key in _equal_keys(right)]
        ports = _names(node.left, node.right)
        joined = _distributed(self.builder.stateful(name, kernel, placed, ports), placed, keys)
        if node.kind is not JoinKind.FULL:
            return (joined,)
        pairs = [(left, right + width) for left, right in zip(node.left_keys, node.right_keys, strict=True)]
        return (replace(joined, either=tuple(frozenset({pairs[i], pairs[i][::-1]}) for i in placed.key_order)),)

    def _lookup(self, node: LookupJoin) -> Relation:
        """A lookup join: rows of one key go to one task, so that the database is asked once for it."""
        left = Port(self._relation(node.left), node.left_keys, kernels.schema(fields(node.left)))
        placed = self.builder.exchange_to_key([left])
        asks = Lookup(node.table.table, node.table.columns, node.right_keys)
        joined = self.builder.stateful("lookup_join", kernels.lookup(node), placed, _names(node.left), asks)
        return (_distributed(joined, placed, _equal_keys(left)),)


def _equal_keys(port: Port) -> list[tuple[int, ...]]:
    """The key of an input, and the same with other columns that hold its values."""
    equal = [{key} for key in port.key]
    if len(port.relation) == 1:
        for group in port.relation[0].distribution or ():
            for columns in equal:
                columns |= group if columns & group else set()
    most = max(map(len, equal), default=0)
    return [tuple(sorted(columns)[i % len(columns)] for columns in equal) for i in range(most)] or [()]


def _distributed(producer: int, placed: CoLocated, keys: Iterable[Iterable[int]]) -> Stream:
    """The output of an operator, distributed as its inputs; `keys` are positions of the key in the output."""
    known = [tuple(k) for k in keys]
    return Stream(producer, placed.level, tuple(frozenset(k[i] for k in known) for i in placed.key_order))


def _net_key(sink: Sink, relation: Relation) -> tuple[int, ...] | None:
    """The key of an updating plan's rows: the sink's primary key, else the plan's key with the cheapest placement; None
    if there is no key."""
    if key := sink_key(sink):
        return key
    keys = [tuple(sorted(k)) for k in unique_keys(sink.input)]
    return min(keys, key=lambda k: co_locate([Input(s, k) for s in relation]).cost(), default=None)


def _names(*inputs: Node) -> Names:
    return tuple(tuple(f.name for f in fields(each)) for each in inputs)


def _all_columns(node: Node) -> tuple[Expression, ...]:
    return tuple(Column(i, f.type, f.name) for i, f in enumerate(fields(node)))
