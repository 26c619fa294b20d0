"""A query's writer on a real broker, with a parent process of its own that can be ended."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from service.kafka.admin import Cluster, TopicSpec, marker_topic
from service.kafka.errors import KafkaFailure
from service.kafka.writer.client import TransactionClient, WriteReport, WriterSettings
from service.kafka.writer.launch import connect
from service.kafka.writer.marker import MarkerReader
from tests.brokers import Broker
from tests.spark.topics import messages

MARKERS = f"markers-{os.getpid()}"
"""The topic of markers of this process: others that run tests use the same broker."""


class Query:
    """A query that writes to one topic of its own. Each folder is another host, with its own writer process."""

    def __init__(self, bootstrap: str, folder: Path, parent: subprocess.Popen[bytes], **settings: Any) -> None:
        self.bootstrap = bootstrap
        self.kafka = {"bootstrap.servers": bootstrap}
        self.parent = parent
        self._folder = folder
        self._settings = settings
        self.name = f"query-{uuid4().hex[:8]}"
        self.topic = f"out-{uuid4().hex[:8]}"
        Cluster({"bootstrap.servers": bootstrap}).create(
            [TopicSpec(name=self.topic, partitions=1), marker_topic(MARKERS)]
        )

    def set(self, **settings: Any) -> None:
        """Change settings of the writer, for attempts from now on."""
        self._settings |= settings

    def settings(self, host: str = "a", checkpoint: str = "c1") -> WriterSettings:
        return WriterSettings(
            query=self.name,
            checkpoint_id=checkpoint,
            kafka=self.kafka,
            marker_topic=MARKERS,
            socket_folder=str(self._folder / host),
            parent_pid=self.parent.pid,
            **self._settings,
        )

    def attempt(
        self, batch: int, *, partition: int = 0, digest: bytes | None = b"d", host: str = "a", checkpoint: str = "c1"
    ) -> TransactionClient:
        return TransactionClient(self.settings(host, checkpoint), partition, batch, digest)

    def rows(self, *values: str, **columns: pa.Array) -> pa.RecordBatch:
        """Records of the query's topic."""
        given = {"topic": pa.array([self.topic] * len(values)), "value": pa.array([v.encode() for v in values])}
        return pa.record_batch(given | columns)

    def write(self, batch: int, *values: str, **attempt: object) -> WriteReport:
        """Write a batch in one attempt."""
        with self.attempt(batch, **attempt) as client:  # type: ignore[arg-type]
            if client.begin():
                client.send(self.rows(*values))
            return client.commit()

    def insist(self, batch: int, *values: str) -> WriteReport:
        """Write a batch in as many attempts as it takes, as Spark does."""
        until = time.monotonic() + 120
        while True:
            try:
                return self.write(batch, *values)
            except KafkaFailure as failure:
                if not failure.retriable or time.monotonic() > until:
                    raise

    def committed(self) -> list[str]:
        """The values in the topic that a read_committed reader sees, in order of partition and offset."""
        return [(message.value() or b"").decode() for message in messages(self.bootstrap, self.topic)]

    def wait_until_decided(self) -> None:
        """Wait until no transaction is open in the topic.

        A commit returns before its end is written to every partition. A broker that is killed in between writes it
        after its next start, seconds later on a busy machine.
        """
        reader, until = MarkerReader(self.kafka), time.monotonic() + 120
        while reader.undecided(self.topic, 0, until).keys:
            assert time.monotonic() < until, f"a transaction in {self.topic} stays open"
            time.sleep(0.05)

    def writer_pid(self, host: str = "a") -> int:
        """The process id of the writer, which is started if there is none."""
        with connect(self.settings(host)) as connection:
            return int(struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])

    def kill_writer(self, host: str = "a") -> None:
        os.kill(self.writer_pid(host), signal.SIGKILL)


@pytest.fixture
def make_query() -> Iterator[Callable[..., Query]]:
    """Makes queries on a given broker: `make_query(bootstrap, patience_ms=5_000)`."""
    with ExitStack() as cleaning:
        folder = Path(tempfile.mkdtemp(prefix="tw-"))
        cleaning.callback(shutil.rmtree, folder, ignore_errors=True)

        def make(bootstrap: str, **settings: int) -> Query:
            parent = subprocess.Popen(["sleep", "600"])
            cleaning.callback(_end, parent)
            return Query(bootstrap, folder, parent, **settings)

        yield make


@pytest.fixture
def query(kafka: Broker, make_query: Callable[..., Query]) -> Query:
    """A query on the shared broker."""
    return make_query(kafka.bootstrap, patience_ms=20_000, attempt_wait_ms=1_000)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    process.wait()
