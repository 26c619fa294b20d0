"""The slow tick: paced by a clock that nobody sets, and patient with a Kafka that does not answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from service.kafka.errors import KafkaUnreachable
from service.spark.query.heartbeat import TickReader
from service.spark.query.run_folder import RunFolder


class _Cluster:
    """A Kafka with two partitions, of which nothing is known while it is away."""

    away = False
    partitions = 2

    def describe(self, topics: list[str]) -> dict[str, int]:
        if self.away:
            raise KafkaUnreachable("no broker answers")
        return dict.fromkeys(topics, self.partitions)


class _Reader:
    """A tick every ten seconds, its clocks and its Kafka."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, always: bool = False) -> None:
        self.wall, self.running, self.cluster = 1_000_000.0, 0.0, _Cluster()
        monkeypatch.setattr("time.time", lambda: self.wall)
        monkeypatch.setattr("time.monotonic", lambda: self.running)
        monkeypatch.setattr("service.host.clock.elapsed", lambda: self.running)
        options = {
            "interval": "10000",
            "shards": "1",
            "levels": "[1]",
            "topics": json.dumps({"0": {"kafka": {}, "topics": ["t"]}}),
            "folder": str(tmp_path / "run"),
            "always": str(always).lower(),
        }
        (tmp_path / "run").mkdir(exist_ok=True)
        self.folder = RunFolder(tmp_path / "run")
        self._reader = TickReader(options, lambda _: self.cluster)  # type: ignore[arg-type,return-value]
        self.offset: dict[str, Any] = self._reader.initialOffset()

    def ticks(self, seconds: float, wall: float | None = None) -> bool:
        """Whether there is a tick after `seconds`, in which the clock on the wall moved by `wall`."""
        self.running += seconds
        self.wall += seconds if wall is None else wall
        before = self.offset
        _, self.offset = self._reader.read(before)
        return self.offset != before

    def batch(self, seconds: float) -> None:
        """After `seconds` a batch of rows begins."""
        self.running += seconds
        self._reader.commit(self.offset)


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Reader:
    return _Reader(tmp_path, monkeypatch)


def test_there_is_a_tick_at_once_and_then_one_an_interval(reader: _Reader):
    assert [reader.ticks(seconds) for seconds in (0, 9, 1, 9, 2, 100)] == [True, False, True, False, True, True]


@pytest.mark.parametrize("set_by", [-3600, -365 * 86_400, 3000])
def test_ticks_go_on_when_the_clock_is_set(reader: _Reader, set_by: float):
    assert reader.ticks(0)
    times = [reader.offset["now"]]
    assert reader.ticks(10, wall=set_by)
    assert reader.ticks(10)
    times.append(reader.offset["now"])
    assert times[1] > times[0]


def test_the_partitions_that_are_known_stay_known_while_kafka_does_not_answer(reader: _Reader):
    assert reader.ticks(0)
    known = reader.offset["channels"]
    assert known == {"0": ["s0000/t/00000", "s0000/t/00001"]}
    reader.cluster.away = True
    assert reader.ticks(100)
    assert reader.offset["channels"] == known


def test_the_partitions_that_are_known_stay_known_while_kafka_lists_fewer(reader: _Reader):
    assert reader.ticks(0)
    known = reader.offset["channels"]
    reader.cluster.partitions = 0
    assert reader.ticks(100)
    assert reader.offset["channels"] == known


def test_while_rows_come_there_is_no_tick_and_then_one_an_interval(reader: _Reader):
    assert reader.ticks(0)
    for _ in range(5):
        reader.batch(4)
        assert not reader.ticks(0)
    assert [reader.ticks(seconds) for seconds in (9, 1, 9, 1)] == [False, True, False, True]


def test_batches_that_may_have_no_rows_do_not_put_a_tick_off_for_ever(reader: _Reader):
    assert reader.ticks(0)
    ticked = []
    for _ in range(40):
        reader.batch(5)
        ticked.append(reader.ticks(0))
    assert [number for number, each in enumerate(ticked, 1) if each] == [20, 40]


def test_where_rows_of_a_source_bring_the_time_to_some_shards_only_ticks_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    reader = _Reader(tmp_path, monkeypatch, always=True)
    assert reader.ticks(0)
    reader.batch(9)
    assert reader.ticks(1)


def test_a_partition_that_comes_and_a_source_that_ends_are_reported_while_rows_come(reader: _Reader):
    assert reader.ticks(0)
    reader.cluster.partitions = 3
    ticked = []
    for _ in range(12):
        reader.batch(6)
        ticked.append(reader.ticks(0))
    assert ticked == [False] * 9 + [True] + [False] * 2, "after a minute, and before ten intervals"
    assert reader.offset["channels"] == {"0": ["s0000/t/00000", "s0000/t/00001", "s0000/t/00002"]}
    reader.folder.write_ended({0})
    reader.batch(1)
    assert reader.ticks(0)
    assert reader.offset["ended"] == [0]


def test_while_a_source_waits_each_interval_has_its_tick(reader: _Reader):
    reader.folder.write_waiting({1})
    assert reader.ticks(0)
    reader.batch(9)
    reader.folder.write_waiting(())
    assert reader.ticks(1)
    reader.batch(9)
    assert not reader.ticks(1)
