"""What executors fetch of each other, as Spark's log of events has it."""

from __future__ import annotations

import json
from pathlib import Path

from bench.__main__ import arguments
from bench.engines import tailrace_on_executors
from bench.fetched import launch, remote_bytes, settings
from service.settings import load


def event(kind: str, remote: int) -> str:
    read = {"Remote Bytes Read": remote, "Local Bytes Read": 7}
    event = {"Event": kind, "Task Metrics": {"Shuffle Read Metrics": read}}
    return json.dumps(event, separators=(",", ":"))


def task_end(remote: int) -> str:
    return event("SparkListenerTaskEnd", remote)


def test_bytes_that_were_read_of_another_executor_are_added_up_over_all_tasks(tmp_path: Path):
    (tmp_path / "app").mkdir()
    lines = [
        event("SparkListenerStageCompleted", 1),
        task_end(100),
        '{"Event":"SparkListenerTaskEnd","Task End Reason":{"Reason":"ExecutorLostFailure"}}',
        task_end(20),
    ]
    (tmp_path / "app" / "events").write_text("".join(f"{line}\n" for line in lines) + task_end(3)[:-5])
    assert remote_bytes(tmp_path) == 120


def test_each_executor_has_a_folder_of_its_own_for_its_copies(tmp_path: Path):
    usual = tailrace_on_executors(4, tmp_path / "q.sql", tmp_path)
    started = launch(4, tmp_path / "q.sql", tmp_path)
    assert started.command == ["env", "-C", str(tmp_path), *usual.command]
    loaded = load({**started.variables, **settings(4, "http://127.0.0.1:1", tmp_path, 8080)})
    assert loaded.scratch.startswith("/proc/self/cwd/")
    assert loaded.spark.master.startswith("local-cluster[4,")
    assert loaded.spark.partitions == 4


def test_it_runs_only_where_it_is_asked_for():
    assert arguments(["--only", "fetched"]).only == "fetched"
