"""The data of the page, recorded while the service runs: each job's state, last batches, last hour, and errors."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from service.observability.page.batch import BatchRecord, Place, batch_of, passed, place_of
from service.observability.page.history import History, Level, Series
from service.observability.progress import Progress

RECENT = 300.0
"""Seconds of batches that averages and trends cover."""

MOST_BATCHES = 1_000
MOST_ERRORS = 5
LONGEST_ERROR = 20_000
"""The characters of an error that are kept, at its beginning and its end."""

MOST_SAMPLES = 10
"""The late rows and dead letters that the page shows, the newest."""

State = Literal["starting", "waiting", "running", "retrying", "failed", "finished", "stopping"]


@dataclass(frozen=True, slots=True)
class Failure:
    """An error: when, in seconds since the epoch, and all that is known of it. `attempt` counts attempts in a row, and
    `again_at` is when the next one is due; both are None if there is none."""

    at: float
    summary: str
    text: str
    attempt: int | None
    again_at: float | None


@dataclass(frozen=True, slots=True)
class ShownSample:
    """A record or row that went its own way: why, whence, and the beginning of what it holds."""

    at: float
    reason: str
    detail: str
    origin: str
    value: str
    whole: bool


@dataclass(slots=True)
class RecordedJob:
    """A job as it is recorded. `late` and `dead` are the last samples, newest last; `moved` is when a partition last
    had rows, `counted` are the counts of batches without a report yet."""

    name: str
    state: State
    since: float
    reason: str = ""
    batches: deque[BatchRecord] = field(default_factory=lambda: deque(maxlen=MOST_BATCHES))
    errors: deque[Failure] = field(default_factory=lambda: deque(maxlen=MOST_ERRORS))
    late: deque[ShownSample] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))
    dead: deque[ShownSample] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))
    history: History = field(default_factory=History)
    moved: dict[Place, float] = field(default_factory=dict)
    counted: dict[int, Mapping[str, float]] = field(default_factory=dict)


class Seen(NamedTuple):
    """The state of a job at one moment; `batches` are the recent ones, or the last one if none is recent."""

    name: str
    state: State
    since: float
    reason: str
    batches: tuple[BatchRecord, ...]
    errors: tuple[Failure, ...]
    late: tuple[ShownSample, ...]
    dead: tuple[ShownSample, ...]
    series: Series
    moved: Mapping[Place, float]


class Recorder:
    """The recorder of every event of the service, from any thread. `clock` returns the time in seconds since the
    epoch."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.began = clock()
        self._lock = threading.Lock()
        self._jobs: dict[str, RecordedJob] = {}

    def starting(self, query: str) -> None:
        """Note that the query will run."""
        with self._lock:
            self._turn(query, "starting")

    def waiting(self, query: str, reason: str) -> None:
        """Note that Kafka does not answer."""
        with self._lock:
            self._turn(query, "waiting", reason)

    def started(self, query: str) -> None:
        """Note that the query runs; the counts of an interrupted batch are counted again."""
        with self._lock:
            self._turn(query, "running").counted.clear()

    def counted(
        self, query: str, number: int, counts: Mapping[str, float], samples: Iterable[Mapping[str, Any]]
    ) -> None:
        """Note the counts of the tasks of batch `number`, before its report; samples are those of `formats.samples`."""
        now = self.clock()
        with self._lock:
            job = self._job(query)
            job.counted[number] = counts
            for sample in samples:
                kept = job.late if sample["late"] else job.dead
                kept.append(ShownSample(now, **{name: value for name, value in sample.items() if name != "late"}))

    def batch(self, query: str, progress: Progress, state_rows: float) -> None:
        """Note that a batch is done; the job has `state_rows` rows of state now."""
        with self._lock:
            job = self._job(query)
            batch = batch_of(progress, job.counted.pop(progress.batch, {}))
            job.counted = {number: counts for number, counts in job.counted.items() if number > progress.batch}
            before = job.batches[-1].ended if job.batches else 0.0
            job.batches.append(batch)
            while job.batches[0].ended < batch.ended - RECENT:
                job.batches.popleft()
            job.moved |= {place_of(read): batch.ended for read in progress.reads if passed(read)}
            level = Level(batch.waiting, round(state_rows))
            # The rows came since the previous batch, or since the start of the query if it was not running then.
            since = min(batch.began, max(before, job.since))
            job.history.add(since, batch.ended, progress.seconds, batch.rows, batch.written, level)

    def failed(self, query: str, summary: str, text: str, attempt: int, wait: float) -> None:
        """Note that the query failed, for the `attempt`-th time in a row, and is restarted in `wait` seconds."""
        now = self.clock()
        with self._lock:
            self._turn(query, "retrying", summary).errors.append(Failure(now, summary, _cut(text), attempt, now + wait))

    def gave_up(self, query: str, summary: str, text: str) -> None:
        """Note that the query failed and is not restarted."""
        with self._lock:
            job = self._turn(query, "failed", summary)
            job.errors.append(Failure(self.clock(), summary, _cut(text), None, None))

    def finished(self, query: str) -> None:
        """Note that every source of the query has ended."""
        with self._lock:
            self._turn(query, "finished")

    def stopping(self) -> None:
        """Note that the service ends."""
        with self._lock:
            for job in self._jobs.values():
                if job.state not in ("finished", "failed"):
                    self._turn(job.name, "stopping")

    def jobs(self) -> tuple[Seen, ...]:
        """Return every job as it is now."""
        now = self.clock()
        with self._lock:
            return tuple(_seen(job, now) for job in self._jobs.values())

    def _turn(self, query: str, state: State, reason: str = "") -> RecordedJob:
        job = self._job(query)
        if job.state != state:
            job.state, job.since = state, self.clock()
        job.reason = reason
        return job

    def _job(self, query: str) -> RecordedJob:
        return self._jobs.setdefault(query, RecordedJob(query, "starting", self.clock()))


def _seen(job: RecordedJob, now: float) -> Seen:
    return Seen(
        name=job.name,
        state=job.state,
        since=job.since,
        reason=job.reason,
        batches=tuple(batch for batch in job.batches if batch.ended > now - RECENT) or tuple(job.batches)[-1:],
        errors=tuple(job.errors),
        late=tuple(job.late),
        dead=tuple(job.dead),
        series=job.history.series(now),
        moved=dict(job.moved),
    )


def _cut(text: str) -> str:
    half = LONGEST_ERROR // 2
    return text if len(text) <= LONGEST_ERROR else f"{text[:half]}\n[...]\n{text[-half:]}"
