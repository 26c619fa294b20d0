"""The document behind the page, `/status.json`: what a script may read. docs/status.md describes it for its readers.

Times are seconds since the epoch, lengths of time are in seconds, rates are per second over the last five minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from service.observability.page.history import Series
from service.observability.page.recorder import Failure, ShownSample, State
from service.plan.explain import Explained

SCHEMA = 1
"""Grows when a field goes or changes its meaning; a new field does not change it."""

Grade = Literal["good", "note", "watch", "trouble"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth knowing, in a sentence, and what to do about it."""

    grade: Grade
    about: str
    text: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """The state of a job, in a few words, and its reasons: findings, troubles first."""

    grade: Grade
    headline: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Partition:
    """A Kafka partition. `lag` counts offsets that are not read yet. `watermark` is None until it asserted one, `moved`
    until it had rows since the start of the service."""

    topic: str
    partition: int
    read: int
    end: int
    lag: int
    rows_per_second: float
    watermark: float | None
    idle: bool
    moved: float | None


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A table that is read. `idle_timeout_seconds` is 0 where none is set."""

    table: str
    connector: str
    format: str
    topics: tuple[str, ...]
    has_watermark: bool
    idle_timeout_seconds: float
    rows: int
    rows_per_second: float
    lag: int
    decode_errors: int
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """A table that is written: changes since the start of the service, and the records that they became."""

    table: str
    connector: str
    format: str
    topics: tuple[str, ...]
    inserts: int
    retractions: int
    records: int


@dataclass(frozen=True, slots=True)
class OperatorStatus:
    """An operator, by the name that metrics have for it, and the id of its step (None: the net changes of a sink)."""

    operator: str
    step: int | None
    level: int
    watermark: float | None
    watermark_lag_seconds: float | None
    state_rows: int | None
    state_bytes: int | None
    late: int
    uncomputed: int
    dropped_retractions: int


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of the batches: mean seconds a batch, and its share of the whole."""

    phase: str
    seconds: float
    share: float


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches of the last five minutes, and how many there were in all. `busy` is the share of the time in which a
    batch ran; `full`: the last one took as many rows of a table as it may, `most_rows`. `phases` are the driver's and
    make up a batch; `tasks` happen within its computing, side by side."""

    completed: int
    failed: int
    recent: int
    number: int | None
    ended: float | None
    last_seconds: float | None
    last_rows: int | None
    median_seconds: float | None
    slowest_seconds: float | None
    busy: float | None
    trigger_seconds: float
    tick_seconds: float
    most_rows: int
    full: bool
    phases: tuple[Phase, ...]
    tasks: tuple[Phase, ...]


@dataclass(frozen=True, slots=True)
class BatchSizingStatus:
    """Rows that come and go, a second. `waiting` were to be read when the last batch began, and it left `left` of them;
    `trend` is by how many those that wait become more each second, None while too little is known. `lag` counts what
    has come since, too, so a job that keeps up has some."""

    rows_in: float
    rows_out: float
    waiting: int
    left: int
    lag: int
    trend: float | None


@dataclass(frozen=True, slots=True)
class SetAside:
    """Rows or records that went their own way since the start of the service: how many, by reason or operator; where
    they are sent (empty: they are only counted); the last few, newest last."""

    total: int
    counts: Mapping[str, int]
    topic: str
    samples: tuple[ShownSample, ...]


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job of the pipeline."""

    name: str
    state: State
    since: float
    reason: str
    verdict: Summary
    pace: BatchSizingStatus
    batches: Batches
    tables: tuple[TableStatus, ...]
    operators: tuple[OperatorStatus, ...]
    sinks: tuple[SinkStatus, ...]
    late: SetAside
    dead_letters: SetAside
    errors: tuple[Failure, ...]
    history: Series
    plan: Explained


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting by the name of its variable. `value` is None for a secret that is set; `default`: it is not changed."""

    name: str
    value: str | None
    default: bool
    secret: bool
    meaning: str


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """Resident memory of a kind of process (driver, jvm, worker, writer) of the driver or of an executor, in bytes."""

    executor: str
    process: str
    octets: int


@dataclass(frozen=True, slots=True)
class Status:
    """The whole document. `troubles` are what /livez and /readyz say. `executors` are None until Spark runs."""

    schema: int
    version: str
    now: float
    started: float
    alive: bool
    ready: bool
    troubles: Mapping[str, str]
    jobs: tuple[JobStatus, ...]
    executors: int | None
    executors_expected: int | None
    memory: tuple[MemoryStatus, ...]
    settings: tuple[Setting, ...]
