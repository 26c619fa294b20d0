"""One job on Spark from its checkpoint to its end: the specification for the workers, the query, its progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pyspark.sql import SparkSession

from service.checkpoint.address import CheckpointAddress
from service.checkpoint.batch_log import COMMITS, OFFSETS, add_starts, ends, last
from service.checkpoint.sweep import remove_leftovers, sweep
from service.checkpoint.sweeper import Sweeper
from service.deployment.awaited_tables import AwaitedTables, await_tables
from service.deployment.bounds import agree_on_bounds
from service.deployment.deployment import Deployment, MovingEnds
from service.deployment.kafka_identity import agree_on_kafka
from service.deployment.matched_topics import MatchedTopics, agree_on_topics
from service.deployment.record_limits import Refusals, Rooms, agree_on_rooms, limits_now
from service.deployment.replanning import Cut, Replanning, skipped_by_topic
from service.deployment.rolling_forward import RollForward, note_ends, roll_forward
from service.deployment.start_clock import StartClock, start_clock
from service.deployment.upgrading import meaning_of, recovered_query
from service.deployment.writers import agree_on_writers
from service.host.checkpoint_lock import excludes_others
from service.host.clock import ClockJumped, believed_time
from service.kafka.errors import KafkaFailure
from service.plan.kept_tables import OPERATORS, kept_operators
from service.plan.program import Program
from service.plan.upgrade import Upgrade
from service.runtime.layout import Layout
from service.runtime.shard_operators import StateMismatch
from service.spark.query.batch_end import BatchEnd
from service.spark.query.query import QueryBuilder
from service.spark.query.read_limits import limit_reads
from service.spark.query.run_folder import RunFolder
from service.spark.supervision.batch_pace import BatchPace
from service.spark.supervision.checkpoint import Checkpoint
from service.spark.supervision.job_specs import Terms, job_spec
from service.spark.supervision.reports import Report, end_offsets
from service.spark.supervision.running_query import RunningQuery
from service.spark.supervision.source_ends import SourceEnds
from service.spark.supervision.source_reads import source_options, topics_of_ticks

BatchReport = Mapping[str, Any]

LOOK_EVERY, LOOK_IN_STORE_EVERY = 0.02, 0.5
"""Seconds between two reads of the log of batches. In an object store each is two listings of a folder, which cost
money and may take a tenth of a second."""

STATUS_DELAY = 0.2
"""Seconds after which the status of a held query shows whether it plans a batch."""


class JobRunner:
    """The run of one job: its query is started, watched and stopped."""

    def __init__(
        self,
        session: SparkSession,
        deployment: Deployment,
        scratch: Path,
        hear: Callable[[BatchReport], None],
    ) -> None:
        self._session = session
        self._deployment = self._agreed = deployment
        self._topics = MatchedTopics(deployment.program)
        self._checkpoint = Checkpoint(session, deployment.checkpoint)
        self._scratch = scratch
        self._hear = hear
        self._query: RunningQuery | None = None
        self._batch_end: BatchEnd | None = None
        self._pace = BatchPace(sum(deployment.record_bytes.values()))
        self._awaited = AwaitedTables(deployment.program, {})
        self._ends = SourceEnds(deployment.program, deployment.bounded, {})
        self._folder = RunFolder(scratch)
        self._sweeper = Sweeper(self._sweep_state, self._note_ends)
        self._client: Mapping[str, str] = {}
        self._shards = self._readers = 0
        self._wanted = Layout(0)
        self._rooms: Rooms = {}
        self._wanted_rooms: Rooms = {}
        self._refusals = Refusals()
        self.upgrade: Upgrade | None = None
        self._rolling: RollForward | None = None
        self._looked = self._reported = self._held = False
        self._taken: Upgrade | None = None
        self._redone: Mapping[int, str] | None = None
        self._held_at: float | None = None
        self._wanted_readers = deployment.partitions

    @property
    def program(self) -> Program:
        """The program, with the source ids of the checkpoint once the runner is open."""
        return self._deployment.program

    def open(self) -> None:
        """Open the checkpoint in the state in which the last takeover has left it. Must be called first."""
        self._client = self._checkpoint.client_settings()
        before = meaning_of(recovered_query(self._state().open()))
        if before is not None:
            self._deployment = self._agreed = self._deployment.going_on(before)

    def start(self) -> None:
        """Start the query, or restart it after a failure."""
        self._held = False
        self._client = self._checkpoint.client_settings()
        once = self._plan_missing()
        self._remove_leftovers()
        layout = self._layout()
        self._pace.begin(self._deployment, self._checkpoint)
        self._wanted_rooms = self._refusals.applied(self._checkpoint, limits_now(self._deployment))
        self._rooms = agree_on_rooms(self._checkpoint, self._wanted_rooms, begun=self._checkpoint.begun() is not None)
        a = self._agreed = self._with_topics()
        limits = agree_on_bounds(self._checkpoint, a.program, a.bounded, a.limits)
        if self._batch_end is None:
            self._folder = RunFolder.made(self._scratch)
        self._held_at = None
        begun = self._begun()
        starts = {
            source.id: "earliest" if source.id in begun else a.starting_offsets(source.id)
            for source in a.program.sources
            if source.id in a.source_addresses
        }
        self._ends = SourceEnds(a.program, a.bounded, limits)
        self._awaited = await_tables(a, self._checkpoint, self._state().open(), starts)
        self._folder.tell_ended(self._ends.ended)
        self._folder.tell_waiting(self._awaited.waiting)
        self._tell_ends()
        terms = Terms(layout=layout, readers=self._readers, limits=limits, rooms=self._rooms, redone=self._redone)
        spec = job_spec(a, self._checkpoint, terms, self._state(), self._folder.path)
        self._batch_end = BatchEnd(spec, self._heard)
        # The last step that may refuse: until then the checkpoint is that of the previous query.
        self._take_checkpoint(a.program)
        options = source_options(a, starts, self._reads(), self._folder)
        query = QueryBuilder(self._session, spec, options).start(
            self._batch_end,
            checkpoint=self._checkpoint.url,
            tick_ms=a.settings.batch.tick,
            trigger_ms=a.settings.batch.trigger,
            topics=topics_of_ticks(a),
            once=once,
        )
        self._query = RunningQuery.of(self._session, query)

    def _take_checkpoint(self, program: Program) -> None:
        """Make the checkpoint that of `program`."""
        changed = self.upgrade is not None and self.upgrade is not self._taken
        if changed or not self._checkpoint.taken():
            self._checkpoint.take(program.meaning, self._state().open())
        self._taken = None
        operators = [each.to_json() for each in kept_operators(program)]
        if self._checkpoint.read(OPERATORS) != operators:
            self._checkpoint.write(OPERATORS, operators)

    def finished(self) -> bool:
        """Check the progress. Return whether every source has ended and the last batch is done. Raises the error of a
        failed query."""
        running = self._query
        assert running is not None
        failure = running.query.exception()
        if failure is not None:
            ours = self._batch_end.failure if self._batch_end is not None else None
            raise ours or failure  # of an error of ours, Spark has kept only the text
        if self._redone is not None:
            self._go_on_when_redone(running)
            return False
        self._tell_ends()
        progress = running.reports.last()
        if progress is None:
            return False
        # The batch that had begun with another number of tasks or other record limits is done.
        as_begun = self._shards, self._readers, self._rooms
        wanted = self._wanted.shards, self._wanted_readers, self._wanted_rooms
        if as_begun != wanted:
            self.stop()
            self.start()
            return False
        self._go_on_when_read(progress)
        if self._deployment.ends is not None:
            return self._at_its_ends(self._deployment.ends, progress)
        if self._ends.note(progress):
            self._folder.tell_ended(self._ends.ended)
        return self._ends.all_ends_processed(progress)

    def _at_its_ends(self, ends: MovingEnds, progress: Report) -> bool:
        """Whether everything is read up to final ends, and no later batch has begun, which might write."""
        if self._held_at is None:
            sources = zip(self._deployment.program.sources, end_offsets(progress), strict=False)
            if ends.final({source.id: offsets or {} for source, offsets in sources}):
                self.hold()
                self._held_at = time.monotonic()
            return False
        # The status shows with a delay whether the query plans a batch.
        decided = time.monotonic() - self._held_at > STATUS_DELAY and not self.planning()
        return decided and not self.batch_begun()

    def _tell_ends(self) -> None:
        if self._deployment.ends is not None:
            self._folder.tell_ends(self._deployment.ends.now())

    def missing(self) -> tuple[int, int] | None:
        """Return the first and the last of the batches that an older copy of the checkpoint lacks, and that are
        repeated; None if the checkpoint is the newest."""
        return None if self._rolling is None else (self._rolling.missing.first, self._rolling.missing.last)

    def _plan_missing(self) -> bool:
        """Plan the next batch that the checkpoint lacks. Return whether it must run alone, since others follow it."""
        deployment = self._deployment
        if not self._looked:
            recovered_query(self._state().open())  # of a takeover that failed in this process
            # A query that is refused must change nothing.
            upgrade = self._checkpoint.agree(deployment.program.meaning)
            agree_on_kafka(self._checkpoint, deployment.kafka)  # markers of another topic would be meaningless
            self._rolling = roll_forward(deployment, self._state().open(), self._checkpoint)
            if upgrade is not None and upgrade.other_sources:
                self._take_sources(upgrade)
            self._looked = True
        self._redone, self._reported = None, False
        number = None if self._rolling is None else self._rolling.plan_next()
        if self._rolling is None or number is None or number == self._rolling.missing.last:
            return False
        self._redone = self._rolling.missing.digests.get(number, {})
        return True

    def _take_sources(self, upgrade: Upgrade) -> None:
        """Take the checkpoint over for a query with other sources. All later steps need the log in their order, so
        every check that may refuse the query comes first."""
        d = self._deployment
        if self._rolling is not None:
            raise StateMismatch(
                "the checkpoint is an older copy, and the query has other sources\n"
                "  hint:   run the old query until it has caught up with its markers, then change it"
            )
        agree_on_bounds(self._checkpoint, d.program, d.bounded, d.limits)
        agree_on_writers(self._checkpoint, d.writers, {output.id: output.table.name for output in d.program.outputs})
        self._checkpoint.take(d.program.meaning, self._state().open())
        self._taken = upgrade

    def _begun(self) -> set[int]:
        """The sources for which a batch was planned in this checkpoint."""
        files = self._state().open()
        planned = last(files, OFFSETS)
        stops = ends(files, planned) if planned >= 0 else []
        return {s.id for s, stop in zip(self._deployment.program.sources, stops, strict=False) if stop is not None}

    def _go_on_when_redone(self, query: RunningQuery) -> None:
        """Start the next batch when the repeated one is done, and its report was read."""
        if query.active():
            return
        if not self._reported:
            self._reported = True
            return
        self._query = None  # but the run continues: the next batch uses its writers and its shards
        self.start()

    def waiting(self) -> Mapping[str, tuple[str, ...]]:
        """Return the tables that are not read yet, each with the tables that it waits for."""
        return self._awaited.names

    def _reads(self) -> Mapping[int, int]:
        """The most records of each source in the next batch."""
        rows, waiting = 0 if self._held else self._pace.rows, self._awaited.waiting
        return {source: 0 if source in waiting else rows for source in self._deployment.source_addresses}

    def _go_on_when_read(self, progress: Report) -> None:
        """Release the sources whose awaited tables the last batch has read to their fixed offsets."""
        before = self._awaited.waiting
        if not before:
            return
        for source, offsets in zip(self._agreed.program.sources, end_offsets(progress), strict=False):
            if offsets and source.id in self._agreed.source_addresses:
                self._awaited.read(source.id, offsets)
        if self._awaited.waiting != before and self._query is not None:
            self._folder.tell_waiting(self._awaited.waiting)
            limit_reads(self._session, self._query.query, self._reads())

    def added_topics(self) -> Mapping[str, tuple[str, ...]]:
        """Return the topics that this start has added to those of the checkpoint, by table."""
        return self._topics.added

    def new_progress(self, after: int | None) -> list[Report]:
        """Return Spark's reports of the batches since batch `after`, oldest first."""
        return [] if self._query is None else self._query.reports.since(after)

    def records_of(self, batch: int) -> Mapping[str, float]:
        """Return how many records the tasks of a batch have read, by table; empty for a batch of another process."""
        return self._pace.records_of(batch)

    def sweep(self) -> None:
        """Sweep the checkpoint, if it is due."""
        self._sweeper.batch_done(self.last_batch())

    def _sweep_state(self, batch: int) -> None:
        if self._deployment.program.levels:
            sweep(self._state().open(), batch)

    def _remove_leftovers(self) -> None:
        """Remove what killed attempts of the next batch have left, where the lock keeps other drivers out. In an object
        store an older driver may still end that batch: there this is done when the batch is replanned."""
        if self._deployment.program.levels and excludes_others(self._checkpoint.url):
            files = self._state().open()
            remove_leftovers(files, last(files, COMMITS) + 1)

    def _note_ends(self, batch: int) -> None:
        newest = -1 if self._rolling is None else self._rolling.missing.last
        with suppress(KafkaFailure):  # the next start reads more
            note_ends(self._deployment, self._state().open(), newest)

    def keep_pace(self, batch: int, records: int, seconds: float) -> None:
        """Fit the next batches to one that took `records` of the largest table, and `seconds`."""
        if self._query is not None and self._pace.fit(batch, records, seconds) and not self._held:
            limit_reads(self._session, self._query.query, self._reads())

    def learn(self, refused: Mapping[str, Sequence[int]]) -> Mapping[str, int]:
        """Note the limits of topics from their refusals, for the next start. Return the topics with a new limit, and
        the bytes that their records or batches of records stay below from now on."""
        return self._refusals.learn(self._agreed, self._rooms, refused)

    def replan(self) -> Cut:
        """Replan the planned batch with half of its records; the query is stopped. Raises PlanKept if it must stay as
        it is, KafkaFailure."""
        return self._replanning().cut()

    def begun_in_vain(self) -> bool:
        """Note that this process is about to begin the planned batch. Return whether others have done so before, and
        none has finished it."""
        return self._replanning().begun_in_vain()

    def skipped_by_topic(self) -> list[tuple[str, str, int]]:
        """Return the tables, their topics, and the number of records skipped since the checkpoint was made."""
        return skipped_by_topic(self._checkpoint)

    def _replanning(self) -> Replanning:
        self._client = self._checkpoint.client_settings()
        return Replanning(self._deployment, self._state().open(), self._checkpoint)

    def _heard(self, report: BatchReport) -> None:
        self._pace.hear(report)
        self._hear(report)

    def in_batch(self) -> bool:
        """Return whether a batch is being computed."""
        return self._query is not None and self._query.in_batch()

    def hold(self) -> bool:
        """Plan no more batches until the next start: no table yields records, and no tick comes. Return whether every
        source can be held."""
        program = self._deployment.program
        if self._query is None or not self._query.active():
            return False
        if any(s.id not in self._deployment.source_addresses for s in program.sources):
            return False
        self._held = True
        self._folder.hold()
        limit_reads(self._session, self._query.query, self._reads())
        return True

    def clock_jumped(self) -> ClockJumped | None:
        """Return what is wrong with this machine's clock, None if nothing is."""
        try:
            believed_time(RunFolder.clock(self._scratch))
        except ClockJumped as jumped:
            return jumped
        return None

    def start_clock(self) -> StartClock:
        """Return what the checkpoint and the topics say of the clock of this machine."""
        return start_clock(self._deployment, self._state().open(), time.time())

    def planning(self) -> bool:
        """Return whether a batch may be planned now from ends that were read before the sources were held."""
        return self._query is not None and self._query.planning()

    def batch_begun(self) -> bool:
        """Return whether a batch is planned that is not done."""
        return self._checkpoint.begun() is not None

    @property
    def look_every(self) -> float:
        """Seconds to wait between two calls of `batch_begun`."""
        return LOOK_EVERY if urlparse(self._checkpoint.url).scheme in ("", "file") else LOOK_IN_STORE_EVERY

    def phase(self) -> Hashable | None:
        """Return the phase of the running batch and the number of its finished tasks, None between batches: a batch
        that does not change is stuck."""
        return None if self._query is None else self._query.phase()

    def active(self) -> bool:
        """Return whether the query runs."""
        return self._query is not None and self._query.active()

    def last_batch(self) -> int:
        """Return the last finished batch, -1 if there is none."""
        return -1 if self._query is None else self._query.reports.last_batch()

    def stop(self) -> None:
        """Stop the query; an interrupted batch is repeated by the next start."""
        if self._query is not None:
            self._query.query.stop()
            self._query = None
            self._folder.remove()
        self._batch_end = None

    def _with_topics(self) -> Deployment:
        """The deployment with the topics that patterns have matched, as far as they are read now."""
        a, planned, done = self._deployment, self._checkpoint.started(), self._checkpoint.last_done() >= 0
        self._topics = agree_on_topics(self._checkpoint, a.program, a.bounded, planned=planned, done=done)
        agreed = replace(a, program=self._topics.program)
        if done:
            for position, source in enumerate(agreed.program.sources):
                if source.table.connector.topic_pattern and source.id not in a.bounded:
                    add_starts(self._state().open(), position, agreed.first_offsets(source.id))
        return agreed

    def _layout(self) -> Layout:
        self.upgrade = self._checkpoint.agree(self._deployment.program.meaning) or self._taken
        self._wanted = Layout.of(self._deployment.partitions)
        self._shards = self._checkpoint.shards(self._wanted.shards)
        readers = self._wanted_readers
        self._readers = readers if self._deployment.program.levels else self._checkpoint.readers(readers)
        return Layout(self._shards)

    def _state(self) -> CheckpointAddress:
        settings = self._deployment.settings
        return CheckpointAddress(
            url=self._checkpoint.url,
            hadoop=self._client,
            scratch=str(self._scratch),
            cache_bytes=settings.state_cache << 20,
        )
