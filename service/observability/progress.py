"""Spark's report of a batch, as plain values: its time by phase, and what it read of each Kafka partition."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from service.plan.program import Program, Source

Offsets = Mapping[str, Mapping[int, int]]
"""Offsets by topic and partition."""


class Read(NamedTuple):
    """The records that a batch read of one Kafka partition of table `source`: from offset `first` to before `last`. The
    partition ended at `end` when the batch was cut. Of the first batch of a checkpoint `first` is not known and equals
    `last`."""

    source: str
    topic: str
    partition: int
    first: int
    last: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A batch that is done. Times are in seconds, `ended` since the epoch. `phases`, by Spark's names, come one after
    the other; `state_commit` is added over tasks. `rows` are the records read, by the position of the source."""

    batch: int
    ended: float
    seconds: float
    rows: tuple[int, ...]
    phases: Mapping[str, float]
    state_commit: float
    reads: tuple[Read, ...]


def progress_of(program: Program, report: Mapping[str, Any], records: Mapping[str, float]) -> Progress:
    """Return Spark's report of a batch; its sources are in the order of the program's, the tick comes last.

    `records` are those that its tasks have counted, by table, where Spark counts blocks. Sources of one table share
    them.
    """
    phases = {name: milliseconds / 1000 for name, milliseconds in report["durationMs"].items()}
    seconds = phases.pop("triggerExecution", 0.0)
    sources = list(zip(program.sources, report["sources"], strict=False))
    of_table = Counter(source.table.name for source in program.sources)
    return Progress(
        batch=int(report["batchId"]),
        ended=datetime.fromisoformat(report["timestamp"]).timestamp() + seconds,
        seconds=seconds,
        rows=tuple(int(records.get(s.table.name, 0)) // of_table[s.table.name] for s in program.sources),
        phases=phases,
        state_commit=sum(int(each.get("commitTimeMs", 0)) for each in report.get("stateOperators", ())) / 1000,
        reads=tuple(read for source, offsets in sources for read in _reads(source, offsets)),
    )


def _reads(source: Source, offsets: Mapping[str, Any]) -> Iterator[Read]:
    if source.table.connector.kind == "datagen":
        return
    first, last, end = (_offsets(offsets.get(name)) for name in ("startOffset", "endOffset", "latestOffset"))
    for topic, partitions in last.items():
        for partition, offset in partitions.items():
            began, ends = (known.get(topic, {}).get(partition, offset) for known in (first, end))
            yield Read(source.table.name, topic, partition, began, offset, ends)


def _offsets(raw: object) -> Offsets:
    """Offsets of a Kafka source, which Spark gives as JSON, or as the text of it; nothing where there are none yet."""
    value = json.loads(raw) if isinstance(raw, str) else raw
    if not isinstance(value, dict):
        return {}
    return {topic: {int(p): offset for p, offset in each.items()} for topic, each in value.items()}
