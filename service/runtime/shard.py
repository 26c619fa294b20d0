"""A shard of a level, which one task serves: it receives clocks and rows, runs its operators and sends the results
on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from operators.time import MIN_TIME
from service.runtime.envelope import EGRESS, Envelope, Kind
from service.runtime.layout import Layout
from service.runtime.level_clock import LevelClock, Moment
from service.runtime.shard_operators import ShardOperators
from service.runtime.task_metrics import TaskMetrics
from service.runtime.topology import Topology
from service.runtime.watermarks import Watermark


class Shard:
    """Shard `number` of `level`, for one batch. `clocks` is what `save` returned after the batch before."""

    def __init__(
        self, topology: Topology, level: int, number: int, layout: Layout, clocks: Mapping[str, Any] | None
    ) -> None:
        self._topology = topology
        self._level = level
        self._number = number
        self._layout = layout
        self._clock = LevelClock(topology, level, clocks)

    def save(self) -> dict[str, Any]:
        """Return the clocks after the batch, the same in every shard of the level."""
        return self._clock.save()

    def advance(self, envelopes: Sequence[Envelope], take: Callable[[], ShardOperators]) -> Iterator[Envelope]:
        """Run one batch: read the envelopes of all channels, in any order, and yield those for later levels and the
        sinks.

        `take` returns the operators as the previous batch left them; it is not called if there are no envelopes.
        """
        here = sorted((e for e in envelopes if e.level == self._level), key=lambda e: (e.channel, e.sequence))
        if not here:
            return
        metrics = TaskMetrics()
        moment = self._clock.receive(here)
        yield from take().advance(here, moment, metrics)
        if self._number == 0:
            self._clock.measure(metrics, moment)
        yield from self._send_clock(moment, metrics)

    def _send_clock(self, moment: Moment, metrics: TaskMetrics) -> Iterator[Envelope]:
        """The envelopes of the shard as a whole: metrics and source ranges to the sink and, from the first shard of a
        level, the clock to each shard of the levels that it feeds. The other shards would send the same clock."""
        channel = f"l{self._level:03d}/s{self._number:05d}/clock"
        nothing = Watermark(MIN_TIME, True)
        messages: list[tuple[int, int, Kind, int, Watermark, bytes]] = [
            (shard, level, Kind.CLOCK, operator.id, moment.readings[operator.id], moment.source_ranges)
            for operator in (self._topology.operators_at(self._level) if self._number == 0 else ())
            for level in self._topology.levels_fed_by(operator.id)
            for shard in range(self._layout.shards)
        ]
        messages.append((self._number, EGRESS, Kind.OFFSETS, self._level, nothing, moment.source_ranges))
        messages.append((self._number, EGRESS, Kind.METRICS, self._level, nothing, metrics.to_json()))
        for sequence, (shard, level, kind, address, reading, payload) in enumerate(messages):
            yield Envelope(
                *(shard, level, kind, address, channel, sequence),
                *(moment.now, reading.time, reading.idle, payload),
            )
