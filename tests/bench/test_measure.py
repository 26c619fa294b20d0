"""A run has figures only if the engine has read all rows."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from bench.cases import Case, Topic
from bench.engines import ENGINES, Launch
from bench.measure import Run, watch
from bench.progress import Progress

CASE = Case(
    "join", "regular join", "join", (Topic("ORDERS", "orders", 9, 0.5), Topic("SHIPMENTS", "shipments", 9, 0.5))
)
ROWS = 1_001
STOPS_WHEN_ASKED = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); signal.pause()"


class Committed(Progress):
    """What a broker says of a group that has committed `rows`."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def rows_read(self, topics: Iterable[str]) -> int:
        assert list(topics) == ["orders-9-500", "shipments-9-500"]
        return self._rows

    def visible_end(self, topic: str) -> int:
        return self._rows


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Watches a Python program that stands for an engine, while the broker says that `read` rows were read."""

    def run(program: str, read: int, patience: float = 30, commits_last: bool = True) -> Run:
        launch = Launch([sys.executable, "-c", program], commits_last=commits_last)
        monkeypatch.setitem(ENGINES, "tailrace", lambda sql, folder: launch)
        return watch(Committed(read), CASE, "tailrace", ROWS, "group", tmp_path / "join.sql", patience)

    return run


def test_a_run_that_read_all_rows_has_figures(run):
    done = run("", 1_000)
    assert done.error == ""
    assert done.samples[-1].rows == 1_000
    assert done.whole > 0


def test_a_run_that_ended_early_without_a_complaint_has_an_error_and_no_rate(run):
    short = run("", 999)
    assert short.error == "ended after 999 of 1,000 rows"
    assert (short.whole, short.middle, short.samples) == (0, 0, ())


@pytest.mark.parametrize("program", [STOPS_WHEN_ASKED, "import time; time.sleep(60)"])
def test_a_run_that_is_given_up_says_how_far_it_had_come(run, program: str):
    assert run(program, 600, patience=1).error == "given up after 1 s and 600 of 1,000 rows"


def test_an_engine_that_ends_before_it_commits_its_last_rows_is_believed(run):
    assert run("", 990, commits_last=False).error == ""
    assert run("raise SystemExit(143)", 990, commits_last=False).error.startswith("ended with 143")


def test_only_flink_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("bench.engines.java_command", lambda *words, heap: ["java", *words])
    launched = {name: engine(tmp_path / "join.sql", tmp_path) for name, engine in ENGINES.items()}
    assert {name for name, launch in launched.items() if not launch.commits_last} == {"flink", "flink-row-by-row"}
