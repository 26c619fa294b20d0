"""The end offsets of bounded sources: fixed once for a checkpoint, and never changed.

Shards remember that a source has ended, and its windows remain closed. So a checkpoint that was made with a bound
cannot continue without it, nor the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from service.formats import datagen
from service.kafka.errors import KafkaConfigError
from service.plan.program import Program
from service.plan.table import Table
from service.runtime.watermarks import SourceChannel, channel_name

Ends = Mapping[str, Mapping[int, int]]
"""End offsets by topic and partition."""


_UNKNOWN: Mapping[str, Any] = {"mode": "a bound", "offsets": [], "timestamp": None}


class Store(Protocol):
    """Small JSON files of a checkpoint."""

    def read(self, name: str) -> Any:
        """Return the value of a file, None where it was never written."""

    def write(self, name: str, value: Any) -> None:
        """Replace a file."""


def agree_on_bounds(
    store: Store, program: Program, bounded: frozenset[int], ends: Callable[[int], Ends]
) -> dict[str, int]:
    """Return the end offset of each channel of the bounded sources, as it was when the checkpoint was made.

    `ends` requests those of one source, once. Raises KafkaConfigError if a table now declares another bound.
    """
    declared = {str(s.id): _declared(s.table) for s in program.sources if s.id in bounded}
    known = store.read("bounds")
    limits = store.read("limits")
    if limits is None:
        limits = {
            channel_name(source, topic, partition): end
            for source in sorted(bounded)
            for topic, by_partition in ends(source).items()
            for partition, end in by_partition.items()
        }
        known = declared
        store.write("bounds", known)
        store.write("limits", limits)
    if known is None:
        # A checkpoint of an earlier version has the ends only, which say of what sources.
        kept = {s.id for s in program.sources if _channels(s.id, limits)}
        known = {str(each): declared.get(str(each), _UNKNOWN) for each in sorted(kept)}
    changed = [s for s in program.sources if declared.get(str(s.id)) != known.get(str(s.id))]
    if changed:
        raise KafkaConfigError(
            f"the end of reading table {changed[0].table.name} cannot change while its checkpoint exists",
            f"the checkpoint was made with {_words(known.get(str(changed[0].id)))}, the table now has"
            f" {_words(declared.get(str(changed[0].id)))}",
            "put it back, or set TAILRACE_CHECKPOINT to a new folder to start over; to continue with new records after"
            " a backfill, read unbounded from the earliest offset",
        )
    return dict(limits)


def reached(source: int, limits: Mapping[str, int], read: Mapping[str, Mapping[str, int]]) -> bool:
    """Return whether `read`, the next offsets by topic and partition, are at or past every end of `source`; a source
    without an end never gets there."""
    at = {channel_name(source, t, int(p)): o for t, each in read.items() for p, o in each.items()}
    mine = _channels(source, limits)
    return bool(mine) and all(at.get(channel, 0) >= end for channel, end in mine.items())


def _channels(source: int, limits: Mapping[str, int]) -> dict[str, int]:
    return {name: end for name, end in limits.items() if SourceChannel.of(name).source == source}


def _declared(table: Table) -> dict[str, Any]:
    """The bound of a table as its options declare it, in values that JSON keeps as they are."""
    if table.connector.kind == "datagen":
        return {"mode": "number-of-rows", "offsets": [], "timestamp": datagen.rows_in_all(table)}
    bounded = table.connector.bounded
    return {
        "mode": bounded.mode,
        "offsets": sorted([partition, offset] for partition, offset in bounded.offsets),
        "timestamp": bounded.timestamp,
    }


def _words(bound: Mapping[str, Any] | None) -> str:
    if bound is None:
        return "no bound"
    more = [f"{p}:{o}" for p, o in bound["offsets"]] + ([str(bound["timestamp"])] if bound["timestamp"] else [])
    return " ".join([bound["mode"], *more])
