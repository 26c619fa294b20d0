"""How large batches are follows from the memory of the machine and from what their reports say of records."""

from __future__ import annotations

from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import pytest

from service.deployment.deployment import Deployment
from service.deployment.replanning import CUT
from service.host import machine
from service.runtime.task_metrics import TaskMetrics
from service.settings import BatchSettings, Settings
from service.spark.supervision.batch_pace import BatchPace
from tests.metrics.test_end_offsets import assignment

MIB, GIB = 1 << 20, 1 << 30


def job(**batch: Any) -> Deployment:
    """A job on a machine of 8 GiB."""
    return replace(assignment(), settings=Settings(batch=BatchSettings(**batch)))


@pytest.fixture(autouse=True)
def eight_gib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "memory", lambda: 8 * GIB)


def begun(pace: BatchPace, deployment: Deployment, cut: dict[str, int] | None = None) -> BatchPace:
    """The pace once the query has started, after batch 6."""
    checkpoint: Any = SimpleNamespace(read={CUT: cut}.get, last_done=lambda: 6)
    pace.begin(deployment, checkpoint)
    return pace


def report(batch: int, records: int, size: int) -> dict[str, Any]:
    """That of a batch of so many records of `size` bytes."""
    metrics = TaskMetrics()
    metrics.count("input_records_total", records, source="orders")
    metrics.count("input_bytes_total", records * size, source="orders")
    return {"batch": batch, "metrics": asdict(metrics)}


@pytest.mark.parametrize(
    ("batch", "record", "rows"),
    [
        pytest.param({}, float(MIB), 256, id="a 32nd of the memory, of records that were looked at before the start"),
        pytest.param({"bytes": 16 * MIB}, float(MIB), 16, id="as many bytes as the settings say"),
        pytest.param({}, 100.0, 200_000, id="small records"),
    ],
)
def test_the_first_batch_is_no_larger_than_its_share_of_memory(batch: dict[str, Any], record: float, rows: int) -> None:
    assert begun(BatchPace(record), job(**batch)).rows == rows


def test_records_that_have_become_large_make_the_next_batch_small_and_that_of_another_start() -> None:
    pace = begun(BatchPace(100.0), job())
    pace.note(report(7, 200_000, MIB))
    assert pace.fit(7, 200_000, 2.0)
    assert pace.rows == 256
    assert begun(pace, job()).rows == 256, "the query is started again after a failure"


def test_after_a_batch_that_was_cut_the_first_ones_are_no_larger() -> None:
    assert begun(BatchPace(100.0), job(), {"batch": 7, "rows": 500}).rows == 500
