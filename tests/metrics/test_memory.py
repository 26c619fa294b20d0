"""The memory of the processes of a driver or an executor, read from a /proc of the test's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from service.observability.metrics.memory import memory_of
from service.runtime.task_metrics import TaskMetrics
from service.spark.query import executor_memory

PAGE = os.sysconf("SC_PAGE_SIZE")
SCRATCH = "/var/tmp/tailrace-1"

Process = Callable[..., None]


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """Adds a process: `process(7, 1, "java -jar x", pages=10, shared_kb=4)`."""

    def add(pid: int, parent: int, command: str, *, pages: int, shared_kb: int | None = None) -> None:
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "stat").write_text(f"{pid} (a ) name) S {parent} 0 0")
        (folder / "cmdline").write_text(command.replace(" ", "\0") + "\0")
        (folder / "statm").write_text(f"{9 * pages} {pages} 0 0 0 0 0")
        if shared_kb is not None:
            (folder / "smaps_rollup").write_text(
                f"0-1 ---p [rollup]\nRss: 99999 kB\nPss: {shared_kb} kB\nPss_Anon: 1 kB"
            )

    return add


def test_each_process_counts_for_its_kind(tmp_path: Path, process: Process):
    process(10, 1, "python -m service run pipeline.sql", pages=1)
    process(11, 10, "/opt/java/bin/java org.apache.spark.deploy.SparkSubmit", pages=20)
    process(12, 11, "python -m service.spark.driver.worker_daemon pyspark.worker", pages=400, shared_kb=8)
    process(13, 12, "python -m service.spark.driver.worker_daemon pyspark.worker", pages=400, shared_kb=16)
    process(14, 10, "/bin/sh -c watch", pages=5000)
    process(15, 1, f"python -m service.kafka.writer {SCRATCH}/r1/writer/x.socket 13", pages=3)
    assert memory_of(10, "driver", SCRATCH, tmp_path) == {
        "driver": PAGE,
        "jvm": 20 * PAGE,
        "worker": 24 * 1024,
        "writer": 3 * PAGE,
    }


def test_what_belongs_to_others_is_not_counted(tmp_path: Path, process: Process):
    process(10, 1, "python -m service run", pages=1)
    process(20, 1, "java other", pages=1000)
    process(21, 20, "python -m pyspark.daemon pyspark.worker", pages=1000, shared_kb=1000)
    process(22, 1, "python -m service.kafka.writer /var/tmp/other/writer/x.socket 21", pages=1000)
    assert memory_of(10, "driver", SCRATCH, tmp_path) == {"driver": PAGE}


def test_an_executor_on_the_host_of_the_driver_reports_its_memory_itself(tmp_path: Path, process: Process):
    process(10, 1, "python -m service run", pages=1)
    process(11, 10, "java org.apache.spark.deploy.SparkSubmit", pages=20)
    process(12, 11, "java CoarseGrainedExecutorBackend --executor-id 0", pages=300)
    process(13, 12, "python -m service.spark.driver.worker_daemon pyspark.worker", pages=400)
    assert memory_of(10, "driver", SCRATCH, tmp_path) == {"driver": PAGE, "jvm": 20 * PAGE}
    assert memory_of(12, "jvm", SCRATCH, tmp_path) == {"jvm": 300 * PAGE, "worker": 400 * PAGE}


def test_where_the_system_does_not_report_shared_pages_the_resident_set_counts(tmp_path: Path, process: Process):
    process(10, 1, "java", pages=2)
    process(11, 10, "python -m service.spark.driver.worker_daemon pyspark.worker", pages=3)
    assert memory_of(10, "jvm", SCRATCH, tmp_path)["worker"] == 3 * PAGE


def test_a_process_that_ends_while_it_is_looked_at_counts_nothing(tmp_path: Path, process: Process):
    process(10, 1, "java", pages=2)
    process(11, 10, "python -m pyspark.daemon", pages=2)
    (tmp_path / "11" / "statm").unlink()
    assert memory_of(10, "jvm", SCRATCH, tmp_path) == {"jvm": 2 * PAGE}


def test_this_process_holds_memory():
    assert memory_of(os.getpid(), "driver", SCRATCH)["driver"] > 10_000_000


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("java org.apache.spark.executor.CoarseGrainedExecutorBackend --executor-id 7 --cores 2", {"7"}),
        ("java org.apache.spark.deploy.SparkSubmit", set()),
    ],
    ids=["an executor", "a driver that runs the tasks itself"],
)
def test_a_worker_reports_the_memory_of_the_executor_above_it(
    command: str, expected: set[str], monkeypatch: pytest.MonkeyPatch
):
    words = {3: ["python"], 2: ["python", "-m", "service.spark.driver.worker_daemon"], 1: ["init"], 5: command.split()}
    parents = {3: 2, 2: 5, 5: 1}
    monkeypatch.setattr(executor_memory, "_next_look", 0.0)
    monkeypatch.setattr(os, "getpid", lambda: 3)
    monkeypatch.setattr(executor_memory, "words_of", words.__getitem__)
    monkeypatch.setattr(executor_memory, "parent_of", parents.__getitem__)
    monkeypatch.setattr(executor_memory, "memory_of", lambda pid, kind, scratch: {kind: pid, "worker": 9})
    first, second = TaskMetrics(), TaskMetrics()
    executor_memory.measure_executor(first, SCRATCH)
    executor_memory.measure_executor(second, SCRATCH)
    wanted = {
        f'memory_bytes{{executor="{e}",process="{p}"}}': v for e in expected for p, v in (("jvm", 5), ("worker", 9))
    }
    assert first.highs == wanted
    assert second.highs == {}, "it looks again only after a while"
