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
from service.runtime.counting import count_step, measure_partitions, measure_state, measure_time
from service.runtime.envelope import EGRESS, Envelope, Kind, pack, unpack
from service.runtime.exchange import scatter
from service.runtime.ingest import empty
from service.runtime.source_digest import union
from service.runtime.task_metrics import Figures
from service.runtime.topology import Wiring
from service.runtime.watermarks import Clocks, Reading, SourceClock, Tick, combine

FORMAT = 3
"""The version of the manifest below, and of how a runner keeps it and the blocks that it lists."""


class StateMismatch(Exception):
    """The state was written by another query, or by another version of an operator."""


class Saved(NamedTuple):
    """What a batch leaves behind: the manifest to remember, blocks to add and blocks to remove."""

    manifest: bytes
    added: Mapping[str, pa.Buffer]
    removed: tuple[str, ...]


class Bucket:
    """The operators of `level` for the keys of one bucket, from one batch to the next."""

    def __init__(
        self,
        wiring: Wiring,
        level: int,
        number: int,
        buckets: int,
        sql: Sql,
        manifest: bytes | None,
        fetch: Callable[[str], pa.Buffer],
    ) -> None:
        self._wiring = wiring
        self._level = level
        self._number = number
        self._buckets = buckets
        self._sql = sql
        self._fetch = fetch
        self._operators = wiring.operators_at(level)
        self._clocks = Clocks({s.id: SourceClock(s.table.connector.idle_timeout) for s in wiring.program.sources})
        # Every bucket that hears a source knows the same of its partitions: one of them tells.
        self._timed_here = [
            s
            for s in wiring.program.sources
            if number == 0 and s.watermark is not None and wiring.levels_heard_by(s.id)[:1] == [level]
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
        expected = self._wiring.program.fingerprint
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
        figures = Figures()
        # The driver's clock may be set back, or another machine take over: what was written would come from the future.
        now = max(self._clocks.last, *(e.now for e in here))
        self._clocks.beat(now)
        operator_channels = self._hear(here)
        crossing_rows = self._rows(here)
        came_from = union(e.payload for e in here if e.kind == Kind.CLOCK)
        produced: dict[int, pa.Table] = {}
        readings: dict[int, Reading] = {}
        answer: list[Envelope] = []
        sequence = 0

        def send(
            bucket: int, level: int, kind: Kind, address: int, payload: bytes, reading: Reading, port: str = ""
        ) -> None:
            nonlocal sequence
            sequence += 1
            channel = f"l{self._level:03d}/b{self._number:05d}{port}"
            answer.append(
                Envelope(bucket, level, kind, address, channel, sequence, now, reading.watermark, reading.idle, payload)
            )

        for operator in self._operators:
            reading = combine([self._reading(e.producer, readings, operator_channels) for e in operator.inputs])
            previous = self._clocks.previous.get(operator.id, MIN_TIME)
            watermark = max(previous, reading.watermark)
            self._clocks.previous[operator.id] = watermark
            inputs = self._inputs(operator, produced, crossing_rows)
            with figures.timed("operators"):
                step = operator.kernel.advance(
                    self._states[operator.id], inputs, Clock(now, watermark, previous), self._sql
                )
            produced[operator.id] = step.changes
            out = Reading(operator.kernel.output_watermark(watermark), reading.idle)
            readings[operator.id] = out
            count_step(figures, operator, step)
            measure_state(figures, operator, self._states[operator.id])
            if not reading.idle:
                measure_time(figures, operator, watermark)
            for port, late in step.late.items():
                if late.num_rows:
                    send(self._number, EGRESS, Kind.LATE, operator.id, pack(late.combine_chunks()), out, f"/{port}")
            for port, dead in step.dead.items():
                if dead.num_rows:
                    send(self._number, EGRESS, Kind.DEAD, operator.id, pack(dead.combine_chunks()), out, f"/{port}")
            for address, crossing in self._wiring.leaving(operator.id):
                for bucket, part in scatter(step.changes, crossing.key, self._buckets):
                    send(bucket, crossing.level, Kind.ROWS, address, pack(part.combine_chunks()), out)
            for level in self._wiring.levels_fed_by(operator.id):
                for bucket in range(self._buckets):
                    send(bucket, level, Kind.CLOCK, operator.id, came_from, out)
            for output in self._wiring.outputs_of(operator.id):
                if step.changes.num_rows:
                    send(self._number, EGRESS, Kind.OUTPUT, output.id, pack(step.changes.combine_chunks()), out)
        measure_partitions(figures, self._clocks, self._timed_here)
        send(self._number, EGRESS, Kind.OFFSETS, self._level, came_from, Reading(MIN_TIME, True))
        send(self._number, EGRESS, Kind.FIGURES, self._level, figures.to_json(), Reading(MIN_TIME, True))
        return answer

    def seal(self) -> Saved:
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
            "fingerprint": self._wiring.program.fingerprint,
            "clocks": self._clocks.save(),
            "states": states,
        }
        return Saved(json.dumps(manifest, sort_keys=True).encode(), added, tuple(removed))

    def _hear(self, envelopes: Sequence[Envelope]) -> dict[int, list[Reading]]:
        """Take in what the envelopes say of time; the readings of operators of earlier levels, by operator."""
        operators: dict[int, list[Reading]] = {}
        clocks = self._clocks
        for e in envelopes:
            if e.kind == Kind.TICK:
                tick = Tick.from_json(e.payload)
                for source, clock in clocks.sources.items():
                    clock.learn(tick.channels.get(source, ()), source in tick.ended, clocks.running)
            elif e.kind == Kind.CLOCK and e.address in clocks.sources:
                clocks.sources[e.address].hear(e.channel, e.watermark, clocks.running)
            elif e.kind == Kind.CLOCK:
                operators.setdefault(e.address, []).append(Reading(e.watermark, e.idle))
        return operators

    def _reading(
        self, producer: int, readings: Mapping[int, Reading], operator_channels: Mapping[int, list[Reading]]
    ) -> Reading:
        if producer in readings:
            return readings[producer]
        if self._wiring.level_of[producer] == 0:
            sources = sorted(self._wiring.sources_of(producer))
            return combine([self._clocks.sources[s].read(self._clocks.running) for s in sources])
        heard = operator_channels.get(producer, [])
        return combine(heard) if len(heard) == self._buckets else Reading(MIN_TIME, False)

    def _rows(self, envelopes: Sequence[Envelope]) -> dict[int, list[pa.Table]]:
        rows: dict[int, list[pa.Table]] = {}
        for e in envelopes:
            if e.kind == Kind.ROWS:
                rows.setdefault(e.address, []).append(unpack(e.payload))
        return rows

    def _inputs(
        self, operator: Operator, produced: Mapping[int, pa.Table], crossing_rows: Mapping[int, list[pa.Table]]
    ) -> list[pa.Table]:
        tables: list[pa.Table] = []
        for edge, schema in zip(operator.inputs, operator.kernel.inputs, strict=True):
            if edge.key is None:
                tables.append(produced[edge.producer])
                continue
            parts = crossing_rows.get(self._wiring.address_of(edge.producer, operator.level, edge.key), [])
            tables.append(pa.concat_tables(parts) if parts else empty(schema))
        return tables
