"""A partition that has moved to another host leaves no producer behind."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest

from service.kafka.writer import server
from service.kafka.writer.partition_writer import PartitionWriter
from service.kafka.writer.server import MOVED_AFTER, Attempt, PartitionLease, Server


class _Writer:
    """A partition's writer that says whether its producer was closed."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1

    def abort(self) -> None:
        """Nothing is open."""


class _Host:
    """A writer process without Kafka, and its partitions."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.server = Server(cast(socket.socket, None))
        self.writers: dict[int, _Writer] = {}

    def write(self, partition: int, batch: int) -> Any:
        leases = self.server._leases
        if partition not in leases:
            self.writers[partition] = _Writer()
            leases[partition] = PartitionLease(cast(PartitionWriter, self.writers[partition]))
        ours, _theirs = (self._stack.enter_context(each) for each in socket.socketpair())
        return leases[partition].acquire(Attempt(ours, batch), 1000)

    def closed(self) -> list[int]:
        self.server.close_moved()
        return [partition for partition, writer in self.writers.items() if writer.closed]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Host]:
    monkeypatch.setattr(server, "MOVED_SECONDS", 0.0)
    with ExitStack() as stack:
        yield _Host(stack)


def run(host: _Host, partitions: list[int], batches: range) -> None:
    for batch in batches:
        for partition in partitions:
            with host.write(partition, batch):
                pass


def test_the_producer_of_a_partition_that_misses_many_batches_is_closed_once(host: _Host):
    run(host, [0, 1], range(3))
    run(host, [0], range(3, 3 + MOVED_AFTER))
    assert host.closed() == []
    run(host, [0], range(3 + MOVED_AFTER, 5 + MOVED_AFTER))
    assert host.closed() == [1]
    host.closed()
    assert host.writers[1].closed == 1


def test_the_producer_of_a_partition_that_seldom_has_rows_is_kept(host: _Host, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server, "MOVED_SECONDS", 600.0)
    run(host, [0, 1], range(3))
    run(host, [0], range(3, 9 + MOVED_AFTER))
    assert host.closed() == []


def test_a_producer_that_somebody_uses_is_left_alone(host: _Host):
    run(host, [0], range(100, 101))
    with host.write(1, 3):
        assert host.closed() == []
    assert host.closed() == [1]
