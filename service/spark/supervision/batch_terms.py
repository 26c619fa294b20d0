"""What a batch keeps once it has begun: the numbers of its tasks, and the limits of the records that it writes.

Law: some tasks of a batch that has begun may have written their rows, and the others must write exactly the rest. So a
batch is repeated with the terms that it began with, and other terms wait until it is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from service.deployment.deployment import Deployment
from service.deployment.record_limits import Refusals, Rooms, agree_on_rooms, limits_now
from service.runtime.layout import Layout
from service.spark.supervision.checkpoint import Checkpoint


class BatchTerms:
    """The terms of the next batch of a job, and those that are wanted: they differ while a batch has begun with others.

    `layout` has the number of tasks of each level, `readers` is that of the tasks that read each source, and `rooms`
    are the limits of records by topic.
    """

    def __init__(self, checkpoint: Checkpoint, partitions: int) -> None:
        """`partitions` is the number of tasks that are wanted for each level and each source."""
        self._checkpoint = checkpoint
        self._partitions = partitions
        self._refusals = Refusals()
        self._wanted_rooms: Rooms = {}
        self.layout = Layout(0)
        self.readers = 0
        self.rooms: Rooms = {}

    def agree(self, deployment: Deployment) -> None:
        """Set the terms for a start of the query. Raises KafkaFailure."""
        self.layout = Layout(self._checkpoint.shards(self._wanted_shards))
        self.readers = self._partitions
        if not deployment.program.levels:
            self.readers = self._checkpoint.readers(self._partitions)
        self._wanted_rooms = self._refusals.applied(self._checkpoint, limits_now(deployment))
        begun = self._checkpoint.begun() is not None
        self.rooms = agree_on_rooms(self._checkpoint, self._wanted_rooms, begun=begun)

    @property
    def outdated(self) -> bool:
        """Whether other terms are wanted as soon as the batch that has begun is done."""
        wanted = self._wanted_shards, self._partitions, self._wanted_rooms
        return (self.layout.shards, self.readers, self.rooms) != wanted

    def learn(self, deployment: Deployment, refused: Mapping[str, Sequence[int]]) -> Mapping[str, int]:
        """Note the limits of topics from their refusals, for the next start. Return the topics with a new limit, and
        the bytes that their records or batches of records stay below from now on."""
        return self._refusals.learn(deployment, self.rooms, refused)

    @property
    def _wanted_shards(self) -> int:
        return Layout.of(self._partitions).shards
