"""The plan of a batch, as one value that outlives the checkpoint that it was made for.

A task stores the plan of its batch beside its output (`service.kafka.writer.plan_records`). From there an older copy of
the checkpoint reads the batches that it lacks, and plans them again: with the same offsets, the same time and the same
number of tasks.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from service.checkpoint.batch_log import logged, put_offsets, seen_time, value_of
from service.checkpoint.files import Files

FORMAT = 1
"""The version of the plan's text; another version is refused."""

_TIMES = ("batchTimestampMs", "batchWatermarkMs")
"""The entries of Spark's metadata that belong to the batch itself; all others are settings, taken from the previous
batch."""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Batch `number` as one task knows it.

    `ends` are the lines of Spark's offset log, one a source; `starts` are those of the batch before, by position, of
    sources to which partitions may come, and of all where no state has the previous batch. `times` are what the log
    says of time, in milliseconds. `shards` and `readers` are the numbers of tasks, and `plan` is the plan number of the
    checkpoint. `digest`, in hex, is that of the rows that the task read. `skipped` are the records that were skipped
    instead (`replanning.Skipped`), None where the batch was done. `sources` are the ids of the sources, in their order;
    none where a version before has written the plan.
    """

    number: int
    ends: tuple[str, ...]
    times: Mapping[str, int]
    shards: int
    readers: int
    plan: int
    digest: str = ""
    starts: Mapping[str, str] = field(default_factory=dict)
    skipped: tuple[Mapping[str, Any], ...] | None = None
    sources: tuple[int, ...] = ()

    @staticmethod
    def planned(
        files: Files,
        number: int,
        *,
        shards: int,
        readers: int,
        plan: int,
        starts_of: Iterable[int] = (),
        before: BatchPlan | None = None,
        sources: Iterable[int] = (),
    ) -> BatchPlan:
        """Return the plan of a batch whose offsets are in the log, with the `starts` of the sources at these positions.
        `before` is the plan of another batch, if it is known: that of the batch before is not read then. Raises
        StateMissing."""
        metadata, ends = logged(files, number)
        logged_times = json.loads(metadata)
        positions = list(starts_of) if number else []
        lines: Sequence[str] = ()
        if positions:
            known = before is not None and before.number == number - 1
            lines = before.ends if before is not None and known else end_lines(files, number - 1)
        return BatchPlan(
            number=number,
            ends=tuple(ends),
            times={name: logged_times[name] for name in _TIMES if name in logged_times},
            shards=shards,
            readers=readers,
            plan=plan,
            starts={str(position): lines[position] for position in positions},
            sources=tuple(sources),
        )

    @property
    def time(self) -> int:
        """The time that the rows of the batch see, in milliseconds since 1970."""
        return seen_time(self.times["batchTimestampMs"], self.ends)

    def begins_at(self, ends: Sequence[str]) -> bool:
        """Return whether the batch is known to begin where the lines `ends` say that another has ended; partitions may
        have come since."""
        if not self.starts:
            return False
        known = dict(enumerate(ends))
        return all(_agree(known.get(int(position), ""), line) for position, line in self.starts.items())

    def put(self, files: Files) -> None:
        """Plan the batch in a checkpoint that has done the one before it. Raises StateMissing."""
        before = self.number - 1
        metadata, lines = logged(files, before)
        starts = [self.starts.get(str(position), line) for position, line in enumerate(lines)]
        if starts != lines:
            put_offsets(files, before, metadata, starts)
        put_offsets(files, self.number, json.dumps({**json.loads(metadata), **self.times}), self.ends)

    def to_bytes(self) -> bytes:
        """Return the plan, packed."""
        return zlib.compress(json.dumps({"format": FORMAT, **asdict(self)}, separators=(",", ":")).encode())

    @staticmethod
    def from_bytes(packed: bytes) -> BatchPlan | None:
        """Return what `to_bytes` wrote; None if another version wrote it."""
        stored = json.loads(zlib.decompress(packed))
        if stored.pop("format") != FORMAT:
            return None
        skipped = stored["skipped"]
        return BatchPlan(
            **{
                **stored,
                "ends": tuple(stored["ends"]),
                "skipped": None if skipped is None else tuple(skipped),
                "sources": tuple(stored.get("sources", ())),
            }
        )


def end_lines(files: Files, number: int) -> list[str]:
    """Return where a batch ends: the lines of its sources. Raises StateMissing."""
    return logged(files, number).lines


def _agree(ended: str, began: str) -> bool:
    """Whether a source begins at the offsets at which it ended."""
    if ended == began:
        return True
    before, after = value_of(ended), value_of(began)
    if not isinstance(before, dict) or not isinstance(after, dict):
        return False
    return all(after.get(topic, {}) | each == after.get(topic) for topic, each in before.items())
