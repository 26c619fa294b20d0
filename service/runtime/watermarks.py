"""Event time as a level knows it: one watermark a channel, the minimum over those that are not idle.

A source's channels are its Kafka partitions. A partition with unread rows has rows in every batch (Spark gives each
such partition at least one), so silence over running time is idleness; running time stands still while the job does,
so that a restart after a pause makes nothing idle. Rules: docs/design/semantics.md, "Time".

How a watermark comes from one level to the next is in `level_clock.py`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from operators.time import END_OF_TIME, MIN_TIME

LONGEST_GAP = 10_000
"""The most milliseconds that two consecutive batches add to running time; a longer gap is a pause of the job."""


class Watermark(NamedTuple):
    """The event time that a channel has reached (`time`, in milliseconds), and whether the channel is idle and does not
    count."""

    time: int
    idle: bool


class Tick(NamedTuple):
    """The message of the driver to every shard: the channels of each source, the sources that have ended, and those
    that are not read yet because they wait for a table, whose silence is no idleness."""

    channels: Mapping[int, tuple[str, ...]]
    ended: tuple[int, ...]
    waiting: tuple[int, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the tick as the payload of an envelope, packed: the names of channels are much alike, and each shard
        receives them all."""
        payload = {
            "channels": {str(k): list(v) for k, v in self.channels.items()},
            "ended": self.ended,
            "waiting": self.waiting,
        }
        return zlib.compress(json.dumps(payload).encode())

    @staticmethod
    def from_bytes(payload: bytes) -> Tick:
        """Return the tick that `to_bytes` wrote."""
        value = json.loads(zlib.decompress(payload))
        channels = {int(k): tuple(v) for k, v in value["channels"].items()}
        return Tick(channels, tuple(value["ended"]), tuple(value["waiting"]))


class SourceChannel(NamedTuple):
    """The channel of a Kafka partition that a source reads."""

    source: int
    topic: str
    partition: int

    @property
    def name(self) -> str:
        """The channel as state and envelopes hold it; names sort as channels do.

        >>> SourceChannel(2, "orders", 7).name
        's0002/orders/00007'
        """
        return f"s{self.source:04d}/{self.topic}/{self.partition:05d}"

    @staticmethod
    def of(name: str) -> SourceChannel:
        """Return the channel that has this name.

        >>> SourceChannel.of("s0002/a/b/00007")
        SourceChannel(source=2, topic='a/b', partition=7)
        """
        source, _, place = name.partition("/")
        topic, _, partition = place.rpartition("/")
        return SourceChannel(int(source[1:]), topic, int(partition))


def channel_name(source: int, topic: str, partition: int) -> str:
    """Return the name of a Kafka partition's channel."""
    return SourceChannel(source, topic, partition).name


@dataclass(slots=True)
class ChannelClock:
    """A Kafka partition: its watermark, and the running time when it last had rows."""

    watermark: int = MIN_TIME
    heard: int = 0


@dataclass(slots=True)
class SourceClock:
    """The watermark of one source table."""

    idle_timeout: int
    learned: bool = False
    ended: bool = False
    channels: dict[str, ChannelClock] = field(default_factory=dict)
    watermark: int = MIN_TIME

    def observe(self, channel: str, watermark: int, running: int) -> None:
        """Note that a batch had rows of `channel`, which asserts `watermark`."""
        known = self.channels.setdefault(channel, ChannelClock())
        known.watermark = max(known.watermark, watermark)
        known.heard = running

    def learn(self, names: tuple[str, ...], ended: bool, running: int, *, waiting: bool = False) -> None:
        """Note that the source has the channels `names`. A new channel counts as active now, and so do all channels of
        a source that is not read yet."""
        self.learned = True
        for name in names:
            channel = self.channels.setdefault(name, ChannelClock(heard=running))
            if waiting:
                channel.heard = running
        self.ended = self.ended or ended

    def is_idle(self, channel: ChannelClock, running: int) -> bool:
        """Return whether a channel has been silent for so long that it no longer holds the watermark back."""
        return bool(self.idle_timeout) and running - channel.heard >= self.idle_timeout

    def read(self, running: int) -> Watermark:
        """Return the current watermark: it never decreases, and does not change while every channel is idle."""
        if self.ended:
            self.watermark = END_OF_TIME
            return Watermark(END_OF_TIME, False)
        if not self.learned:
            return Watermark(self.watermark, False)
        active = [c.watermark for c in self.channels.values() if not self.is_idle(c, running)]
        if active:
            self.watermark = max(self.watermark, min(active))
        return Watermark(self.watermark, not active and bool(self.channels))


def combine(watermarks: list[Watermark]) -> Watermark:
    """Return the watermark of several inputs: the minimum over those that are not idle."""
    active = [r.time for r in watermarks if not r.idle]
    if active:
        return Watermark(min(active), False)
    return Watermark(max((r.time for r in watermarks), default=MIN_TIME), True)


@dataclass(slots=True)
class WatermarkTracker:
    """The time that a level remembers between batches: `previous` are the watermarks of operators, by identity."""

    sources: dict[int, SourceClock]
    previous: dict[str, int] = field(default_factory=dict)
    last: int = 0
    running: int = 0

    def begin_batch(self, now: int) -> None:
        """Begin a batch at processing time `now`."""
        if self.last:
            self.running += min(max(now - self.last, 0), LONGEST_GAP)
        self.last = max(now, self.last)

    def save(self) -> dict[str, Any]:
        """Return the clocks as JSON values."""
        return {
            "sources": {str(k): asdict(v) for k, v in self.sources.items()},
            "previous": dict(self.previous),
            "last": self.last,
            "running": self.running,
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore what `save` wrote; the idle timeout is that of the current table."""
        for key, value in saved["sources"].items():
            clock = self.sources.get(int(key))
            if clock is None:
                continue
            clock.learned, clock.ended = value["learned"], value["ended"]
            clock.watermark = value["watermark"]
            clock.channels = {name: ChannelClock(**channel) for name, channel in value["channels"].items()}
        self.previous = dict(saved["previous"])
        self.last, self.running = saved["last"], saved["running"]


def united_clocks(kept: Mapping[str, Any] | None, backfilled: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the clocks of a level whose operators come from two runs that have read the same records: what `save`
    returned for the first, with the operators of the second, and with the sources that only the second has read."""
    if kept is None or backfilled is None:
        return kept or backfilled
    sources = dict(kept["sources"])
    for source, clock in backfilled["sources"].items():
        if not _has_time(sources.get(source)):
            channels = {name: {**channel, "heard": kept["running"]} for name, channel in clock["channels"].items()}
            sources[source] = {**clock, "channels": channels}
    return {
        **kept,
        "sources": sources,
        "previous": {**backfilled["previous"], **kept["previous"]},
        "last": max(kept["last"], backfilled["last"]),
    }


def _has_time(source: Mapping[str, Any] | None) -> bool:
    """Whether a level has received a time of a source: ticks list the channels at every level."""
    return source is not None and any(each["watermark"] > MIN_TIME for each in source["channels"].values())
