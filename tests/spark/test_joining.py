"""When state moves to executors that join: after those that are missing were waited for, and once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from service.spark.supervision import rebalance as spread
from service.spark.supervision.rebalance import PATIENCE, TRIES, Rebalancer, StateStore


class Spark:
    """A session as `Rebalancer` sees it, with one query of one step. `places`: which executor has which partition."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, places: str) -> None:
        self.places = dict(enumerate(places))
        self.hosts: set[str] = set()
        self.batch: int | None = 0
        self.run = "run-1"
        self.now = 0.0
        self.said: list[tuple[str, int, int, int]] = []
        monkeypatch.setattr(spread, "time", SimpleNamespace(monotonic=lambda: self.now))
        self._spread = Rebalancer(self, lambda *told: self.said.append(told))  # type: ignore[arg-type]

    def look(self, executors: str, expected: int = 0) -> str:
        """Where the partitions are after a look at these executors."""
        self._spread.look({name: f"host_of_{name}" for name in executors}, expected)
        return "".join(self.places.values())

    def start_again(self) -> None:
        """Another run of the query, whose state is wherever its first batch found room."""
        self.run, self.batch = "run-2", None

    @property
    def _jvm(self) -> Any:
        state = "org.apache.spark.sql.execution.streaming.state."
        classes: dict[str, Any] = {
            state + "StateStoreId": lambda folder, operator, partition, name: StateStore(operator, partition),
            state + "StateStoreProviderId": lambda store, run: store,
            "PythonUtils": SimpleNamespace(toSeq=tuple),
        }
        return SimpleNamespace(**classes)

    @property
    def _jsparkSession(self) -> Any:
        coordinator = SimpleNamespace(getLocation=self._location, reportActiveInstance=self._report)
        streams = SimpleNamespace(stateStoreCoordinator=lambda: coordinator, active=lambda: [self._query()])
        return SimpleNamespace(streams=lambda: streams)

    def _query(self) -> Any:
        step = SimpleNamespace(numShufflePartitions=lambda: len(self.places))
        progress = SimpleNamespace(batchId=lambda: self.batch, stateOperators=lambda: [step])
        return SimpleNamespace(
            runId=lambda: self.run,
            name=lambda: "q",
            lastProgress=lambda: None if self.batch is None else progress,
            streamingQuery=lambda: SimpleNamespace(checkpointFile=lambda name: name),
        )

    def _location(self, store: StateStore) -> Any:
        place = self.places[store.partition]
        return SimpleNamespace(isDefined=lambda: place != " ", get=lambda: f"executor_host_of_{place}_{place}")

    def _report(self, store: StateStore, host: str, executor: str, others: tuple[()]) -> None:
        assert host == f"host_of_{executor}"
        self.places[store.partition] = executor


def test_those_that_join_get_their_share_once(monkeypatch: pytest.MonkeyPatch):
    spark = Spark(monkeypatch, "1111")
    assert spark.look("1") == "1111"
    assert spark.look("12") == "1122"
    spark.batch = 2
    assert spark.look("12") == "1122"
    spark.places = dict(enumerate("1112"))
    assert spark.look("12") == "1112", "what Spark itself does with state later is left alone"
    assert spark.look("1") == "1112"
    assert sorted(spark.look("13")) == list("1133"), "the same number, but not the same"
    assert spark.said == [("q", 2, 2, 4), ("q", 2, 2, 4)]


def test_those_that_are_missing_are_waited_for_a_little(monkeypatch: pytest.MonkeyPatch):
    spark = Spark(monkeypatch, "111111")
    assert spark.look("1", expected=3) == "111111"
    spark.now = PATIENCE - 1
    assert spark.look("12", expected=3) == "111111"
    spark.now = 2 * PATIENCE - 2
    assert spark.look("12", expected=3) == "111111", "as long after each that comes"
    spark.now = 2 * PATIENCE
    assert spark.look("12", expected=3) == "111222"
    assert sorted(spark.look("123", expected=3)) == list("112233"), "all that were asked for are there"


def test_nothing_moves_before_it_is_known_where_it_is(monkeypatch: pytest.MonkeyPatch):
    spark = Spark(monkeypatch, "1111")
    spark.batch = None
    assert spark.look("") == "1111"
    assert spark.look("12") == "1111"
    spark.places, spark.batch = dict(enumerate("    ")), 0
    assert spark.look("12") == "    "
    assert spark.said == []


def test_a_partition_whose_task_ran_where_it_was_is_moved_again_but_not_for_ever(monkeypatch: pytest.MonkeyPatch):
    spark = Spark(monkeypatch, "1111")
    for attempt in range(TRIES):
        assert sorted(spark.look("12")) == list("1122"), attempt
        spark.places = dict(enumerate("1112"))
        spark.batch = 2 * attempt + 1
        assert spark.look("12") == "1112", "a batch that may have begun before is no answer"
        spark.batch = 2 * attempt + 2
    assert spark.look("12") == "1112"
    assert spark.said == [("q", 2, 2, 4)]


def test_a_query_that_is_started_again_is_spread_again(monkeypatch: pytest.MonkeyPatch):
    spark = Spark(monkeypatch, "1122")
    assert spark.look("12") == "1122"
    spark.start_again()
    spark.places = dict(enumerate("1111"))
    assert spark.look("12") == "1111"
    spark.batch = 0
    assert spark.look("12") == "1122"
