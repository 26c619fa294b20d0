"""Giving up a planned batch that does not fit: it is replanned, or skipped.

Law: a batch may be given up if and only if nothing of it is committed, and never will be. (Tasks of a program without
state are independent, so the law holds for each of them: those that have not committed may be skipped.)

So the checkpoint first takes a new plan number, which every task carries that starts later. Then this takes the epoch
of each transactional id, so that no transaction is left open. For each marker that the batch could leave, it takes the
epoch once more, reads the marker, and commits it again unchanged, with the new plan number: an attempt of an earlier
plan that wakes up later finds that number and writes nothing. If a marker says that the batch is committed there, the
batch stays as it was planned. A skip is recorded in Kafka only when that is ruled out for every marker, for older
copies of the checkpoint: a refused skip has recorded nothing. If this process ends at any point, the batch is planned
as it was, or given up.

A batch that stays as it was planned has its earlier attempts fenced in the same way, so that their files can be removed
(`Replanning.remove_leftovers`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple
from zlib import crc32

from service.checkpoint import batch_log
from service.checkpoint.address import CheckpointAddress
from service.checkpoint.batch_log import PlannedBatch, Range
from service.checkpoint.batch_plan import BatchPlan
from service.checkpoint.blocks import of_repeat
from service.checkpoint.files import Files
from service.checkpoint.small_files import PLAN_NUMBER
from service.checkpoint.sweep import begun_files, remove_leftovers
from service.checkpoint.version import Version
from service.deployment.bounds import Store
from service.deployment.deployment import Deployment
from service.kafka.errors import KafkaFailure
from service.kafka.writer.marker import MarkerReader
from service.kafka.writer.partition_writer import PartitionWriter, fence_all
from service.plan.program import Program, starts_in_plan
from service.runtime.watermarks import channel_name

CUT, SKIPPED, TRIES = "cut", "skipped", "tries"
"""Small files of a checkpoint: the records per table to which batches are limited; the skipped records; the number of
processes that have begun the planned batch, and the last of them."""

PROCESSES = 3
"""The number of processes that may begin a batch without ending it. After them the batch is taken for too large: a
process that is killed for its memory cannot report it."""

_Place = tuple[int, int]
"""A transaction of a batch: the number of the cluster, and that of the task."""

_TRIES = 3
_PAUSE = 1.0
"""How often Kafka is asked, and the seconds between: a broker that is just starting answers by then."""


class PlanKept(Exception):
    """The batch stays as it was planned: `primary` says why, `hint` what helps."""

    def __init__(self, primary: str, hint: str) -> None:
        super().__init__(f"{primary}\n  hint:   {hint}")
        self.primary = primary
        self.hint = hint


class Cut(NamedTuple):
    """Batch `number` is replanned, with at most `rows` records of a table; `before` is the previous limit."""

    number: int
    before: int
    rows: int


class Skipped(NamedTuple):
    """Records of a partition that were skipped without an answer; `start` is None if the partition was new."""

    batch: int
    table: str
    topic: str
    partition: int
    start: int | None
    end: int
    at: float
    why: str
    partly: str = ""
    """The tasks that had written their output, if any had; which of these records it came from is not known."""

    @property
    def records(self) -> int:
        """The number of skipped offsets."""
        return self.end - (self.start or 0)


def skipped_by_topic(store: Store) -> list[tuple[str, str, int]]:
    """Return the tables, their topics, and the number of records skipped since the checkpoint was made."""
    found: dict[tuple[str, str], int] = {}
    for each in (Skipped(**written) for written in store.read(SKIPPED) or []):
        place = each.table, each.topic
        found[place] = found.get(place, 0) + each.records
    return [(*place, records) for place, records in sorted(found.items())]


class Replanning:
    """The choices for the planned batch of one job, while its query is stopped. `process` names the process of a
    driver, which is about to begin the batch."""

    def __init__(self, deployment: Deployment, files: Files, store: Store, process: str = "") -> None:
        self._deployment = deployment
        self._files = files
        self._store = store
        self._process = process

    def pending(self) -> PlannedBatch | None:
        """Return the batch that is planned and not done."""
        return batch_log.unfinished(self._files)

    def begun_in_vain(self) -> bool:
        """Note that this process is about to begin the planned batch. Return whether PROCESSES others have done so
        before."""
        pending = self.pending()
        if pending is None:
            return False
        known = self._store.read(TRIES)
        before = known["processes"] if known is not None and known["batch"] == pending.number else 0
        self._store.write(TRIES, {"batch": pending.number, "processes": before + 1, "last": self._process})
        return int(before) >= PROCESSES

    def remove_leftovers(self) -> None:
        """Remove what killed processes have left of the planned batch, which stays as it was planned. Called by a
        process that has noted that it is about to begin the batch. Raises KafkaFailure.

        Law: a file may go if no driver can store a version that names it (`sweep.remove_leftovers`). This takes a plan
        number after it has listed the files: so all of them are of attempts with an earlier number, and none of those
        commits anything any more where its marker was not committed before.

        - Where the first task had not committed, no attempt can end: the first task commits in every attempt.
        - Else the run that planned the batch may end all the same, since its tasks without rows commit nothing. Its
          files stay: they are those of one run.
        - A run that repeats the batch commits in each task; and before and after its driver stores a version, it looks
          whether there is a newer plan number (`batch_end`). On a mount of several machines that look may be out of
          date; so files stay there if every task had committed.

        A process that began the batch later is left alone: it had noted that before it wrote a file.
        """
        batch = self.pending()
        if batch is None or not self._deployment.program.levels:
            return
        left = begun_files(self._files, batch.number)
        known = self._store.read(TRIES)
        if not left or known is None or known["batch"] != batch.number or known.get("last") != self._process:
            return
        places, done = self._fenced(batch, self._next_plan())
        if any((number, 0) not in done for number in range(self._clusters)):
            remove_leftovers(self._files, batch.number, left)
        elif len(done) < len(places) or not CheckpointAddress(self._deployment.checkpoint).is_folder:
            remove_leftovers(self._files, batch.number, filter(of_repeat, left))

    def records(self, batch: PlannedBatch) -> list[tuple[str, Range]]:
        """Return the records that a batch reads, by table and partition."""
        sources = self._deployment.program.sources
        return [
            (source.table.name, each)
            for source, start, end in zip(sources, batch.starts, batch.ends, strict=False)
            for each in batch_log.ranges(start, end)
        ]

    def cut(self) -> Cut:
        """Replan the planned batch with half of its records. Raises PlanKept, KafkaFailure."""
        batch = self._planned()
        found = self.records(batch)
        tables: dict[str, int] = {}
        for table, each in found:
            tables[table] = tables.get(table, 0) + each.records
        before = max(tables.values(), default=0)
        if all(each.records <= 1 for _, each in found):
            raise PlanKept(
                f"batch {batch.number} reads one record of a partition, and cannot be made smaller",
                "give the job more memory; or skip the records with `tailrace checkpoint skip`",
            )
        known = self._store.read(CUT)
        allowed = known["rows"] if known is not None and known["batch"] == batch.number else before
        rows = max(1, min(before, allowed) // 2)
        self._give_up(batch)
        # In this order: a replanned batch must not be as large as before.
        self._store.write(CUT, {"batch": batch.number, "rows": rows})
        batch_log.remove_plan(self._files, batch.number)
        if self._deployment.program.levels and self._clusters:  # the first task commits a marker in each batch
            remove_leftovers(self._files, batch.number)
        return Cut(batch.number, before, rows)

    def skip(self, why: str) -> list[Skipped]:
        """Skip the records of the planned batch permanently. Raises PlanKept, KafkaFailure."""
        batch = self._planned()
        at = round(time.time(), 3)
        passed = [
            Skipped(batch.number, table, each.topic, each.partition, each.start, each.end, at, why)
            for table, each in self.records(batch)
        ]
        written, tasks = self._give_up(batch, passed)
        if written:
            partly = f"{len(written)} of {tasks} tasks had written theirs: {', '.join(map(str, written))}"
            passed = [each._replace(partly=partly) for each in passed]
        earlier = [each for each in self._store.read(SKIPPED) or [] if each["batch"] != batch.number]
        self._store.write(SKIPPED, [*earlier, *(each._asdict() for each in passed)])
        if self._deployment.program.levels:
            # The state does not change: after this batch it is that before it.
            Version.before(self._files, batch.number).write(self._files, batch.number)
        batch_log.note_done(self._files, batch.number)
        return passed

    def _planned(self) -> PlannedBatch:
        batch = self.pending()
        if batch is None:
            raise PlanKept("no planned batch is incomplete", "nothing to do: run the job")
        return batch

    def _give_up(self, batch: PlannedBatch, skipped: Sequence[Skipped] | None = None) -> tuple[Sequence[int], int]:
        """Give the batch up, see the law. Return the tasks that have committed their output all the same, and the
        number of tasks.

        If the records are skipped, an older copy of the checkpoint has to learn of it. Tasks of a program without state
        can be skipped one by one, since no task keeps what another has not written.
        """
        if self._store.read("id") is None:
            return (), 0  # the checkpoint was never written from
        plan = self._next_plan()
        places, done = self._fenced(batch, plan)
        here = {place for _, place in places}
        written = sorted({place for _, place in done})
        whole = all((number, place) in done for place in written for number in range(self._clusters))
        alone = skipped is not None and not self._deployment.program.levels and whole and len(written) < len(here)
        if done and not alone:
            raise PlanKept(
                f"part of batch {batch.number} is committed: {len(done)} of its {len(places)} transactions",
                "it can only be repeated as it was planned: give the job more memory, at least for this batch",
            )
        if skipped is not None:
            skipping = self._skipping_plan(batch.number, plan, skipped)
            for place in places:
                if place not in done:
                    self._is_committed(*place, plan, batch.number, skipping)
        return written, len(here)

    def _next_plan(self) -> int:
        """Take a new plan number."""
        plan = int(self._store.read(PLAN_NUMBER) or 0) + 1
        self._store.write(PLAN_NUMBER, plan)
        return plan

    def _fenced(self, batch: PlannedBatch, plan: int) -> tuple[Sequence[_Place], Sequence[_Place]]:
        """Make sure that no attempt with a lower plan number commits anything of the batch any more. Return all of its
        transactions, and those that are committed already."""
        here = places_of(self._deployment.program, self._store, batch)
        places = [(number, place) for number in range(self._clusters) for place in here]
        self._fence(places, plan)
        return places, [place for place in places if self._is_committed(*place, plan, batch.number, b"")]

    @property
    def _clusters(self) -> int:
        return len(self._deployment.writers.addresses)

    def _skipping_plan(self, number: int, plan: int, skipped: Sequence[Skipped]) -> bytes:
        shards, readers = (int(self._store.read(name) or 0) for name in ("shards", "readers"))
        program = self._deployment.program
        planned = BatchPlan.planned(
            self._files,
            number,
            shards=shards,
            readers=readers,
            plan=plan,
            starts_of=starts_in_plan(program),
            sources=(source.id for source in program.sources),
        )
        return replace(planned, skipped=tuple(each._asdict() for each in skipped)).to_bytes()

    def _fence(self, places: Sequence[_Place], plan: int) -> None:
        """Take the epoch of all transactional ids. An open transaction would hide the markers of other tasks behind it
        until it times out."""
        written = str(self._store.read("id"))
        tasks = [(self._deployment.writer(number, written, plan), place) for number, place in places]

        def fenced() -> bool:
            fence_all(tasks)
            return True

        _patiently(fenced)

    def _is_committed(self, number: int, place: int, plan: int, batch: int, skipping: bytes) -> bool:
        settings = self._deployment.writer(number, str(self._store.read("id")), plan)
        writer = PartitionWriter(settings, place, MarkerReader(settings.kafka))
        try:
            return _patiently(lambda: not writer.supersede(batch, skipping))
        finally:
            writer.close()


def places_of(program: Program, store: Store, batch: PlannedBatch) -> Sequence[int]:
    """Return the numbers of the tasks that write a batch. In a program with levels these are the tasks of the last
    level, else those that read each source, or one per partition that is read if their number is not fixed."""
    if program.levels:
        return range(int(store.read("shards") or 0))
    readers = int(store.read("readers") or 0)
    if readers:
        return range(len(program.sources) * readers)
    channels = [
        channel_name(source.id, each.topic, each.partition)
        for source, start, end in zip(program.sources, batch.starts, batch.ends, strict=False)
        for each in batch_log.ranges(start, end)
    ]
    made = [channel_name(s.id, s.table.name, 0) for s in program.sources if s.table.connector.kind == "datagen"]
    return sorted({crc32(channel.encode()) for channel in [*channels, *made]})


def _patiently(ask: Callable[[], bool]) -> bool:
    for left in reversed(range(_TRIES)):
        try:
            return ask()
        except KafkaFailure as failed:
            if not failed.retriable or not left:
                raise
            time.sleep(_PAUSE)
    raise AssertionError("there is one try at least")
