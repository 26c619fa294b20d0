"""The memory of an executor, measured by the Python workers in it: the driver cannot see into another pod."""

from __future__ import annotations

import os
import time

from service.observability.metrics.memory import EXECUTOR, memory_of, parent_of, words_of
from service.runtime.task_metrics import TaskMetrics

EVERY = 10.0
"""Seconds between two measurements of a worker."""

_next_look = 0.0


def measure_executor(metrics: TaskMetrics, scratch: str) -> None:
    """Measure the memory of this worker's executor, if it is due. If the driver runs the tasks itself, it measures
    them."""
    global _next_look
    if time.monotonic() < _next_look:
        return
    _next_look = time.monotonic() + EVERY
    found = _executor(os.getpid())
    if found is None:
        return
    jvm, name = found
    for process, held in memory_of(jvm, "jvm", scratch).items():
        metrics.high("memory_bytes", held, executor=name, process=process)


def _executor(pid: int) -> tuple[int, str] | None:
    """The process of the executor above `pid`, and its name in Spark."""
    while pid > 1:
        words = words_of(pid)
        if EXECUTOR in words[:-1]:
            return pid, words[words.index(EXECUTOR) + 1]
        pid = parent_of(pid)
    return None
