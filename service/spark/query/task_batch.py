"""The batch of a task, as Spark sends it along with the task."""

from __future__ import annotations

from base64 import b64decode
from typing import NamedTuple

from pyspark import TaskContext

NUMBER = "streaming.sql.batchId"
"""The task property in which Spark puts the number of the batch."""

NOW = "tailrace.now"
"""The task property in which the driver puts the time of the batch, which is the same in a replay (see `batch_end`)."""


PLAN = "tailrace.plan"
"""The task property in which the driver puts the plan of the batch: a `BatchPlan`, packed, in base64."""


class TaskBatch(NamedTuple):
    """The `number` of the batch, its time in milliseconds (`now`), the task and its attempt, and the `plan` of the
    batch, packed. Attempts count from 0 again if a stage is repeated; an `identifier` is unique in the life of a
    driver."""

    number: int
    now: int
    identifier: int
    task: int
    attempt: int
    plan: bytes = b""

    @classmethod
    def current(cls) -> TaskBatch:
        """Return the batch of the task that runs in this process now."""
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
