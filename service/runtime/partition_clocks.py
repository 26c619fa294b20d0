"""The message of a task to every shard about the Kafka partitions that it has read: the event time of each, and a
digest of the records read.

Each task sends it to each shard of a level, so it is kept small: about twelve bytes a partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from service.runtime.source_digest import LENGTH

_MORE = 0x80
"""The bit of a byte that says that another byte of the number follows, of higher value."""


class PartitionClock(NamedTuple):
    """A Kafka partition in one batch: the watermark that its rows assert (milliseconds), and the digest of what was
    read of it (`digest_range`)."""

    topic: str
    partition: int
    watermark: int
    source_range: bytes


def newest(clocks: Sequence[PartitionClock]) -> int:
    """Return the latest of the watermarks; there is at least one."""
    return max(clock.watermark for clock in clocks)


def to_bytes(clocks: Sequence[PartitionClock]) -> bytes:
    """Return the clocks as bytes; each watermark is stored as its distance from the newest one."""
    latest, written = newest(clocks), bytearray()
    for topic, of_topic in groupby(clocks, key=lambda clock: clock.topic):
        name, group = topic.encode(), list(of_topic)
        for number in (len(name), len(group)):
            _put(written, number)
        written += name
        for clock in group:
            _put(written, clock.partition)
            _put(written, latest - clock.watermark)
            written += clock.source_range
    return bytes(written)


def from_bytes(written: bytes, latest: int) -> Iterator[PartitionClock]:
    """Yield the clocks that `to_bytes` wrote; `latest` is the newest watermark among them."""
    at = 0
    while at < len(written):
        length, at = _number(written, at)
        count, at = _number(written, at)
        topic, at = written[at : at + length].decode(), at + length
        for _ in range(count):
            partition, at = _number(written, at)
            behind, at = _number(written, at)
            yield PartitionClock(topic, partition, latest - behind, written[at : at + LENGTH])
            at += LENGTH


def _put(written: bytearray, number: int) -> None:
    """Add a number from 0 on, seven bits to a byte, the lowest first."""
    while number >= _MORE:
        written.append(number % _MORE | _MORE)
        number //= _MORE
    written.append(number)


def _number(written: bytes, at: int) -> tuple[int, int]:
    """The number that begins at `at`, and where it ends."""
    number, place = 0, 1
    while written[at] & _MORE:
        number += written[at] % _MORE * place
        place, at = place * _MORE, at + 1
    return number + written[at] * place, at + 1
