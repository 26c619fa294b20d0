"""One job on Spark from its checkpoint to its end: the specification for the workers, the query, its progress.

A start agrees with the checkpoint on the query (`takeover.py`), on what a batch keeps (`batch_terms.py`) and on topics
and bounds; then `job_specs.py` makes the specification. While the query runs, `source_flow.py` limits its reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from uuid import uuid4

from pyspark.sql import SparkSession

from service.checkpoint.address import CheckpointAddress
from service.checkpoint.batch_log import COMMITS, add_starts, last
from service.checkpoint.files import Files
from service.checkpoint.sweep import remove_leftovers, sweep
from service.checkpoint.sweeper import Sweeper
from service.deployment.awaited_tables import await_tables
from service.deployment.bounds import agree_on_bounds
from service.deployment.deployment import Deployment, MovingEnds
from service.deployment.matched_topics import MatchedTopics, agree_on_topics
from service.deployment.replanning import Cut, Replanning, skipped_by_topic
from service.deployment.rolling_forward import note_ends
from service.deployment.start_clock import StartClock, start_clock
from service.deployment.upgrading import meaning_of, recovered_query
from service.host.checkpoint_lock import excludes_others
from service.host.clock import ClockJumped, believed_time
from service.kafka.errors import KafkaFailure
from service.plan.program import Program
from service.plan.upgrade import Upgrade
from service.spark.query.batch_end import BatchEnd
from service.spark.query.query import QueryBuilder
from service.spark.query.run_folder import RunFolder
from service.spark.supervision.batch_pace import BatchPace
from service.spark.supervision.batch_terms import BatchTerms
from service.spark.supervision.checkpoint import Checkpoint
from service.spark.supervision.job_specs import Terms, job_spec
from service.spark.supervision.reports import Report, Reports, end_offsets
from service.spark.supervision.running_query import RunningQuery
from service.spark.supervision.source_ends import SourceEnds
from service.spark.supervision.source_flow import SourceFlow
from service.spark.supervision.source_reads import source_options, starting_offsets, topics_of_ticks
from service.spark.supervision.takeover import Takeover

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
        receive: Callable[[BatchReport], None],
    ) -> None:
        """`receive` is called with what the tasks of each batch have counted."""
        self._session = session
        self._deployment = self._agreed = deployment
        self._topics = MatchedTopics(deployment.program)
        self._checkpoint = Checkpoint(session, deployment.checkpoint)
        self._scratch = scratch
        self._process = uuid4().hex
        self._receive = receive
        self._client: Mapping[str, str] = {}
        self._takeover = Takeover(deployment, self._checkpoint, self._files)
        self._terms = BatchTerms(self._checkpoint, deployment.partitions)
        self._pace = BatchPace(sum(deployment.record_bytes.values()))
        self._sweeper = Sweeper(self._sweep_state, self._note_ends)
        self._ends = SourceEnds(deployment.program, deployment.bounded, {})
        self._folder = RunFolder(scratch / "none")  # until the first start: a stop removes it
        self._flow: SourceFlow | None = None
        self._batch_end: BatchEnd | None = None
        self._query: RunningQuery | None = None
        self._reports: Reports | None = None
        self._alone = False
        self._reported = False
        self._held_at: float | None = None
        self._done_before = -1

    @property
    def program(self) -> Program:
        """The program, with the source ids of the checkpoint once the runner is open."""
        return self._deployment.program

    @property
    def upgrade(self) -> Upgrade | None:
        """What happens to the state of the checkpoint, None if it has this query already."""
        return self._takeover.upgrade

    def open(self) -> None:
        """Open the checkpoint in the state in which the last takeover has left it. Must be called first."""
        self._client = self._checkpoint.client_settings()
        before = meaning_of(recovered_query(self._files()))
        if before is not None:
            self._deployment = self._agreed = self._deployment.going_on(before)
            self._takeover = Takeover(self._deployment, self._checkpoint, self._files)

    def start(self) -> None:
        """Start the query, or restart it after a failure. If this raises, `stop` removes what the start has made."""
        self._client = self._checkpoint.client_settings()
        self._reported = False
        redoes = self._takeover.plan_missing()
        self._remove_leftovers()
        self._takeover.agree()
        self._terms.agree(self._deployment)
        self._pace.begin(self._deployment, self._checkpoint)
        a = self._agreed = self._with_topics()
        limits = agree_on_bounds(self._checkpoint, a.program, a.bounded, a.limits)
        if self._batch_end is None:
            self._folder = RunFolder.made(self._scratch)
        self._held_at = None
        starts = starting_offsets(a, self._files())
        self._ends = SourceEnds(a.program, a.bounded, limits)
        awaited = await_tables(a, self._checkpoint, self._files(), starts)
        self._flow = SourceFlow(self._session, a, pace=self._pace, awaited=awaited, folder=self._folder)
        self._folder.write_ended(self._ends.ended)
        self._folder.write_waiting(awaited.waiting)
        self._write_ends()
        terms = Terms(
            layout=self._terms.layout,
            readers=self._terms.readers,
            limits=limits,
            rooms=self._terms.rooms,
            redone=self._takeover.redone,
        )
        # Other terms wait for the batch that has begun: one more with its terms would keep them waiting.
        self._alone = redoes or self._terms.outdated
        spec = job_spec(a, self._checkpoint, terms, self._address(), self._folder.path)
        self._batch_end = BatchEnd(spec, self._received)
        # The last step that may refuse: until then the checkpoint is that of the previous query.
        self._takeover.take(a.program)
        options = source_options(a, starts, self._flow.limits(), self._folder)
        self._done_before = self._checkpoint.last_done()
        query = QueryBuilder(self._session, spec, options).start(
            self._batch_end,
            checkpoint=self._checkpoint.url,
            tick_ms=a.settings.batch.tick,
            trigger_ms=a.settings.batch.trigger,
            topics=topics_of_ticks(a),
            once=self._alone,
        )
        self._query = RunningQuery.of(self._session, query)
        self._reports = self._query.reports

    def finished(self) -> bool:
        """Check the progress. Return whether every source has ended and the last batch is done. Raises the error of a
        failed query."""
        running = self._query
        assert running is not None
        failure = running.query.exception()
        if failure is not None:
            ours = self._batch_end.failure if self._batch_end is not None else None
            raise ours or failure  # of an error of ours, Spark has kept only the text
        if self._alone:
            self._go_on_when_done(running)
            return False
        self._write_ends()
        progress = running.reports.last()
        if progress is None:
            return False
        if self._flow is not None:
            self._flow.release(running.query, progress)
        if self._deployment.ends is not None:
            return self._at_its_ends(self._deployment.ends, progress)
        if self._ends.note(progress):
            self._folder.write_ended(self._ends.ended)
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

    def _write_ends(self) -> None:
        if self._deployment.ends is not None:
            self._folder.write_ends(self._deployment.ends.now())

    def missing(self) -> tuple[int, int] | None:
        """Return the first and the last of the batches that an older copy of the checkpoint lacks, and that are
        repeated; None if the checkpoint is the newest."""
        missing = self._takeover.missing
        return None if missing is None else (missing.first, missing.last)

    def _go_on_when_done(self, query: RunningQuery) -> None:
        """Start the next batch when the one that runs alone is done, and its report was read."""
        if query.active():
            return
        if not self._reported:
            self._reported = True
            return
        if self._takeover.redone is None:
            self.stop()  # the next batch has other tasks, or other limits
        self._query = None  # of repeated batches the run continues: the next one uses its writers and its shards
        self.start()

    def waiting(self) -> Mapping[str, tuple[str, ...]]:
        """Return the tables that are not read yet, each with the tables that it waits for."""
        return {} if self._flow is None else self._flow.waiting()

    def added_topics(self) -> Mapping[str, tuple[str, ...]]:
        """Return the topics that this start has added to those of the checkpoint, by table."""
        return self._topics.added

    def waiting_topics(self) -> Mapping[str, tuple[str, ...]]:
        """Return the new topics that this start does not read, since the first batch is not done, by table."""
        return self._topics.waiting

    def new_progress(self, after: int | None) -> list[Report]:
        """Return Spark's reports of the batches since batch `after`, oldest first; those of a stopped query, too, until
        the next start."""
        return [] if self._reports is None else self._reports.since(after)

    def records_of(self, batch: int) -> Mapping[str, float]:
        """Return how many records the tasks of a batch have read, by table; empty for a batch of another process."""
        return self._pace.records_of(batch)

    def sweep(self) -> None:
        """Sweep the checkpoint, if it is due."""
        self._sweeper.batch_done(self.last_batch())

    def _sweep_state(self, batch: int) -> None:
        if self._deployment.program.levels:
            sweep(self._files(), batch)

    def _remove_leftovers(self) -> None:
        """Remove what killed attempts of the next batch have left, where the lock keeps other drivers out. In an object
        store an older driver may still end that batch: there this is done when the batch is replanned, or by
        `remove_leftovers`."""
        if self._deployment.program.levels and excludes_others(self._checkpoint.url):
            files = self._files()
            remove_leftovers(files, last(files, COMMITS) + 1)

    def _note_ends(self, batch: int) -> None:
        missing = self._takeover.missing
        newest = -1 if missing is None else missing.last
        with suppress(KafkaFailure):  # the next start reads more
            note_ends(self._deployment, self._files(), newest)

    def keep_pace(self, batch: int, records: int, seconds: float) -> None:
        """Fit the next batches to one that took `records` of the largest table, and `seconds`."""
        if self._query is not None and self._flow is not None:
            self._flow.fit(self._query.query, batch, records, seconds)

    def learn(self, refused: Mapping[str, Sequence[int]]) -> Mapping[str, int]:
        """Note the limits of topics from their refusals, for the next start. Return the topics with a new limit, and
        the bytes that their records or batches of records stay below from now on."""
        return self._terms.learn(self._agreed, refused)

    def replan(self) -> Cut:
        """Replan the planned batch with half of its records; the query is stopped. Raises PlanKept if it must stay as
        it is, KafkaFailure."""
        return self._replanning().cut()

    def begun_in_vain(self) -> bool:
        """Note that this process is about to begin the planned batch. Return whether others have done so before, and
        none has finished it."""
        return self._replanning().begun_in_vain()

    def remove_leftovers(self) -> None:
        """Remove what other processes have left of a batch that they have begun in vain, and that is not replanned. It
        is called between `begun_in_vain` and the first start."""
        if not excludes_others(self._checkpoint.url):  # else each start does it
            with suppress(KafkaFailure, OSError):  # the next process tries again
                self._replanning().remove_leftovers()

    def skipped_by_topic(self) -> list[tuple[str, str, int]]:
        """Return the tables, their topics, and the number of records skipped since the checkpoint was made."""
        return skipped_by_topic(self._checkpoint)

    def _replanning(self) -> Replanning:
        self._client = self._checkpoint.client_settings()
        return Replanning(self._deployment, self._files(), self._checkpoint, self._process)

    def _received(self, report: BatchReport) -> None:
        self._pace.note(report)
        self._receive(report)

    def in_batch(self) -> bool:
        """Return whether a batch is being computed."""
        return self._query is not None and self._query.in_batch()

    def hold(self) -> bool:
        """Plan no more batches until the next start: no table yields records, and no tick comes. Return whether every
        source can be held."""
        if self._query is None or self._flow is None or not self._query.active():
            return False
        return self._flow.hold(self._query.query)

    def clock_jumped(self) -> ClockJumped | None:
        """Return what is wrong with this machine's clock, None if nothing is."""
        try:
            believed_time(RunFolder.clock(self._scratch))
        except ClockJumped as jumped:
            return jumped
        return None

    def start_clock(self) -> StartClock:
        """Return what the checkpoint and the topics say of the clock of this machine."""
        return start_clock(self._deployment, self._files(), time.time())

    def planning(self) -> bool:
        """Return whether a batch may be planned now from ends that were read before the sources were held."""
        return self._query is not None and self._query.planning()

    def batch_begun(self) -> bool:
        """Return whether a batch is planned that is not done."""
        return self._checkpoint.begun() is not None

    def unreported(self) -> bool:
        """Return whether a batch of this start is done whose report has not arrived: Spark makes it a moment after its
        log says that the batch is done."""
        done = self._checkpoint.last_done()
        return self._done_before < done and self.last_batch() < done

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
        """Stop the query, or clear up after a start that has failed; an interrupted batch is repeated by the next
        start."""
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
                    add_starts(self._files(), position, agreed.first_offsets(source.id))
        return agreed

    def _files(self) -> Files:
        return self._address().open()

    def _address(self) -> CheckpointAddress:
        settings = self._deployment.settings
        return CheckpointAddress(
            url=self._checkpoint.url,
            hadoop=self._client,
            scratch=str(self._scratch),
            cache_bytes=settings.state_cache << 20,
        )
