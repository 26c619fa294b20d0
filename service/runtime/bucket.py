"""A bucket of a level: the stateful operators that live there, their clock and their state."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from operators.sql import Sql
from operators.state.operator_state import State
from operators.time import MIN_TIME, Clock
from service.plan.program import Operator
from service.runtime.counting import count_changes, count_step, measure_partitions, measure_state, measure_time
from service.runtime.envelope import EGRESS, Envelope, Kind, pack, unpack
from service.runtime.exchange import partition_by_hash
from service.runtime.ingest import empty
from service.runtime.source_digest import union
from service.runtime.task_metrics import TaskMetrics
from service.runtime.topology import Topology
from service.runtime.watermarks import SourceClock, Tick, Watermark, WatermarkTracker, combine

FORMAT = 3
"""The version of the manifest below, and of how a runner keeps it and the blocks that it lists."""


class StateMismatch(Exception):
    """The state was written by another query, or by another version of an operator."""


class SealedBucket(NamedTuple):
    """What a batch leaves behind: the manifest to remember, blocks to add and blocks to remove."""

    manifest: bytes
    added: Mapping[str, pa.Buffer]
    removed: tuple[str, ...]


class Bucket:
    """The operators of `level` for the keys of one bucket, from one batch to the next."""

    def __init__(
        self,
        topology: Topology,
        level: int,
        number: int,
        buckets: int,
        sql: Sql,
        manifest: bytes | None,
        fetch: Callable[[str], pa.Buffer],
    ) -> None:
        self._topology = topology
        self._level = level
        self._number = number
        self._buckets = buckets
        self._sql = sql
        self._fetch = fetch
        self._operators = topology.operators_at(level)
        self._clocks = WatermarkTracker(
            {s.id: SourceClock(s.table.connector.idle_timeout) for s in topology.program.sources}
        )
        # Every bucket that hears a source knows the same of its partitions: one of them tells.
        self._timed_here = [
            s
            for s in topology.program.sources
            if number == 0 and s.watermark is not None and topology.levels_heard_by(s.id)[:1] == [level]
        ]
        saved = json.loads(manifest) if manifest else None
        self._fingerprints = {o.name: o.kernel.fingerprint() for o in self._operators}
        if saved is not None:
            self._check(saved)
            self._clocks.restore(saved["clocks"])
        self._states: dict[int, State] = {}
        for operator in self._operators:
            written = saved["states"].get(operator.name) if saved else None
            self._states[operator.id] = State.open(
                operator.kernel.traces(),
                base64.b64decode(written["manifest"]) if written else None,
                partial(self._block, f"{operator.id}:"),
            )

    def fetch_with(self, fetch: Callable[[str], pa.Buffer]) -> None:
        """From now on blocks come from `fetch`: a bucket that lives on outlives the task that opened it."""
        self._fetch = fetch

    def _block(self, prefix: str, block: str) -> pa.Buffer:
        return self._fetch(prefix + block)

    def _check(self, saved: Mapping[str, Any]) -> None:
        expected = self._topology.program.fingerprint
        if saved["format"] != FORMAT or saved["fingerprint"] != expected:
            raise StateMismatch(
                f"the checkpoint holds the state of another query (written by {saved['fingerprint']}, format"
                f" {saved['format']}; this query is {expected}, format {FORMAT})"
            )
        for operator in self._operators:
            written = saved["states"].get(operator.name)
            if written and operator.kernel.traces() and written["fingerprint"] != self._fingerprints[operator.name]:
                raise StateMismatch(
                    f"the state of {operator.name} was written by another version of this operator: run the version"
                    " that wrote it, or start from a fresh checkpoint"
                )

    def advance(self, envelopes: Iterable[Envelope]) -> list[Envelope]:
        """Run one batch: the envelopes of all channels, in any order, to those for later levels and the sinks."""
        here = sorted((e for e in envelopes if e.level == self._level), key=lambda e: (e.channel, e.sequence))
        if not here:
            return []
        metrics = TaskMetrics()
        # The driver's clock may be set back, or another machine take over: what was written would come from the future.
        now = max(self._clocks.last, *(e.now for e in here))
        self._clocks.begin_batch(now)
        operator_channels = self._observe(here)
        exchanged_rows = self._rows(here)
        source_ranges = union(e.payload for e in here if e.kind == Kind.CLOCK)
        produced: dict[int, pa.Table] = {}
        watermarks: dict[int, Watermark] = {}
        answer: list[Envelope] = []
        sequence = 0

        def send(
            bucket: int, level: int, kind: Kind, address: int, payload: bytes, watermark_in: Watermark, port: str = ""
        ) -> None:
            nonlocal sequence
            sequence += 1
            channel = f"l{self._level:03d}/b{self._number:05d}{port}"
            answer.append(
                Envelope(
                    bucket, level, kind, address, channel, sequence, now, watermark_in.time, watermark_in.idle, payload
                )
            )

        for operator in self._operators:
            watermark_in = combine(
                [self._watermark_of(e.producer, watermarks, operator_channels) for e in operator.inputs]
            )
            previous = self._clocks.previous.get(operator.id, MIN_TIME)
            watermark = max(previous, watermark_in.time)
            self._clocks.previous[operator.id] = watermark
            inputs = self._inputs(operator, produced, exchanged_rows)
            with metrics.timed("operators"):
                step = operator.kernel.advance(
                    self._states[operator.id], inputs, Clock(now, watermark, previous), self._sql
                )
            produced[operator.id] = step.changes
            out = Watermark(operator.kernel.output_watermark(watermark), watermark_in.idle)
            watermarks[operator.id] = out
            count_step(metrics, operator, step)
            measure_state(metrics, operator, self._states[operator.id])
            if not watermark_in.idle:
                measure_time(metrics, operator, watermark)
            for port, late in step.late.items():
                if late.num_rows:
                    send(self._number, EGRESS, Kind.LATE, operator.id, pack(late.combine_chunks()), out, f"/{port}")
            for port, dead in step.dead.items():
                if dead.num_rows:
                    send(self._number, EGRESS, Kind.DEAD, operator.id, pack(dead.combine_chunks()), out, f"/{port}")
            for address, exchange in self._topology.exchanges_from(operator.id):
                for bucket, part in partition_by_hash(step.changes, exchange.key, self._buckets):
                    send(bucket, exchange.level, Kind.ROWS, address, pack(part.combine_chunks()), out)
            for level in self._topology.levels_fed_by(operator.id):
                for bucket in range(self._buckets):
                    send(bucket, level, Kind.CLOCK, operator.id, source_ranges, out)
            for output in self._topology.outputs_of(operator.id):
                if output.discards:
                    count_changes(metrics, "output_changes_total", step.changes, sink=output.table.name)
                elif step.changes.num_rows:
                    send(self._number, EGRESS, Kind.OUTPUT, output.id, pack(step.changes.combine_chunks()), out)
        measure_partitions(metrics, self._clocks, self._timed_here)
        send(self._number, EGRESS, Kind.OFFSETS, self._level, source_ranges, Watermark(MIN_TIME, True))
        send(self._number, EGRESS, Kind.METRICS, self._level, metrics.to_json(), Watermark(MIN_TIME, True))
        return answer

    def seal(self) -> SealedBucket:
        """End the batch: what has to be remembered for the next."""
        added: dict[str, pa.Buffer] = {}
        removed: list[str] = []
        states: dict[str, dict[str, str]] = {}
        for operator in self._operators:
            saved = self._states[operator.id].seal()
            states[operator.name] = {
                "fingerprint": self._fingerprints[operator.name],
                "manifest": base64.b64encode(saved.manifest).decode(),
            }
            added.update({f"{operator.id}:{block}": data for block, data in saved.added.items()})
            removed.extend(f"{operator.id}:{block}" for block in saved.removed)
        manifest = {
            "format": FORMAT,
            "fingerprint": self._topology.program.fingerprint,
            "clocks": self._clocks.save(),
            "states": states,
        }
        return SealedBucket(json.dumps(manifest, sort_keys=True).encode(), added, tuple(removed))

    def _observe(self, envelopes: Sequence[Envelope]) -> dict[int, list[Watermark]]:
        """Take in what the envelopes say of time; the readings of operators of earlier levels, by operator."""
        operators: dict[int, list[Watermark]] = {}
        clocks = self._clocks
        for e in envelopes:
            if e.kind == Kind.TICK:
                tick = Tick.from_json(e.payload)
                for source, clock in clocks.sources.items():
                    clock.learn(tick.channels.get(source, ()), source in tick.ended, clocks.running)
            elif e.kind == Kind.CLOCK and e.address in clocks.sources:
                clocks.sources[e.address].observe(e.channel, e.watermark, clocks.running)
            elif e.kind == Kind.CLOCK:
                operators.setdefault(e.address, []).append(Watermark(e.watermark, e.idle))
        return operators

    def _watermark_of(
        self, producer: int, watermarks: Mapping[int, Watermark], operator_channels: Mapping[int, list[Watermark]]
    ) -> Watermark:
        if producer in watermarks:
            return watermarks[producer]
        if self._topology.level_of[producer] == 0:
            sources = sorted(self._topology.sources_of(producer))
            return combine([self._clocks.sources[s].read(self._clocks.running) for s in sources])
        heard = operator_channels.get(producer, [])
        return combine(heard) if len(heard) == self._buckets else Watermark(MIN_TIME, False)

    def _rows(self, envelopes: Sequence[Envelope]) -> dict[int, list[pa.Table]]:
        rows: dict[int, list[pa.Table]] = {}
        for e in envelopes:
            if e.kind == Kind.ROWS:
                rows.setdefault(e.address, []).append(unpack(e.payload))
        return rows

    def _inputs(
        self, operator: Operator, produced: Mapping[int, pa.Table], exchanged_rows: Mapping[int, list[pa.Table]]
    ) -> list[pa.Table]:
        tables: list[pa.Table] = []
        for edge, schema in zip(operator.inputs, operator.kernel.inputs, strict=True):
            if edge.key is None:
                tables.append(produced[edge.producer])
                continue
            parts = exchanged_rows.get(self._topology.address_of(edge.producer, operator.level, edge.key), [])
            tables.append(pa.concat_tables(parts) if parts else empty(schema))
        return tables
