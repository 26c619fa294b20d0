"""A backfill: new operators of a changed query read its sources again, beside the query that still runs.

It is a job like any other, with a checkpoint of its own in a folder of the first one. It never reads further than the
first query has: the end offsets of that query's last batch are its bound, and the bound moves with them. Once
everything is read and the first query is stopped, both have read the same records.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from service.checkpoint.batch_log import COMMITS, ends, first, last, unfinished
from service.checkpoint.files import Files
from service.checkpoint.small_files import SmallFiles
from service.deployment.deployment import Deployment
from service.kafka.admin import Cluster, Offsets, StartPosition
from service.plan.backfill import BackfillPart
from service.plan.meaning import Meaning
from service.plan.program import Source

FOLDER = "tailrace/backfill"
"""The folder of the checkpoint of a backfill, in that of the job."""

RECORD = "backfill"
"""The small file of that checkpoint which names the backfilled part and its starting offsets."""

EARLIEST, BEGINNING = "earliest", "beginning"

LOOK_EVERY = 0.5
"""Seconds between two reads of the first query's end offsets."""

REPORT_EVERY = 10.0
"""Seconds between two log lines that report the remaining records."""

_FOR_EVER = 2**53
"""The `min.compaction.lag.ms` below which a topic counts as compacted: any topic that is ever compacted."""


@dataclass(frozen=True, slots=True)
class BackfillStart:
    """The place in Kafka from which sources are read again: `mode` is EARLIEST, BEGINNING (where the first query began)
    or a time, in ms since 1970."""

    mode: str | int

    @staticmethod
    def of(text: str) -> BackfillStart:
        """Return what a command line says: one of the words, a time as ISO 8601 or in ms since 1970. Raises
        ValueError."""
        if text in (EARLIEST, BEGINNING):
            return BackfillStart(text)
        if text.isdigit():
            return BackfillStart(int(text))
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            raise ValueError("a time needs its zone, as in 2024-05-01T00:00:00Z")
        return BackfillStart(int(at.timestamp() * 1000))


@dataclass(frozen=True, slots=True)
class BackfillRange:
    """The records to read again: where each source starts, as Spark's JSON. `notes` are printed for people; `refusals`
    are the reasons against it, and empty if there are none."""

    starts: Mapping[int, str]
    notes: tuple[str, ...]
    refusals: tuple[str, ...]


def backfill_range(
    deployment: Deployment, part: BackfillPart, at: BackfillStart, files: Files, positions: Mapping[int, int]
) -> BackfillRange:
    """Ask Kafka where `part` would start, and how much it would read.

    `deployment` is that of the part, `files` is the checkpoint of the job, which has done a batch, and `positions` are
    those of its sources in the log of batches, by id. Raises KafkaFailure.
    """
    done = ends(files, last(files, COMMITS))
    starts: dict[int, str] = {}
    notes: list[str] = []
    refusals: list[str] = []
    for source in deployment.program.sources:
        cluster = Cluster(deployment.source_addresses[source.id].librdkafka)
        if source.id in positions:
            position = positions[source.id]
            began, bound = first(files, position) or {}, done[position] or {}
        else:
            began, bound = {}, _as_json(deployment.end_offsets(source.id))
        topics = source.table.connector.topics
        refusals += [
            f"table {source.table.name}: topic {topic} is read by the old query and cannot be found"
            for topic in bound
            if topic not in topics
        ]
        there = cluster.start_offsets(topics, StartPosition(mode="earliest-offset"))
        given = _given(cluster, topics, at, there, began)
        same = source.id in part.same_start
        for topic in topics:
            if source.table.connector.kind != "upsert-kafka" and cluster.compacts_within(topic, _FOR_EVER):
                message = f"table {source.table.name}: topic {topic} is compacted, and may lack earlier rows"
                (refusals if same else notes).append(message)
        if same:
            refusals += _other_start(source, part, given, there, began, bound)
        chosen = {
            topic: {str(p): min(offset, int(bound.get(topic, {}).get(str(p), offset))) for p, offset in each.items()}
            for topic, each in given.items()
        }
        starts[source.id] = json.dumps(chosen)
        notes += _describe_range(source, chosen, there, bound, again=source.id in positions)
    return BackfillRange(starts, tuple(notes), tuple(dict.fromkeys(refusals)))


def _given(cluster: Cluster, topics: Sequence[str], at: BackfillStart, there: Offsets, began: Any) -> Offsets:
    if isinstance(at.mode, int):
        return cluster.start_offsets(topics, StartPosition(mode="timestamp", timestamp_ms=at.mode))
    if at.mode == EARLIEST:
        return there
    return {
        topic: {p: max(offset, int(began.get(topic, {}).get(str(p), 0))) for p, offset in each.items()}
        for topic, each in there.items()
    }


def _other_start(
    source: Source, part: BackfillPart, given: Offsets, there: Offsets, began: Any, bound: Any
) -> Iterator[str]:
    """The reasons why a source cannot start where it did for the first query."""
    table, shared = source.table.name, ", ".join(part.shared)
    kept = f"{shared} {'are' if len(part.shared) > 1 else 'is'} kept and feed{'' if len(part.shared) > 1 else 's'}"
    for topic, partitions in bound.items():
        for number in partitions:
            was, partition = int(began.get(topic, {}).get(number, 0)), int(number)
            place = f"partition {number} of {topic}"
            if there.get(topic, {}).get(partition, 0) > was:
                yield (
                    f"table {table}: {kept} what is new, and was made from records that are gone from Kafka: {place}"
                    f" was read from offset {was} and begins at {there[topic][partition]} now"
                )
            elif given.get(topic, {}).get(partition, 0) != was:
                yield (
                    f"table {table}: {kept} what is new, which has to read the same records: {place} was read from"
                    f" offset {was}, not {given[topic][partition]} (say --from {BEGINNING})"
                )


def _describe_range(
    source: Source, starts: Mapping[str, Mapping[str, int]], there: Offsets, bound: Any, *, again: bool
) -> Iterator[str]:
    records = sum(
        max(0, int(bound.get(topic, {}).get(p, 0)) - offset)
        for topic, each in starts.items()
        for p, offset in each.items()
    )
    yield f"table {source.table.name}: {records:,} records are read{' again' if again else ''}"
    gone = [f"{topic}/{p} before offset {o}" for topic, each in there.items() for p, o in each.items() if o]
    if gone:
        yield f"table {source.table.name}: records are gone from Kafka: {', '.join(gone)}"


def _as_json(offsets: Mapping[str, Mapping[int, int]]) -> dict[str, dict[str, int]]:
    """Offsets in the form of Spark's JSON."""
    return {topic: {str(partition): offset for partition, offset in each.items()} for topic, each in offsets.items()}


def positions_in(meaning: Meaning) -> dict[int, int]:
    """Return the position of each source, by its id, in the log of batches of the query that means `meaning`."""
    return {source.id: position for position, source in enumerate(meaning.sources)}


class FollowedEnds:
    """The end of what a backfill reads: the end of the first query's last batch, for as long as that query runs. A
    source that the first query does not read ends where its topics do.

    `positions` are those of sources in the log of the first query, `others` return the ends of the sources that it does
    not read. `stopped` tries to keep that query from running, and returns whether that succeeded; `release` lets it run
    again. `report` is called with the progress.
    """

    def __init__(
        self,
        files: Files,
        positions: Mapping[int, int],
        others: Mapping[int, Callable[[], Mapping[str, Mapping[int, int]]]],
        *,
        stopped: Callable[[], bool],
        release: Callable[[], None],
        report: Callable[..., None],
        look_every: float = LOOK_EVERY,
    ) -> None:
        self.complete = False
        self._files = files
        self._positions = positions
        self._others = others
        self._stopped = stopped
        self._release = release
        self._report = report
        self._every = look_every
        self._ends: dict[int, Any] = {}
        self._look_at = self._report_at = 0.0
        self._waits_for = ""

    def now(self) -> Mapping[int, str]:
        """Return the end offsets of each source, as Spark's JSON of them."""
        if not self.complete and time.monotonic() >= self._look_at:
            self._look()
        return {source: json.dumps(each) for source, each in self._ends.items()}

    def final(self, read: Mapping[int, Mapping[str, Mapping[str, int]]]) -> bool:
        """Return whether everything that the first query has read is read, and that query is stopped."""
        self.now()
        left = self._left(read)
        if time.monotonic() >= self._report_at:
            self._report_at = time.monotonic() + REPORT_EVERY
            self._report("backfill", records_left=left)
        if left:
            return False
        if not self.complete:
            if not self._stopped():
                self._wait("stop the running query; the changed query then takes over")
                return False
            planned = unfinished(self._files)
            if planned is not None:
                self._release()
                self._wait(
                    f"batch {planned.number} is planned and not done: the query is to run until it is, then stop"
                )
                return False
            self._look()
            self.complete = True
        return not self._left(read)

    def _look(self) -> None:
        self._look_at = time.monotonic() + self._every
        found = ends(self._files, last(self._files, COMMITS))
        self._ends = {source: found[at] or {} for source, at in self._positions.items()}
        for source, ask in self._others.items():
            self._ends[source] = _as_json(ask())

    def _left(self, read: Mapping[int, Mapping[str, Mapping[str, int]]]) -> int:
        return sum(
            max(0, int(end) - int(read.get(source, {}).get(topic, {}).get(partition, 0)))
            for source, wanted in self._ends.items()
            for topic, each in wanted.items()
            for partition, end in each.items()
        )

    def _wait(self, why: str) -> None:
        if self._waits_for != why:
            self._waits_for = why
            self._report("backfilled", waits_for=why)


@dataclass(frozen=True, slots=True)
class BackfillRecord:
    """The record of a backfill: the query that it is `of`, its part, and where its sources start."""

    of: str
    part: str
    starts: Mapping[int, str]

    @staticmethod
    def read(backfill: Files) -> BackfillRecord | None:
        """Return the stored record; None if no backfill has begun."""
        stored = SmallFiles(backfill).read(RECORD)
        if stored is None:
            return None
        return BackfillRecord(stored["of"], stored["part"], {int(k): v for k, v in stored["starts"].items()})

    def write(self, backfill: Files) -> None:
        """Store the record."""
        starts = {str(source): text for source, text in self.starts.items()}
        SmallFiles(backfill).write(RECORD, {"of": self.of, "part": self.part, "starts": starts})
