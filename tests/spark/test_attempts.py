"""Spark tries a task often, to get past dead workers: what must fail again is not computed again each time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from service.kafka.errors import DigestMismatch, KafkaConfigError, KafkaUnreachable
from service.runtime.ingest import BadInput
from service.runtime.shard_operators import StateMismatch
from service.spark.query import attempts as tries
from service.spark.query.attempts import FINAL, AttemptsExhausted, limit_attempts
from service.spark.supervision.jobs import summary


class Task:
    """One task of a batch, tried as often as Spark would while `fails` has errors."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, partition: int = 0) -> None:
        self._monkeypatch = monkeypatch
        self._folder = folder
        self._partition = partition
        self.computed = 0
        self.last: Exception | None = None

    def run(self, fails: list[Exception | None]) -> Task:
        for attempt, error in enumerate(fails):
            context = SimpleNamespace(
                stageId=lambda: 7, partitionId=lambda: self._partition, attemptNumber=lambda attempt=attempt: attempt
            )
            self._monkeypatch.setattr(tries, "TaskContext", SimpleNamespace(get=lambda context=context: context))
            try:
                for _ in self._body(error):
                    pass
                self.last = None
            except Exception as raised:
                self.last = raised
        return self

    def _body(self, error: Exception | None) -> Iterator[int]:
        with limit_attempts(self._folder):
            yield 1
            self.computed += 1
            if error is not None:
                raise error


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Task:
    return Task(monkeypatch, tmp_path)


def test_an_error_of_its_own_is_met_four_times_and_then_only_reported(task: Task):
    task.run([ValueError(f"number {n}") for n in range(16)])
    assert task.computed == 4
    assert isinstance(task.last, AttemptsExhausted)
    assert "ValueError: number 3" in str(task.last)


@pytest.mark.parametrize(
    "error",
    [StateMismatch("of another query"), DigestMismatch("other rows"), KafkaConfigError("no right"), BadInput("row 3")],
    ids=lambda error: type(error).__name__,
)
def test_an_error_that_the_next_try_would_meet_again_is_met_once(task: Task, error: Exception):
    assert isinstance(error, FINAL)
    task.run([error] * 16)
    assert task.computed == 1
    frames = 'Traceback (most recent call last):\n  File "a.py", line 1, in b\n'
    message = summary(
        RuntimeError(f"PythonException: {frames}service.spark.query.attempts.AttemptsExhausted: {task.last}")
    )
    assert message.startswith(f"{type(error).__module__}.{type(error).__name__}: {error}\n  raised at: File")


def test_what_goes_well_at_last_is_done(task: Task):
    task.run([KafkaUnreachable("away"), ValueError("x"), KafkaUnreachable("away"), None])
    assert (task.computed, task.last) == (4, None)


@pytest.mark.parametrize("error", [EOFError(), OSError("closed"), pa.ArrowInvalid("cut short")])
def test_where_sparks_side_of_the_task_has_failed_it_may_say_of_what_each_time(task: Task, error: Exception):
    task.run([error] * 16)
    assert (task.computed, task.last) == (16, error)


def test_tasks_are_counted_apart(task: Task, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    task.run([ValueError("x")] * 16)
    other = Task(monkeypatch, tmp_path, partition=1).run([ValueError("y"), None])
    assert (other.computed, other.last) == (2, None)


def test_nobody_else_may_read_of_what_a_task_has_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    scratch = tmp_path / "scratch"
    Task(monkeypatch, scratch / "run").run([ValueError("cannot compute 'ann'")])
    assert list(scratch.rglob("0"))
    assert scratch.stat().st_mode & 0o777 == 0o700
