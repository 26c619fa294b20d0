"""The clock of a level: the watermarks that its shards receive, the same in all of them, and those that it sends.

A watermark crosses an exchange in an envelope of Kind.CLOCK to every shard of the level, with or without rows. Each
task of `Ingest` sends one for the Kafka partitions that it has read, and the first shard of an earlier level one for
each of its operators (`Shard._send_clock`). The ticks of the driver (Kind.TICK) list the partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from operators.time import MIN_TIME, Clock
from service.plan.program import Operator
from service.runtime.counting import measure_partitions, measure_time
from service.runtime.envelope import Envelope, Kind
from service.runtime.partition_clocks import from_bytes
from service.runtime.source_digest import brief
from service.runtime.task_metrics import TaskMetrics
from service.runtime.topology import Topology
from service.runtime.watermarks import SourceClock, Tick, Watermark, WatermarkTracker, channel_name, combine


class Moment(NamedTuple):
    """Time in one batch of a level: by operator, the clock that it runs with and the watermark of its output.
    `source_ranges` is a digest of the source rows that the batch was made from."""

    now: int
    clocks: Mapping[int, Clock]
    readings: Mapping[int, Watermark]
    source_ranges: bytes


class LevelClock:
    """The watermarks of a level. Every shard of the level receives the same, so each keeps the same clocks: the clocks
    of any shard can be restored in all of them, and only the first shard sends them to later levels."""

    def __init__(self, topology: Topology, level: int, saved: Mapping[str, Any] | None) -> None:
        self._topology = topology
        self._level = level
        self._operators = topology.operators_at(level)
        self._clocks = WatermarkTracker(
            {s.id: SourceClock(s.table.connector.idle_timeout) for s in topology.program.sources}
        )
        if saved is not None:
            self._clocks.restore(saved)

    def save(self) -> dict[str, Any]:
        """Return the state for the next batch, as JSON values."""
        return self._clocks.save()

    def receive(self, here: Sequence[Envelope]) -> Moment:
        """Begin a batch with all envelopes of a shard; there is at least one."""
        # The driver's clock may be set back, or another machine may take over: rows already written would then lie in
        # the future.
        now = max(self._clocks.last, *(e.now for e in here))
        self._clocks.begin_batch(now)
        received, source_ranges = self._take_in(here)
        clocks: dict[int, Clock] = {}
        readings: dict[int, Watermark] = {}
        watermarks: dict[str, int] = {}
        for operator in self._operators:
            reading = combine([self._reading(e.producer, readings, received) for e in operator.inputs])
            previous = self._previous(operator)
            watermark = max(previous, reading.time)
            watermarks[operator.identity] = watermark
            clocks[operator.id] = Clock(now, watermark, previous)
            readings[operator.id] = Watermark(operator.kernel.output_watermark(watermark), reading.idle)
        self._clocks.previous = watermarks  # operators that the query no longer has are dropped
        return Moment(now, clocks, readings, brief(source_ranges))

    def measure(self, metrics: TaskMetrics, moment: Moment) -> None:
        """Measure the watermark of each operator that is not idle, and of the Kafka partitions that this level is the
        first to read."""
        for operator in self._operators:
            if not moment.readings[operator.id].idle:
                measure_time(metrics, operator, moment.clocks[operator.id].watermark)
        sources = [
            source
            for source in self._topology.program.sources
            if source.watermark is not None and self._topology.levels_receiving(source.id)[:1] == [self._level]
        ]
        measure_partitions(metrics, self._clocks, sources)

    def _take_in(self, envelopes: Iterable[Envelope]) -> tuple[dict[int, Watermark], list[bytes]]:
        """Read the envelopes about sources. Return the watermarks of operators of earlier levels, and the digests of
        the source rows behind them."""
        operators: dict[int, Watermark] = {}
        source_ranges: list[bytes] = []
        clocks = self._clocks
        for e in envelopes:
            if e.kind == Kind.TICK:
                tick = Tick.from_bytes(e.payload)
                for source, clock in clocks.sources.items():
                    names, waits = tick.channels.get(source, ()), source in tick.waiting
                    clock.learn(names, source in tick.ended, clocks.running, waiting=waits)
            elif e.kind == Kind.CLOCK and e.address in clocks.sources:
                for reading in from_bytes(e.payload, e.watermark):
                    name = channel_name(e.address, reading.topic, reading.partition)
                    clocks.sources[e.address].observe(name, reading.watermark, clocks.running)
                    source_ranges.append(reading.source_range)
            elif e.kind == Kind.CLOCK:
                operators[e.address] = Watermark(e.watermark, e.idle)
                source_ranges.append(e.payload)
        return operators, source_ranges

    def _previous(self, operator: Operator) -> int:
        """The watermark of an operator in the previous batch. One without state may be new beside an operator that is
        not: where late rows are shown from now on, windows get their rows whole, and those that are late for the window
        aggregate are late for the step before it."""
        known = self._clocks.previous
        if operator.identity in known or operator.kernel.traces():
            return known.get(operator.identity, MIN_TIME)
        readers = (o for o in self._operators if any(e.producer == operator.id for e in o.inputs))
        return min((known.get(reader.identity, MIN_TIME) for reader in readers), default=MIN_TIME)

    def _reading(
        self, producer: int, readings: Mapping[int, Watermark], received: Mapping[int, Watermark]
    ) -> Watermark:
        if producer in readings:
            return readings[producer]
        if self._topology.level_of[producer] == 0:
            sources = sorted(self._topology.sources_of(producer))
            return combine([self._clocks.sources[s].read(self._clocks.running) for s in sources])
        return received.get(producer, Watermark(MIN_TIME, False))
