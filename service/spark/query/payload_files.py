"""Payloads that travel between the tasks of one host in files, not through Spark.

Spark copies a payload about ten times: into a row, a shuffle block, a compressed one, the heap of the JVM that reads
it, an Arrow batch and the sockets on both sides. If all tasks run on one host, a task writes a large payload to a file
of the run, and the envelope names the file; the receiving task maps it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from service.runtime.envelope import Envelope, Kind
from service.spark.query.job_spec import WorkerJob
from service.spark.query.task_batch import TaskBatch

SMALLEST = 128 << 10
"""The size in bytes from which a payload goes into a file: for a smaller one a file costs more than the copies."""

CARRIES_ROWS = frozenset((Kind.ROWS, Kind.SHARED_ROWS, Kind.OUTPUT, Kind.LATE, Kind.DEAD_ROWS, Kind.DEAD_RECORDS))
"""The kinds of envelopes whose payload may be in a file."""


class PayloadFiles:
    """The payloads of one batch, in `folder`, which is removed when the batch is done."""

    def __init__(self, folder: Path, batch: int) -> None:
        self._folder = folder / "payloads" / str(batch)

    def outgoing(self, envelopes: Iterator[Envelope], attempt: int) -> Iterator[Envelope]:
        """Put the large payloads of a task's attempt into files of its own: those of another attempt may be mapped by a
        reader. Raises OSError if the disk is full."""
        number = 0
        for envelope in envelopes:
            if envelope.kind not in CARRIES_ROWS or len(envelope.payload) < SMALLEST:
                yield envelope
                continue
            if not number:
                self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{attempt}-{number}"
            path.write_bytes(envelope.payload)
            number += 1
            yield envelope._replace(payload=b"", file=str(path))

    def remove(self) -> None:
        """Remove the files of a finished batch: no new reader comes. A task that still maps one keeps its mapping."""
        shutil.rmtree(self._folder, ignore_errors=True)


def outgoing(job: WorkerJob, envelopes: Iterator[Envelope], at: TaskBatch) -> Iterator[Envelope]:
    """Return the envelopes of a task for the next one: where all tasks run on one host, large payloads are in files."""
    if not job.spec.one_host:
        return envelopes
    return PayloadFiles(job.folder, at.number).outgoing(envelopes, at.identifier)
