"""The operators of a level for the keys of one shard, and their state."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import pyarrow as pa

from operators.columns import no_changes
from operators.joins.lookup_join import LookupJoinOperator
from operators.kernel import Step
from operators.sql import Sql
from operators.state.block import Fetch
from operators.state.clipping import StatePart, clipped
from operators.state.mapped import MappedBytes
from operators.state.operator_state import State
from service.plan.program import Operator
from service.runtime.counting import count_changes, count_step, measure_state
from service.runtime.envelope import EGRESS, Envelope, Kind, packed
from service.runtime.layout import Layout
from service.runtime.level_clock import Moment
from service.runtime.partitioning import partition_by_hash
from service.runtime.shared_payloads import rows_by_exchange
from service.runtime.task_metrics import TaskMetrics
from service.runtime.topology import Topology

FORMAT = 7
"""The version of the manifest below, and of how a runner stores the manifest and its blocks."""

READABLE = (6, FORMAT)
"""The formats that can be read. In format 6 identities and fingerprints contained DuckDB text; everything else is
unchanged."""


def formats() -> str:
    """Return the formats that are read, in words."""
    return f"formats {' and '.join(map(str, READABLE))}"


class StateMismatch(Exception):
    """The state was written by another query, or by another version of an operator."""


class SealedShard(NamedTuple):
    """The state after a batch: the manifest to store, blocks to add and blocks to remove, and those to add that were
    written early."""

    manifest: bytes
    added: Mapping[str, pa.Buffer]
    removed: tuple[str, ...]
    written_early: tuple[str, ...]


class ShardPart(NamedTuple):
    """The slots of a shard, and the manifest that it has left."""

    slots: range
    manifest: bytes


class ClippedShard(NamedTuple):
    """A manifest, and for the key of each of its blocks the number of the part that had it, and the key there."""

    manifest: bytes
    blocks: Mapping[str, tuple[int, str]]


class UnitedShard(NamedTuple):
    """A manifest, and for each of its operators, by identity, the number of the part that had it."""

    manifest: bytes
    owners: Mapping[str, int]


class _ReadLast(NamedTuple):
    """Inputs of an operator that no later one reads: producers of its own level, and addresses of exchanges."""

    producers: Sequence[int]
    addresses: Sequence[int]


Ask = Callable[[Operator, pa.Table, int], pa.Table]
"""Looks up the rows of keys for a lookup join, in a batch of that time (ms): see `LookupJoinOperator.asked`."""


class ShardOperators:
    """The operators of `level` for the keys of shard `number`, from one batch to the next."""

    def __init__(
        self,
        topology: Topology,
        level: int,
        number: int,
        layout: Layout,
        sql: Sql,
        manifest: bytes | None,
        fetch: Fetch,
    ) -> None:
        """`fetch` gives the bytes of a block by its key, which names the operator."""
        self._topology = topology
        self._level = level
        self._number = number
        self._layout = layout
        self._sql = sql
        self._fetch = fetch
        self._write: Callable[[str, pa.Buffer], None] | None = None
        self._ask: Ask | None = None
        self._operators = topology.operators_at(level)
        self._read_last = self._inputs_read_last()
        saved = _read(manifest) if manifest else None
        if saved is not None:
            _check(self._operators, saved)
        self._states: dict[int, State] = {}
        for operator in self._operators:
            written = saved["states"].get(operator.identity) if saved else None
            self._states[operator.id] = State.open(
                operator.kernel.traces(),
                base64.b64decode(written["manifest"]) if written else None,
                partial(self._block, operator.identity),
                operator.order,
                partial(self._written_early, operator.identity),
            )

    def keep_with(self, fetch: Fetch, write: Callable[[str, pa.Buffer], None] | None) -> None:
        """Read blocks with `fetch` from now on, and write a large one at once with `write`, if given: operators
        that are kept outlive the task that opened them."""
        self._fetch, self._write = fetch, write

    def ask_with(self, ask: Ask) -> None:
        """Look rows up with `ask` from now on, for the same reason."""
        self._ask = ask

    def _block(self, operator: str, block: str) -> pa.Buffer | MappedBytes:
        return self._fetch(_key(operator, block))

    def _written_early(self, operator: str, block: str, data: pa.Buffer) -> bool:
        if self._write is None:
            return False
        self._write(_key(operator, block), data)
        return True

    def advance(self, here: Sequence[Envelope], moment: Moment, metrics: TaskMetrics) -> Iterator[Envelope]:
        """Run one batch: yield the envelopes for later levels and the sinks that the rows of `here`, in order, lead
        to."""
        exchanged_rows = rows_by_exchange(here)
        produced: dict[int, list[pa.Table]] = {}
        sequence = count(1)
        for at, operator in enumerate(self._operators):
            if self._fed_piecewise(operator):
                continue  # it got its rows together with the operator before it
            inputs = self._inputs(operator, produced, exchanged_rows)
            if isinstance(operator.kernel, LookupJoinOperator):
                inputs.append(self._looked_up(operator, operator.kernel, inputs[0], moment, metrics))
            read_last = self._read_last[at]
            for producer in read_last.producers:
                del produced[producer]
            for address in read_last.addresses:
                exchanged_rows.pop(address, None)
            steps = self._steps(operator, inputs, moment)
            del inputs
            yield from self._run(operator, steps, moment, metrics, produced, sequence)
        for operator in self._operators:
            measure_state(metrics, operator, self._states[operator.id])

    def _inputs_read_last(self) -> list[_ReadLast]:
        """For each operator, the inputs whose rows a batch need not hold any longer when it runs."""
        by_producer: dict[int, int] = {}
        by_address: dict[int, int] = {}
        for at, operator in enumerate(self._operators):
            if self._fed_piecewise(operator):
                continue
            for edge in operator.inputs:
                if edge.key is None:
                    by_producer[edge.producer] = at
                else:
                    by_address[self._topology.address_of(edge.producer, operator.level, edge.key)] = at
        return [
            _ReadLast(
                [producer for producer, last in by_producer.items() if last == at],
                [address for address, last in by_address.items() if last == at],
            )
            for at in range(len(self._operators))
        ]

    def _steps(self, operator: Operator, inputs: Sequence[pa.Table], moment: Moment) -> Iterator[Step]:
        return operator.kernel.steps(self._states[operator.id], inputs, moment.clocks[operator.id], self._sql)

    def _run(
        self,
        operator: Operator,
        steps: Iterator[Step],
        moment: Moment,
        metrics: TaskMetrics,
        produced: dict[int, list[pa.Table]],
        sequence: Iterator[int],
    ) -> Iterator[Envelope]:
        """Take the `steps` of an operator. Run the operators of this level that take rows piece by piece over each of
        them; collect in `produced` what the other operators wait for."""
        readers = [o for o in self._operators if any(e.key is None and e.producer == operator.id for e in o.inputs)]
        piecewise = [reader for reader in readers if self._fed_piecewise(reader)]
        waiting = [reader for reader in readers if not self._fed_piecewise(reader)]
        produced.setdefault(operator.id, [])
        while True:
            with metrics.timed("operators"):
                step = next(steps, None)
            if step is None:
                return
            count_step(metrics, operator, step)
            yield from self._leaving(operator, step, moment, metrics, sequence)
            for reader in piecewise:
                answers = self._steps(reader, [step.changes], moment)
                yield from self._run(reader, answers, moment, metrics, produced, sequence)
            if waiting:
                with metrics.timed("operators"):
                    rows = waiting[0].kernel.needed(step.changes, self._sql) if len(waiting) == 1 else step.changes
                produced[operator.id].append(rows)

    def _looked_up(
        self, operator: Operator, kernel: LookupJoinOperator, rows: pa.Table, moment: Moment, metrics: TaskMetrics
    ) -> pa.Table:
        """The result of looking up `rows`; nothing is requested if they have no key."""
        keys = kernel.asked(rows, self._sql)
        if not keys.num_rows:
            return kernel.found.empty_table()
        if self._ask is None:
            raise RuntimeError(f"there is no client that looks up rows of {operator.name}")
        with metrics.timed("lookup"):
            return self._ask(operator, keys, moment.now)

    def _fed_piecewise(self, operator: Operator) -> bool:
        return operator.kernel.piecewise and operator.inputs[0].key is None

    def _leaving(
        self, operator: Operator, step: Step, moment: Moment, metrics: TaskMetrics, sequence: Iterator[int]
    ) -> Iterator[Envelope]:
        """The envelopes of a step for later levels and for the sinks."""
        reading = moment.readings[operator.id]

        def leave(
            shard: int, level: int, kind: Kind, address: int, rows: pa.Table, port: int = 0
        ) -> Iterator[Envelope]:
            channel = f"l{self._level:03d}/s{self._number:05d}"
            for payload in packed([rows] if rows.num_rows else []):
                if kind == Kind.ROWS:
                    metrics.count("exchanged_bytes_total", len(payload), level=level)
                yield Envelope(
                    *(shard, level, kind, address, channel, next(sequence)),
                    *(moment.now, reading.time, reading.idle, payload),
                    port=port,
                )

        for port, late in step.late.items():
            yield from leave(self._number, EGRESS, Kind.LATE, operator.id, late, port)
        for port, dead in step.dead.items():
            yield from leave(self._number, EGRESS, Kind.DEAD_ROWS, operator.id, dead, port)
        for address, exchange in self._topology.exchanges_from(operator.id):
            for shard, part in partition_by_hash(step.changes, exchange.key, self._layout):
                yield from leave(shard, exchange.level, Kind.ROWS, address, part)
        for output in self._topology.outputs_of(operator.id):
            if output.discards:
                count_changes(metrics, "output_changes_total", step.changes, sink=output.table.name)
                continue
            yield from leave(self._number, EGRESS, Kind.OUTPUT, output.id, step.changes)

    def seal(self) -> SealedShard:
        """End the batch: return the state to store for the next one."""
        added: dict[str, pa.Buffer] = {}
        removed: list[str] = []
        early: list[str] = []
        states: dict[str, dict[str, str]] = {}
        for operator in self._operators:
            saved = self._states[operator.id].seal()
            states[operator.identity] = _saved_state(operator, saved.manifest)
            added.update({_key(operator.identity, block): data for block, data in saved.added.items()})
            removed.extend(_key(operator.identity, block) for block in saved.removed)
            early.extend(_key(operator.identity, block) for block in saved.written_early)
        return SealedShard(_written(states), added, tuple(removed), tuple(early))

    def _inputs(
        self, operator: Operator, produced: Mapping[int, list[pa.Table]], exchanged_rows: Mapping[int, list[pa.Table]]
    ) -> list[pa.Table]:
        tables: list[pa.Table] = []
        for edge, schema in zip(operator.inputs, operator.kernel.inputs, strict=True):
            if edge.key is None:
                tables.append(_whole(produced[edge.producer]))
                continue
            parts = exchanged_rows.get(self._topology.address_of(edge.producer, operator.level, edge.key), [])
            tables.append(_whole(parts) if parts else no_changes(schema))
        return tables


COPIED = 1 << 20
"""Bytes of rows that are copied into one chunk: each statement reads every chunk by itself, and those of 64 partitions
made one over ten rows each twice as long. Of more bytes the chunks are large, or the copy is."""


def _whole(tables: list[pa.Table]) -> pa.Table:
    if len(tables) == 1:
        return tables[0]
    whole = pa.concat_tables(tables)
    return whole.combine_chunks() if whole.get_total_buffer_size() <= COPIED else whole


def clipped_shard(topology: Topology, level: int, parts: Sequence[ShardPart], slots: range) -> ClippedShard:
    """Return the manifest of a shard with `slots`, from the shards that had them, in their order; no block is read.

    Raises StateMismatch.
    """
    operators = topology.operators_at(level)
    saved = [_read(part.manifest) for part in parts]
    for each in saved:
        _check(operators, each)
    states: dict[str, dict[str, str]] = {}
    blocks: dict[str, tuple[int, str]] = {}
    for operator in operators:
        had = [StatePart(part.slots, _kept(each, operator)) for part, each in zip(parts, saved, strict=True)]
        state = clipped(operator.kernel.traces(), operator.order, had, slots)
        states[operator.identity] = _saved_state(operator, state.manifest)
        blocks |= {
            _key(operator.identity, new): (part, _key(operator.identity, old))
            for new, (part, old) in state.blocks.items()
        }
    return ClippedShard(_written(states), blocks)


def united_shard(parts: Sequence[bytes]) -> UnitedShard:
    """Return the manifest of a shard with the operators of several shards that have the same slots. If several have an
    operator, the first counts. No block is read.

    Raises StateMismatch.
    """
    states: dict[str, dict[str, str]] = {}
    owners: dict[str, int] = {}
    for part, manifest in enumerate(parts):
        saved = _read(manifest)
        for operator, state in saved["states"].items():
            if operator not in states:
                states[operator], owners[operator] = state, part
    return UnitedShard(_written(states), owners)


def operator_of(block: str) -> str:
    """Return the identity of the operator that a block of a shard belongs to."""
    return block.partition(":")[0]


def blocks_in_use(topology: Topology, level: int, blocks: Iterable[str]) -> set[str]:
    """Return those of a shard's blocks that belong to an operator of its level: an earlier query may have had
    others."""
    known = {operator.identity for operator in topology.operators_at(level)}
    return {block for block in blocks if operator_of(block) in known}


def _read(manifest: bytes) -> Any:
    """The content of a manifest. Fingerprints of format 6 are dropped: they are part of the identity under which state
    is stored, which the driver has compared."""
    saved = json.loads(manifest)
    if saved["format"] not in READABLE:
        raise StateMismatch(f"the state has format {saved['format']}, this version reads {formats()}")
    if saved["format"] != FORMAT:
        saved["states"] = {operator: {"manifest": state["manifest"]} for operator, state in saved["states"].items()}
    return saved


def _check(operators: Iterable[Operator], saved: Mapping[str, Any]) -> None:
    """Check that every operator with state is in the manifest: a missing one would start without rows."""
    for operator in operators:
        if not operator.kernel.traces():
            continue
        written = saved["states"].get(operator.identity)
        if written is None:
            raise StateMismatch(
                f"the checkpoint holds the state of another query: it has none of {operator.name}"
                f" ({operator.identity})\n  hint:   run the query that wrote it, or start with a new checkpoint"
            )
        if written.get("fingerprint", _fingerprint(operator)) != _fingerprint(operator):
            raise StateMismatch(
                f"the state of {operator.name} was written by another version of this operator: run the version"
                " that wrote it, or start with a new checkpoint"
            )


def _kept(saved: Mapping[str, Any], operator: Operator) -> bytes | None:
    """The manifest of the state of an operator; an operator without state may be new."""
    written = saved["states"].get(operator.identity)
    return None if written is None else base64.b64decode(written["manifest"])


def _fingerprint(operator: Operator) -> str:
    """The fingerprint of an operator and the columns that choose the slots: sort keys begin with these."""
    by = "" if operator.order is None else "/" + ",".join(map(str, operator.order))
    return operator.kernel.fingerprint() + by


def _saved_state(operator: Operator, manifest: bytes) -> dict[str, str]:
    return {"fingerprint": _fingerprint(operator), "manifest": base64.b64encode(manifest).decode()}


def _written(states: Mapping[str, Mapping[str, str]]) -> bytes:
    return json.dumps({"format": FORMAT, "states": states}, sort_keys=True).encode()


def _key(operator: str, block: str) -> str:
    """The key of a block in its shard; `operator` is an identity, which has no colon."""
    return f"{operator}:{block}"
