"""The planned and the finished batches of a checkpoint, from the logs that Spark keeps in it.

A batch is planned when its end offsets are in `offsets`; it is done when its number is in `commits`. Between the two it
may be given up: if its file is removed from `offsets`, Spark plans that batch again; if its number is put into
`commits`, Spark continues after its end offsets. Either change is one file, so a process that dies during the change
leaves the checkpoint as before or as after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from service.checkpoint.files import Files, StateMissing

OFFSETS, COMMITS, SOURCES = "offsets", "commits", "sources"

CLOCK_JUMP = 3_600_000
"""Milliseconds by which a clock that has not jumped is never ahead of the last tick."""

NO_OFFSET = "-"
"""What Spark writes for a source that has no offset yet."""

Offsets = Any
"""The offsets of a source, as in its JSON: for Kafka by topic and partition, for others whatever they count."""


class PlannedBatch(NamedTuple):
    """Batch `number`: where it starts and ends, in the order of the query's sources; None where that is not known."""

    number: int
    starts: Sequence[Offsets | None]
    ends: Sequence[Offsets | None]


class Range(NamedTuple):
    """The records of a partition that a batch reads; `start` is None in the first batch, which begins with the first
    record."""

    topic: str
    partition: int
    start: int | None
    end: int

    @property
    def records(self) -> int:
        """The number of offsets in the range; an upper bound for a partition that is new."""
        return self.end - (self.start or 0)


def unfinished(files: Files) -> PlannedBatch | None:
    """Return the batch that is planned and not done, None if there is none."""
    number = last(files, OFFSETS)
    if number <= last(files, COMMITS):
        return None
    stops = ends(files, number)
    starts = ends(files, number - 1) if number else [first(files, source) for source in range(len(stops))]
    return PlannedBatch(number, [*starts, *([None] * (len(stops) - len(starts)))], stops)


def planned_at(files: Files, number: int) -> int:
    """Return when a batch was planned, in milliseconds since 1970: the time that its rows see."""
    written = files.get(f"{OFFSETS}/{number}") or b"v1\n{}"
    _version, metadata, *lines = written.decode().splitlines()
    return seen_time(json.loads(metadata).get("batchTimestampMs", 0), lines)


def seen_time(planned: int, lines: Iterable[str]) -> int:
    """Return the time that the rows of a batch see, in milliseconds since 1970, from when Spark `planned` it and the
    lines of its sources: that of its tick if Spark's is an hour later.

    A tick has checked its clock (`service.host.clock`). Spark reads its own a moment later, and a clock may jump in
    between: a batch in the wrong year would lose its state. Ticks are less than an hour apart.
    """
    tick = tick_time(map(value_of, lines))
    return tick if tick and planned - tick > CLOCK_JUMP else planned


def tick_time(ends: Iterable[Offsets | None]) -> int:
    """Return the time of the tick among the ends of a batch, in milliseconds since 1970; 0 if there is none."""
    ticks = [end["now"] for end in ends if isinstance(end, dict) and isinstance(end.get("now"), int)]
    return max(ticks, default=0)


def last(files: Files, log: str) -> int:
    """Return the last batch of a log, -1 if there is none."""
    return max((int(name) for name in files.names(log) if name.isdigit()), default=-1)


def remove_plan(files: Files, number: int) -> None:
    """Remove the plan of batch `number`."""
    files.remove([checksum(OFFSETS, number), f"{OFFSETS}/{number}"])


def add_starts(files: Files, source: int, starts: Mapping[str, Mapping[int, int]]) -> None:
    """Make the next planned batch read the partitions of `starts` from these offsets, if the log does not know them
    yet. A batch must be done.

    Spark itself begins a new partition at its first record, and fails if that is not at offset 0. A batch that is
    planned and not done reads none of their records.
    """
    done, newest = last(files, COMMITS), last(files, OFFSETS)
    before, known = (_of_kafka(ends(files, number)[source]) for number in (done, newest))
    new: dict[str, dict[str, int]] = {}
    for topic, partitions in starts.items():
        for partition, offset in ((str(p), o) for p, o in partitions.items()):
            if partition not in known.get(topic, {}):
                # An earlier call that was killed may have written the first file already.
                new.setdefault(topic, {})[partition] = before.get(topic, {}).get(partition, offset)
    if not new:
        return
    for number in range(done, newest + 1):
        metadata, lines = logged(files, number)
        stops = _of_kafka(value_of(lines[source]))
        wanted = {topic: {**new.get(topic, {}), **stops.get(topic, {})} for topic in sorted({*stops, *new})}
        lines[source] = json.dumps(wanted, separators=(",", ":"))
        put_offsets(files, number, metadata, lines)


class Logged(NamedTuple):
    """The entry of a batch in the log: Spark's metadata of it, and a line for each source."""

    metadata: str
    lines: list[str]


def logged(files: Files, number: int) -> Logged:
    """Return the log's entry of a batch. Raises StateMissing."""
    name = f"{OFFSETS}/{number}"
    written = files.get(name)
    if written is None:
        raise StateMissing("the checkpoint", name)
    _version, metadata, *lines = written.decode().splitlines()
    return Logged(metadata, lines)


def put_offsets(files: Files, number: int, metadata: str, lines: Iterable[str]) -> None:
    """Write the log's entry of a batch: Spark's metadata, and a line for each source."""
    files.remove([checksum(OFFSETS, number)])
    files.put(f"{OFFSETS}/{number}", ["\n".join(["v1", metadata, *lines]).encode()])


def pass_nothing(files: Files, number: int) -> None:
    """Plan batch `number` to end where the batch before it did."""
    metadata, lines = logged(files, number - 1)
    put_offsets(files, number, metadata, lines)


def note_done(files: Files, number: int) -> None:
    """Note batch `number` as done: its state must have been written."""
    written = [files.get(f"{COMMITS}/{number - 1}") if number else None]
    # Spark's other notes about a batch, such as its watermark, are not used and stay as they were.
    text = written[0] or b'v1\n{"nextBatchWatermarkMs":0}'
    files.remove([checksum(COMMITS, number)])
    files.put(f"{COMMITS}/{number}", [text])


def ranges(start: Offsets | None, end: Offsets | None) -> list[Range]:
    """Return what a batch reads of a Kafka source, partition by partition; nothing where `end` is not that of one."""
    before, after = _of_kafka(start), _of_kafka(end)
    found = [
        Range(topic, int(partition), before.get(topic, {}).get(partition), int(offset))
        for topic, partitions in sorted(after.items())
        for partition, offset in sorted(partitions.items(), key=lambda item: int(item[0]))
    ]
    return [each for each in found if each.records > 0]


def _of_kafka(offsets: Offsets | None) -> Mapping[str, Mapping[str, int]]:
    kafka = isinstance(offsets, dict) and all(isinstance(each, dict) for each in offsets.values())
    return offsets if kafka and offsets is not None else {}


def ends(files: Files, number: int) -> list[Offsets | None]:
    """Return where a batch ends, source by source; empty if the log does not have it."""
    try:
        return [value_of(line) for line in logged(files, number).lines]
    except StateMissing:
        return []


def value_of(line: str) -> Offsets | None:
    """Return the offsets in a line of the log, None if the source has none yet."""
    return None if line in (NO_OFFSET, "") else json.loads(line)


def first(files: Files, source: int) -> Offsets | None:
    """Return where a source, by its position, began when the checkpoint was new; None if it never has."""
    written = (files.get(f"{SOURCES}/{source}/0") or b"").decode(errors="replace")
    at = written.find("{")
    return json.loads(written[at:]) if at >= 0 else None


def checksum(log: str, number: int) -> str:
    """Return the name of Hadoop's checksum of a local file: the checksum must be removed together with the file."""
    return f"{log}/.{number}.crc"
