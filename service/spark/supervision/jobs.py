"""All jobs of a pipeline in one Spark session: started together, watched, restarted when a batch fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from service.deployment.deployment import Deployment
from service.deployment.end_offsets import EndOffsets
from service.deployment.group_offsets import GroupOffsets
from service.deployment.replanning import PlanKept
from service.exit_codes import FAILED, OK, WRONG
from service.host.clock import ClockJumped
from service.kafka.errors import KafkaFailure, MessageTooLarge
from service.observability.observer import Observer
from service.observability.progress import progress_of
from service.plan.upgrade import Fate
from service.runtime.shard_operators import StateMismatch
from service.settings import LONGEST_BACKOFF, Settings
from service.spark.driver.jvm import Jvm
from service.spark.driver.jvm_exit import EXITED, NO_JVM, has_exited
from service.spark.driver.session import build
from service.spark.internals.failures import Ended, SparkFailure, failure_of, without_notes
from service.spark.query.attempts import FINAL
from service.spark.supervision.driver_metrics import DriverMetrics
from service.spark.supervision.executors import Executors
from service.spark.supervision.failure_classes import is_misconfigured, is_of_memory, is_patient
from service.spark.supervision.runner import JobRunner

PHASE_EVERY = 2.0
"""Seconds between two checks of a batch's phase."""

STATUS_DELAY = 0.1
"""Seconds after which the status of a held query shows whether it plans a batch: between two of its steps it shows
neither."""


class _Watched:
    def __init__(self, runner: JobRunner, deployment: Deployment, observer: Observer) -> None:
        self.runner = runner
        self.deployment = deployment
        self.name = deployment.program.name
        self.read = GroupOffsets(deployment)
        self.ends = EndOffsets(deployment, partial(observer.ends, self.name))
        self.failures = 0
        self.start_at: float | None = 0.0
        self.done = False
        self.code = OK
        self.look_at = 0.0
        self.last_batch: int | None = None
        self.begun = False
        self.waiting: Mapping[str, tuple[str, ...]] = {}


class Jobs:
    """The queries of one service."""

    def __init__(
        self,
        jvm: Jvm,
        spark: Mapping[str, str],
        deployments: Sequence[Deployment],
        settings: Settings,
        scratch: Path,
        observer: Observer,
    ) -> None:
        """`spark` are the settings that `jvm` was started with."""
        self._settings = settings
        self._observer = observer
        self._jvm = jvm
        self._session = build(
            jvm,
            spark,
            name=deployments[0].program.name,
            partitions=deployments[0].partitions,
        )
        self._watched = [
            _Watched(
                JobRunner(
                    self._session,
                    deployment,
                    scratch,
                    self._receiver(deployment.program.name),
                ),
                deployment,
                observer,
            )
            for deployment in deployments
        ]
        self._driver_metrics = DriverMetrics(self._session, observer.metrics, scratch)
        self._executors = Executors(self._session, observer)

    def look(self) -> int | None:
        """Check every query once, and start those that wait. Return the exit code when nothing is left to do, else
        None."""
        with suppress(*NO_JVM):  # that the JVM has ended shows in the queries
            self._driver_metrics.look()
            self._executors.look()
        for job in self._watched:
            try:
                self._attend(job)
            except Exception as error:
                if self._jvm_gone(error):
                    self._observer.gave_up(job.name, EXITED)
                    return FAILED
                self._failed(job, error)
        return self._verdict()

    def _verdict(self) -> int | None:
        """The exit code once no job runs any more: a job that gives up does not end the others."""
        if not all(job.done for job in self._watched):
            return None
        codes = {job.code for job in self._watched}
        return next((code for code in (FAILED, WRONG) if code in codes), OK)

    def close(self, grace: float) -> None:
        """Stop all jobs: a running batch may finish within `grace` seconds; an interrupted one is repeated by the next
        start."""
        deadline = time.monotonic() + grace
        for job in self._watched:
            job.ends.close()
        for job in self._watched:
            for step in (partial(self._let_finish, job, deadline), partial(self._note, job), job.runner.stop):
                with suppress(*NO_JVM):  # whatever fails in one job, the others must be stopped
                    step()
        for job in self._watched:
            job.read.close()  # after the last batch, so that its offsets are committed, too
        if not self._jvm_gone():
            stopping = threading.Thread(target=self._session.stop, daemon=True)
            stopping.start()
            stopping.join(max(5.0, deadline - time.monotonic()))

    def _attend(self, job: _Watched) -> None:
        if job.done:
            return
        if job.start_at is not None:
            if time.monotonic() >= job.start_at:
                self._begin(job)
                job.runner.start()
                job.start_at = None
                self._observer.started(job.name)
                for table, topics in job.runner.added_topics().items():
                    self._observer.topics_added(job.name, table, topics)
                for table, topics in job.runner.waiting_topics().items():
                    self._observer.topics_wait(job.name, table, topics)
                self._report_upgrade(job)
                self._report_waiting(job)
                missing = job.runner.missing()
                if missing is not None:
                    self._observer.rolls_forward(job.name, *missing)
            return
        finished = job.runner.finished()
        self._note(job)
        self._report_waiting(job)
        if time.monotonic() >= job.look_at:
            job.look_at = time.monotonic() + PHASE_EVERY
            self._observer.at(job.name, job.runner.phase())
        if finished:
            job.runner.stop()
            job.done = True
            job.ends.close()
            self._observer.finished(job.name)

    def _report_upgrade(self, job: _Watched) -> None:
        upgrade = job.runner.upgrade
        if upgrade is not None:
            kept, gone = upgrade.of(Fate.KEPT), upgrade.of(Fate.GONE)
            self._observer.upgraded(job.name, len(kept), gone, upgrade.notes)

    def _report_waiting(self, job: _Watched) -> None:
        waiting = job.runner.waiting()
        for table in dict.fromkeys([*job.waiting, *waiting]):
            if job.waiting.get(table) != waiting.get(table):
                self._observer.reads_first(job.name, table, waiting.get(table, ()))
        job.waiting = waiting

    def _begin(self, job: _Watched) -> None:
        """Before the first start in this process: handle what earlier processes have left."""
        if job.begun:
            return
        job.runner.open()
        job.begun = True
        clock = job.runner.start_clock()
        self._observer.start_clock(job.name, clock.ahead, clock.doubt, clock.hint)
        if job.runner.begun_in_vain() and not self._replan(job):
            job.runner.remove_leftovers()
        for source, topic, records in job.runner.skipped_by_topic():
            self._observer.skipped(job.name, source, topic, records)

    def _replan(self, job: _Watched) -> bool:
        """Replan the planned batch, smaller. Return whether that was possible."""
        try:
            cut = job.runner.replan()
        except (PlanKept, KafkaFailure) as error:
            self._observer.kept_plan(job.name, str(error))
            return False
        self._observer.replanned(job.name, cut.number, cut.before, cut.rows)
        return True

    def _let_finish(self, job: _Watched, deadline: float) -> None:
        """Wait for the end of the planned batch, and keep others from being planned: then another query may continue
        with the checkpoint. If a source cannot be held, the next batch has hardly begun by then."""
        last = job.runner.last_batch()
        held = job.runner.hold()
        if held:
            time.sleep(STATUS_DELAY)
            while job.runner.active() and time.monotonic() < deadline and job.runner.planning():
                time.sleep(0.02)  # the ends of its topics may take long to arrive
        while job.runner.active() and time.monotonic() < deadline:
            with suppress(Py4JJavaError):  # a store that does not answer now may do so at the next look
                busy = job.runner.batch_begun() if held else job.runner.in_batch() and job.runner.last_batch() == last
                if not busy and not job.runner.unreported():
                    return
            time.sleep(min(job.runner.look_every, max(0.0, deadline - time.monotonic())))

    def _note(self, job: _Watched) -> None:
        for report in job.runner.new_progress(job.last_batch):
            progress = progress_of(job.runner.program, report, job.runner.records_of(report["batchId"]))
            job.last_batch = progress.batch
            job.runner.keep_pace(progress.batch, max(progress.rows, default=0), progress.seconds)
            job.failures = 0
            job.read.batch(progress)
            self._observer.batch(job.name, progress)
            job.runner.sweep()

    def _failed(self, job: _Watched, error: Exception) -> None:
        """Note a failure, and restart the job, or give it up if another attempt cannot help."""
        failure = failure_of(error)
        cause = error
        if not failure.raised(*FINAL) and not self._jvm_gone(error) and (jumped := job.runner.clock_jumped()):
            # A broker refuses records from the future, so the clock may be the cause of any failure.
            cause, failure = jumped, failure_of(jumped)
        reason = summary(cause)
        for step in (job.runner.stop, partial(self._note, job)):  # batches that were done before the failure count
            with suppress(*NO_JVM):  # the end of the JVM is noticed at the next check
                step()
        patient = is_patient(failure)
        untimely = failure.raised(ClockJumped)
        smaller = is_of_memory(failure) and not self._jvm_gone(error) and self._replan(job)
        learned = self._learned(job, failure)
        job.failures += 0 if patient or untimely or smaller or learned else 1
        if failure.raised(*FINAL) or job.failures > self._settings.retry.attempts:
            job.done, job.start_at = True, None
            job.code = WRONG if is_misconfigured(failure) else FAILED
            job.ends.close()
            alone = all(other.done for other in self._watched)
            self._observer.gave_up(job.name, reason, full(error), alone=alone)
            return
        wait = min(self._settings.retry.backoff / 1000 * 2 ** max(0, job.failures - 1), LONGEST_BACKOFF)
        wait = LONGEST_BACKOFF if untimely else wait
        job.start_at = time.monotonic() + wait
        if patient:
            self._observer.waiting(job.name, reason)
        else:
            self._observer.failed(job.name, reason, job.failures, wait, full(error))

    def _learned(self, job: _Watched, failure: SparkFailure) -> bool:
        """Whether the failure has shown a limit of a topic: then the next attempt may succeed, and the number of such
        attempts is bounded."""
        if not failure.raised(MessageTooLarge):
            return False
        learned = job.runner.learn(failure.for_driver or {})
        for topic, size in learned.items():
            self._observer.learned(job.name, topic, size)
        return bool(learned)

    def _jvm_gone(self, error: Exception | None = None) -> bool:
        return has_exited(self._jvm, error)

    def _receiver(self, name: str) -> Any:
        return lambda report: self._observer.counted(name, report)


def summary(error: Exception) -> str:
    """Return what a person needs to know of a failure. Of one that Spark reports these are the exception and where it
    was raised, without the frames of Spark and without its plan."""
    if isinstance(error, KafkaFailure | StateMismatch):
        return str(error)
    text = without_notes(str(error))
    if failure_of(error).ended is Ended.EXECUTOR:
        return "executors ended repeatedly in the middle of the batch\n  hint:   see their logs"
    body = text.partition("=== Streaming Query ===")[0].partition("SQLSTATE:")[0].rstrip()
    lines = body.splitlines()
    if lines and lines[0].startswith("An error occurred while calling"):  # py4j's words for an exception of the JVM
        thrown = [line for line in lines[1:] if line.startswith((": ", "Caused by: "))]
        causes = dict.fromkeys(line.partition(": ")[2] for line in thrown[:1] + thrown[-1:])
        return "\n  caused by: ".join(causes) or lines[0]
    raised = [i for i, line in enumerate(lines) if line and not line.startswith((" ", "\t")) and i > 0]
    if not raised or "Traceback" not in body:
        return lines[0] if lines else text
    last = raised[-1]
    frames = [line.strip() for line in lines[:last] if line.startswith("  File ")]
    return "\n".join([*lines[last:], *(f"  raised at: {frame}" for frame in frames[-1:])])


def full(error: Exception) -> str:
    """Return all that is known of a failure except Spark's plan, which contains the specification sent to the
    workers."""
    return f"{type(error).__name__}: {without_notes(str(error)).partition('=== Streaming Query ===')[0].rstrip()}"
