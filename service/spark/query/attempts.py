"""The limit on attempts of a task.

Spark keeps Python workers for the next task. If they were killed together with the process that they are forked from,
it notices them one by one, and each costs an attempt: there must be more attempts than workers. A task that fails for
a reason of its own should have fewer attempts, and one that is sure to fail again only one. So an attempt records its
failure for the next one on this host, which raises it again at once if the limit is reached.
"""

from __future__ import annotations

import os
import shutil
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException

from service.checkpoint.files import NoHardLinks, StateMissing
from service.databases.errors import DatabaseConfigError
from service.host.machine import private_folder
from service.kafka.errors import DigestMismatch, KafkaConfigError, MessageTooLarge, SourceChanged
from service.runtime.ingest import BadInput
from service.runtime.shard_operators import StateMismatch
from service.spark.internals.failures import note
from service.spark.query.job_spec import JobSpec, WorkerJob
from service.spark.query.task_batch import TaskBatch

TRIES = 4
"""The number of attempts of a task that fails for a reason of its own."""

FINAL = (
    StateMismatch,
    StateMissing,
    NoHardLinks,
    DigestMismatch,
    SourceChanged,
    KafkaConfigError,
    DatabaseConfigError,
    BadInput,
)
"""Errors that the next attempt would meet again; nothing was written, and a person has to decide."""

OF_MEMORY = (MemoryError, duckdb.OutOfMemoryException)
"""Out-of-memory errors of Python, DuckDB and Arrow: the next attempt would have no more memory."""

OF_THE_RUN = (*OF_MEMORY, MessageTooLarge)
"""Errors that the next attempt would meet again, but perhaps not the next start of the query, which asks again for the
limits of topics."""

_OF_THE_OTHER_SIDE = (EOFError, OSError, pa.ArrowException, PySparkException)
"""Errors meaning that Spark's side of the task failed. Spark reports the cause, so nothing is recorded here."""


class AttemptsExhausted(Exception):
    """An earlier attempt of this task has failed; the text is that of its error, with its frames and its note."""


@contextmanager
def limit_attempts(folder: Path) -> Iterator[None]:
    """Run the Python part of a task. Raises AttemptsExhausted if the task has failed often enough.

    The error of an attempt is stored in `folder`, that of the run.
    """
    context = TaskContext.get()
    assert context is not None
    notes = folder / "tries" / f"{context.stageId()}-{context.partitionId()}"
    if context.attemptNumber() > 0:
        _stop_if_hopeless(notes)
    try:
        yield
    except MemoryError as error:  # Arrow's own out-of-memory error is an ArrowException too
        note(error)
        _keep(notes, context.attemptNumber(), error)
        raise
    except (AttemptsExhausted, *_OF_THE_OTHER_SIDE):
        raise
    except Exception as error:
        note(error)
        _keep(notes, context.attemptNumber(), error)
        raise


def is_first_attempt(job: WorkerJob, at: TaskBatch) -> bool:
    """Return whether this is the very first attempt of the task. False if that is not known, which is so if tasks run
    on several hosts. A second call in one attempt counts as another attempt."""
    if not job.spec.one_host or at.number == job.spec.replayed:
        return False
    begun = job.folder / "begun" / str(at.number)
    begun.mkdir(parents=True, exist_ok=True)
    try:
        (begun / str(at.task)).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def forget_attempts(job: JobSpec, batch: int) -> None:
    """Forget the attempts of a batch that is done."""
    shutil.rmtree(Path(job.scratch) / job.run / "begun" / str(batch), ignore_errors=True)


def _stop_if_hopeless(notes: Path) -> None:
    failed = sorted(notes.iterdir(), key=lambda note: int(note.stem)) if notes.is_dir() else []
    if len(failed) >= TRIES or any(note.suffix == ".final" for note in failed):
        raise AttemptsExhausted(failed[-1].read_text())


def _keep(notes: Path, attempt: int, error: Exception) -> None:
    final = isinstance(error, (*FINAL, *OF_THE_RUN))
    private_folder(notes)  # a message may quote a row, and a task on an executor may fail before others make folders
    temporary = notes.with_name(f"{notes.name}.{os.getpid()}")
    temporary.write_text("".join(traceback.format_exception(error)))
    temporary.rename(notes / f"{attempt}{'.final' if final else ''}")
