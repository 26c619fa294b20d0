"""The batch of a task, as Spark passes it on with the task."""

from __future__ import annotations

from base64 import b64decode
from typing import NamedTuple

from pyspark import TaskContext

NUMBER = "streaming.sql.batchId"
"""The property of a task in which Spark says the number of the batch."""

NOW = "tailrace.now"
"""That in which the driver says the own time of the batch, which is the same on a replay (see `batch_end`)."""


PLAN = "tailrace.plan"
"""That in which the driver says how the batch was cut: a `BatchPlan`, packed, in base64."""


class TaskBatch(NamedTuple):
    """The `number` of the batch, its own time in milliseconds (`now`), which attempt of which task this is, and the
    `plan` of the batch, packed. Attempts are counted from 0 again where a stage is tried again; no two have one
    `identifier` in the life of a driver."""

    number: int
    now: int
    identifier: int
    task: int
    attempt: int
    plan: bytes = b""

    @classmethod
    def current(cls) -> TaskBatch:
        """Return that of the task that runs in this process now."""
        context = TaskContext.get()
        assert context is not None
        local_property = context.getLocalProperty
        return cls(
            int(local_property(NUMBER) or 0),
            int(local_property(NOW) or 0),
            context.taskAttemptId(),
            context.partitionId(),
            context.attemptNumber(),
            b64decode(local_property(PLAN) or ""),
        )
