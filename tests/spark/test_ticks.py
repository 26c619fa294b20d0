"""The slow tick: paced by a clock that nobody sets, and patient with a Kafka that does not answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from service.kafka.errors import KafkaUnreachable
from service.spark.query.heartbeat import TickReader


class _Cluster:
    """A Kafka with two partitions, of which nothing is known while it is away."""

    away = False

    def describe(self, topics: list[str]) -> dict[str, int]:
        if self.away:
            raise KafkaUnreachable("no broker answers")
        return dict.fromkeys(topics, 2)


class _Reader:
    """A tick every ten seconds, its clocks and its Kafka."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.running, self.cluster = 1_000_000.0, 0.0, _Cluster()
        monkeypatch.setattr("time.time", lambda: self.wall)
        monkeypatch.setattr("time.monotonic", lambda: self.running)
        monkeypatch.setattr("service.host.clock._running", lambda: self.running)
        options = {
            "interval": "10000",
            "shards": "1",
            "levels": "[1]",
            "topics": json.dumps({"0": {"kafka": {}, "topics": ["t"]}}),
            "ended": str(tmp_path / "run" / "ended.json"),
        }
        self._reader = TickReader(options, lambda _: self.cluster)  # type: ignore[arg-type,return-value]
        self.offset: dict[str, Any] = self._reader.initialOffset()

    def ticks(self, seconds: float, wall: float | None = None) -> bool:
        """Whether there is a tick after `seconds`, in which the clock on the wall moved by `wall`."""
        self.running += seconds
        self.wall += seconds if wall is None else wall
        before = self.offset
        _, self.offset = self._reader.read(before)
        return self.offset != before


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
