"""`tailrace run`: every job of a pipeline, from the start to its end or to SIGTERM."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from service.archives import ensure
from service.archives import load as load_archives
from service.deployment.deployment import Deployment, checkpoint_of
from service.deployment.planning import plan_deployment
from service.exit_codes import FAILED, WRONG
from service.host.checkpoint_lock import CheckpointInUse, CheckpointLock
from service.host.clock import in_words
from service.host.clock_watch import clock_watched, end_at_once
from service.host.machine import MachineError
from service.host.scratch import scratch
from service.kafka.errors import KafkaConfigError, KafkaFailure
from service.observability.health import Health
from service.observability.http_server import HttpServer
from service.observability.metrics import Metrics
from service.observability.metrics.series import announce, announce_topics
from service.observability.observer import Observer
from service.observability.page.answers import answers
from service.observability.page.settings_shown import secrets_of
from service.observability.redaction import Redaction
from service.plan.explain import explain
from service.plan.lowering.lower import compile_job
from service.plan.nodes import Job
from service.plan.program import Program
from service.settings import LONGEST_BACKOFF, ConfigError, Settings, load
from service.spark.driver import object_store
from service.spark.driver.class_path import spark_home
from service.spark.driver.configuration import configured
from service.spark.driver.java_classes import own_classes
from service.spark.driver.jvm import Jvm, JvmFailed, temporary_folder
from service.spark.driver.reaper import adopt
from service.spark.driver.worker_sockets import worker_sockets

LOOK_EVERY = 0.1
"""Seconds between two checks of the queries."""


class Service:
    """The run of a pipeline: its jobs in one Spark session. `plan` plans how a program runs, and `place` returns the
    place of its checkpoint."""

    def __init__(
        self,
        programs: tuple[Program, ...],
        settings: Settings,
        observer: Observer,
        *,
        plan: Callable[[Program, Settings], Deployment] = plan_deployment,
        place: Callable[[Program, Settings], str] = checkpoint_of,
    ) -> None:
        self._programs = programs
        self._settings = settings
        self._observer = observer
        self._plan = plan
        self._place = place
        self._stop = threading.Event()

    def stop(self) -> None:
        """Ask for an orderly end: no new batch, the running one may finish."""
        self._stop.set()

    def run(self) -> int:
        """Run until every job has ended (0), until `stop` (0), or until one has failed too often (1; 2 if its
        configuration is wrong). A clock that is set back ends the process (1)."""
        self._on_signals()
        with ExitStack() as locks:
            for program in self._programs:
                locks.enter_context(CheckpointLock(self._place(program, self._settings)))
            with clock_watched(self._end_at_once):
                return self._run()

    def _end_at_once(self, set_back: float) -> None:
        """End this process; the JVM, its workers and the writers end after it."""
        end_at_once(FAILED, lambda: self._observer.clock_set_back(in_words(set_back)))

    def _run(self) -> int:
        self._announce()
        folder = Path(self._settings.archives) if self._settings.archives else None
        jars = list(ensure(load_archives("spark"), folder))
        jars.append(own_classes(jars, spark_home() / "jars"))
        lists = object_store.archives(self._settings.checkpoint)
        clients = [jar for name in lists for jar in ensure(load_archives(name), folder)]
        settings = configured(self._settings.spark, jars, self._settings.checkpoint, clients)
        adopt()
        with scratch(self._settings.scratch) as folder_of_run:
            spark = {**worker_sockets(temporary_folder(folder_of_run)), **settings}
            # Before Kafka is queried: the JVM takes some seconds to start.
            jvm = Jvm(spark, jars, folder_of_run, self._observer.jvm_says, clients)
            try:
                return self._run_in(jvm, spark, folder_of_run)
            finally:
                jvm.close()

    def _run_in(self, jvm: Jvm, spark: Mapping[str, str], folder: Path) -> int:
        deployments = [a for a in map(self._assigned, self._programs) if a is not None]
        if self._stop.is_set():
            return 0
        for assignment in deployments:
            announce_topics(self._observer.metrics, assignment.program)
            for table in {s.table.name: s.table for s in assignment.program.sources}.values():
                if table.connector.topic_pattern:
                    topics = ", ".join(table.connector.topics)
                    self._observer.say(
                        "info", "topics match", query=assignment.program.name, table=table.name, topics=topics
                    )
            if assignment.compacted:
                self._observer.say(
                    "warning",
                    "a compacted topic may lose records before a batch that is cut short is read again",
                    query=assignment.program.name,
                    topics=", ".join(assignment.compacted),
                    hint="set min.compaction.lag.ms of the topic to the longest outage that is expected",
                )
        from service.spark.driver.jvm_exit import exit_noticed
        from service.spark.supervision.jobs import Jobs

        with exit_noticed(jvm):
            jobs = Jobs(jvm, spark, deployments, self._settings, folder, self._observer)
        try:
            return self._watch(jobs)
        finally:
            self._observer.stopping()
            jobs.close(self._settings.retry.grace / 1000)

    def _announce(self) -> None:
        topics, batch = self._settings.topics, self._settings.batch
        for program in self._programs:
            announce(
                self._observer.metrics,
                program,
                dead_letter_topic=topics.dead_letter,
                trigger=batch.trigger / 1000,
                tick=batch.tick / 1000,
            )
        self._observer.starting([p.name for p in self._programs])

    def _assigned(self, program: Program) -> Deployment | None:
        """Wait for Kafka without a limit; return None after `stop`. Wrong configuration ends the start at once."""
        wait = self._settings.retry.backoff / 1000
        while not self._stop.is_set():
            try:
                return self._plan(program, self._settings)
            except KafkaConfigError:
                raise
            except KafkaFailure as failure:
                if not failure.retriable:
                    raise
                self._observer.waiting(program.name, str(failure))
                self._stop.wait(wait)
                wait = min(2 * wait, LONGEST_BACKOFF)
        return None

    def _watch(self, jobs: Any) -> int:
        while not self._stop.is_set():
            verdict = jobs.look()
            if verdict is not None:
                return int(verdict)
            time.sleep(LOOK_EVERY)
        return 0

    def _on_signals(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.stop())


def run_jobs(jobs: Sequence[Job], secrets: Iterable[str] = ()) -> int:
    """Run the jobs of a pipeline with the environment's settings; 0 = done, 1 = a failure, 2 = wrong configuration.

    `secrets` are kept out of all output, as those of the settings and of tables are.
    """
    try:
        settings = load()
        programs = tuple(compile_job(job, late_rows=bool(settings.topics.late)) for job in jobs)
        redaction = Redaction([*secrets_of(settings, programs), *secrets])
        observer = observer_for(settings, redaction)
        port = settings.http.port
        server = http_server(jobs, programs, settings, observer, redaction, port) if port else None
    except ConfigError as error:
        return _refused(*error.mistakes)
    except OSError as error:
        return _refused(f"the HTTP server cannot listen on port {settings.http.port}: {error.strerror or error}")
    try:
        return Service(programs, settings, observer).run()
    except (KafkaConfigError, MachineError) as error:
        return _refused(redaction.text(str(error)))
    except (KafkaFailure, CheckpointInUse, JvmFailed) as error:
        print(redaction.text(str(error)), file=sys.stderr)
        return FAILED
    finally:
        if server is not None:
            server.close()


def http_server(
    jobs: Sequence[Job],
    programs: tuple[Program, ...],
    settings: Settings,
    observer: Observer,
    redaction: Redaction,
    port: int,
) -> HttpServer:
    """Serve probes, metrics and the status page of `jobs` on `port`, 0 for any free one.

    Raises OSError if the port is taken.
    """
    plans = [explain(job, late_rows=bool(settings.topics.late)) for job in jobs]
    page = answers(observer.recorder, observer.metrics, observer.health, settings, programs, plans, redaction)
    return HttpServer(settings.http.host, port, observer.health, observer.metrics.registry, page)


def observer_for(settings: Settings, redaction: Redaction, *, quiet: bool = False) -> Observer:
    """Return the observer for these settings; a quiet one reports only warnings and errors. `redaction` hides the
    secrets."""
    form = settings.log_format if settings.log_format != "auto" else "text" if sys.stderr.isatty() else "json"
    return Observer(
        Health(settings.retry.stall_timeout / 1000), Metrics(), "trouble" if quiet else form, redaction=redaction
    )


def _refused(*sentences: str) -> int:
    for sentence in sentences:
        print(sentence, file=sys.stderr)
    return WRONG
