"""The description of a job for its tasks, as one picklable value, and its cache in a worker process."""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from operators.sql import Sql
from service.checkpoint.address import CheckpointAddress
from service.formats.contract import Decoder, Encoder
from service.host.machine import cores, memory, private_folder
from service.kafka.writer.writer_settings import WriterSettings
from service.plan.program import Program
from service.runtime.layout import Layout
from service.runtime.topology import Topology


@dataclass(frozen=True, slots=True)
class JobSpec:
    """Everything that travels to the workers.

    `decoders` and `encoders` are by source and by output. A source is read in `readers` tasks, one a Kafka partition
    if 0, which compute `block_rows` records at a time. `limits` are the end offsets of bounded channels. `writers`
    are the Kafka clusters that are written to, one transaction each; `writer_of` says which one an output goes to, and
    `side_writer` the one that dead letters and late rows go to, of at most `side_bytes` each; a task shows `samples`
    rows of each kind. `state` is where the blocks are. `run` names this run of the query: sockets live under `scratch`
    in a folder of that name and die with it. `one_host` says that all tasks run on the driver's host. Batch
    `replayed` may have begun before this run. Where the query does one batch again for a checkpoint that is an older
    copy, `redone` has the digests that it was committed with, in hex, by task. `plan` is the plan number of the
    checkpoint.
    """

    program: Program
    decoders: Mapping[int, Decoder]
    encoders: Mapping[int, Encoder]
    layout: Layout
    readers: int
    block_rows: int
    state: CheckpointAddress
    limits: Mapping[str, int]
    scratch: str
    run: str
    writers: tuple[WriterSettings, ...]
    writer_of: Mapping[int, int]
    side_writer: int | None
    side_bytes: int
    dead_letter_topic: str
    late_topic: str
    samples: int
    one_host: bool
    replayed: int = -1
    redone: Mapping[int, str] | None = None
    plan: int = 0


JOBS = 16
"""The number of jobs that a worker keeps: the jobs of one pipeline share the workers, and take turns."""


class WorkerJob:
    """A job in a worker: unpickled once per process, whatever the number of tasks."""

    def __init__(self, spec: JobSpec) -> None:
        self.spec = spec
        self.topology = Topology(spec.program)

    @cached_property
    def folder(self) -> Path:
        """The folder of this run of the driver, on this host."""
        return Path(self.spec.scratch) / self.spec.run

    @property
    def layout(self) -> Layout:
        """The layout of the keys over the tasks."""
        return self.spec.layout

    @classmethod
    def load(cls, blob: bytes) -> WorkerJob:
        """Return the job of a blob, the same object for the same bytes."""
        return _unpacked(blob)


@lru_cache(JOBS)
def _unpacked(blob: bytes) -> WorkerJob:
    return WorkerJob(pickle.loads(blob))


def packed(spec: JobSpec) -> bytes:
    """Pickle a specification for `WorkerJob.load`. All its classes are importable, so the blob is small."""
    return pickle.dumps(spec, protocol=pickle.HIGHEST_PROTOCOL)


_SQL: list[Sql] = []


MEMORY_SHARE = 0.6
"""The share of the machine's memory that DuckDB may use in all workers together: the JVM and Kafka's client need the
rest."""


def worker_sql(scratch: str) -> Sql:
    """Return the DuckDB connection of this worker process. It may use its share of the memory, one of as many as there
    are cores, and spills to a folder of its own in `scratch`."""
    if not _SQL:
        spill = private_folder(Path(scratch)) / f"duckdb-{os.getpid()}"
        _SQL.append(Sql(int(memory() * MEMORY_SHARE / cores()), str(spill)))
        # A worker looks for garbage after each task: not in what it keeps for all of them. Once, or what is frozen and
        # becomes garbage later would stay forever.
        gc.freeze()
    return _SQL[0]
