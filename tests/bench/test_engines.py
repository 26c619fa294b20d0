"""What is started for each engine, and what it leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import engines
from bench.__main__ import arguments
from bench.cases import CASES, NEXMARK
from bench.engines import COMPARED, ENGINES, SCALED, Launch, can_run
from bench.measure import litter, sweep
from service.settings import load


@pytest.mark.parametrize(
    ("engine", "master", "cores_each"),
    [
        ("tailrace-1-executor", "local-cluster[1,4,2048]", 4),
        ("tailrace-2-executors", "local-cluster[2,2,2048]", 2),
    ],
)
def test_executors_share_the_cores_that_the_one_process_has(
    engine: str, master: str, cores_each: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(engines, "CORES", 4)
    launch = ENGINES[engine](tmp_path / "q.sql", tmp_path)
    spark = load(launch.variables).spark
    assert spark.master == master
    assert spark.executor.cores == cores_each
    assert spark.executor.instances * spark.executor.cores == spark.partitions == 4
    alone = ENGINES["tailrace"](tmp_path / "q.sql", tmp_path)
    assert launch.command == alone.command
    assert alone.variables.items() <= launch.variables.items(), "all else is the same"


def test_an_executor_fits_into_its_worker(tmp_path: Path):
    spark = load(ENGINES["tailrace-2-executors"](tmp_path / "q.sql", tmp_path).variables).spark
    assert spark.executor.memory == "1g"
    assert spark.master.endswith(",2048]")


def test_executors_are_measured_only_where_they_are_asked_for():
    assert not {"tailrace-1-executor", "tailrace-2-executors"} & set(COMPARED)
    assert set(SCALED) <= set(ENGINES)
    assert arguments([]).only is None
    assert arguments(["--only", "executors"]).only == "executors"
    assert arguments(["--engines", "tailrace-2-executors"]).engines == ["tailrace-2-executors"]
    assert all(can_run(engine, case) for engine in SCALED for case in CASES)


def test_what_a_run_leaves_outside_its_folder_is_removed_and_nothing_else(tmp_path: Path):
    launch = Launch(["true"], litter=tmp_path / "work")
    assert litter(launch) == set()
    older = tmp_path / "work" / "app-1"
    older.mkdir(parents=True)
    before = litter(launch)
    (tmp_path / "work" / "app-2" / "0").mkdir(parents=True)
    sweep(launch, before)
    assert list((tmp_path / "work").iterdir()) == [older]


def test_a_side_input_in_a_topic_is_asked_of_tailrace_alone():
    case = next(case for case in NEXMARK if case.name == "q13-topic")
    assert [engine for engine in COMPARED if can_run(engine, case)] == ["tailrace"]
