"""A shard of a level: the buckets that one task serves, which share the clock and what they hear of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from operators.time import MIN_TIME
from service.runtime.bucket import Bucket, SealedBucket
from service.runtime.envelope import EGRESS, Envelope, Kind
from service.runtime.layout import Layout
from service.runtime.level_clock import LevelClock, Moment
from service.runtime.task_metrics import TaskMetrics
from service.runtime.topology import Topology
from service.runtime.watermarks import Watermark


class Keeper(Protocol):
    """Where a runner keeps the buckets of a shard between batches."""

    def take(self, number: int) -> Bucket:
        """The bucket as the batch before left it."""

    def keep(self, number: int, bucket: Bucket, saved: SealedBucket) -> None:
        """The bucket has done its batch."""


class Shard:
    """The buckets of shard `number` of `level`, for one batch. `clocks` is what `save` told after the batch before."""

    def __init__(
        self, topology: Topology, level: int, number: int, layout: Layout, clocks: Mapping[str, Any] | None
    ) -> None:
        self._topology = topology
        self._level = level
        self._number = number
        self._layout = layout
        self._clock = LevelClock(topology, level, layout.shards, clocks)

    def save(self) -> dict[str, Any]:
        """The clocks after the batch, the same in every shard of the level."""
        return self._clock.save()

    def advance(self, envelopes: Sequence[Envelope], keeper: Keeper) -> Iterator[Envelope]:
        """Run one batch: the envelopes of all channels, in any order, to those for later levels and the sinks."""
        here = sorted((e for e in envelopes if e.level == self._level), key=lambda e: (e.channel, e.sequence))
        if not here:
            return
        metrics = TaskMetrics()
        moment = self._clock.hear(here)
        by_bucket: dict[int, list[Envelope]] = {}
        for envelope in here:
            by_bucket.setdefault(envelope.bucket, []).append(envelope)
        for number in self._layout.buckets_of(self._number):
            bucket = keeper.take(number)
            yield from bucket.advance(by_bucket.pop(number, ()), moment, metrics)
            keeper.keep(number, bucket, bucket.seal())
        if self._number == 0:
            self._clock.measure(metrics, moment)
        yield from self._tell(moment, metrics)

    def _tell(self, moment: Moment, metrics: TaskMetrics) -> Iterator[Envelope]:
        """What the shard says as a whole: the time, to each shard of the levels that it feeds, and to the sink."""
        head = self._layout.first_of(self._number)
        channel = f"l{self._level:03d}/s{self._number:05d}"
        nothing = Watermark(MIN_TIME, True)
        told: list[tuple[int, int, Kind, int, Watermark, bytes]] = [
            (bucket, level, Kind.CLOCK, operator.id, moment.readings[operator.id], moment.source_ranges)
            for operator in self._topology.operators_at(self._level)
            for level in self._topology.levels_fed_by(operator.id)
            for bucket in self._layout.heads()
        ]
        told.append((head, EGRESS, Kind.OFFSETS, self._level, nothing, moment.source_ranges))
        told.append((head, EGRESS, Kind.METRICS, self._level, nothing, metrics.to_json()))
        for sequence, (bucket, level, kind, address, reading, payload) in enumerate(told):
            yield Envelope(
                *(bucket, level, kind, address, channel, sequence),
                *(moment.now, reading.time, reading.idle, payload),
            )
