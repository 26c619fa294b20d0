"""The taking over of a checkpoint by the query of a job, which may be another query or newer than the checkpoint.

Law: a query that is refused changes nothing. So whatever may refuse it is checked first: what the query means, the
Kafka that it writes to, and for other sources their bounds and writers. Batches that an older copy of the checkpoint
lacks are repeated one by one, before any other (`service/deployment/rolling_forward.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from service.checkpoint.files import Files
from service.deployment.bounds import agree_on_bounds
from service.deployment.deployment import Deployment
from service.deployment.kafka_identity import agree_on_kafka
from service.deployment.rolling_forward import MissingBatches, RollForward, roll_forward
from service.deployment.upgrading import recovered_query
from service.deployment.writers import agree_on_writers
from service.plan.kept_tables import OPERATORS, kept_operators
from service.plan.program import Program
from service.plan.upgrade import Upgrade
from service.runtime.shard_operators import StateMismatch
from service.spark.supervision.checkpoint import Checkpoint


class Takeover:
    """The takeover of one checkpoint, whose files `files` opens. Each start of the query calls `plan_missing`, `agree`
    and, after its last step that may refuse the query, `take`.

    `upgrade` says what happens to the state under this query, None if the checkpoint has this query already. `redone`
    are the digests of what the tasks of a repeated batch had read, by task; None unless the checkpoint lacks the batch.
    """

    def __init__(self, deployment: Deployment, checkpoint: Checkpoint, files: Callable[[], Files]) -> None:
        self._deployment = deployment
        self._checkpoint = checkpoint
        self._files = files
        self.upgrade: Upgrade | None = None
        self.redone: Mapping[int, str] | None = None
        self._rolling: RollForward | None = None
        self._looked = False
        self._taken: Upgrade | None = None

    @property
    def missing(self) -> MissingBatches | None:
        """The batches that the checkpoint lacks, None if it is the newest."""
        return None if self._rolling is None else self._rolling.missing

    def plan_missing(self) -> bool:
        """Plan the next batch that the checkpoint lacks. Return whether it must run alone, since others follow it.
        Raises StateMismatch, KafkaConfigError, KafkaFailure if the checkpoint cannot be continued."""
        if not self._looked:
            recovered_query(self._files())  # of a takeover that failed in this process
            upgrade = self._checkpoint.agree(self._deployment.program.meaning)
            agree_on_kafka(self._checkpoint, self._deployment.kafka)  # markers of another topic would be meaningless
            self._rolling = roll_forward(self._deployment, self._files(), self._checkpoint)
            if upgrade is not None and upgrade.other_sources:
                self._take_sources(upgrade)
            self._looked = True
        self.redone = None
        number = None if self._rolling is None else self._rolling.plan_next()
        if self._rolling is None or number is None or number == self._rolling.missing.last:
            return False
        self.redone = self._rolling.missing.digests.get(number, {})
        return True

    def agree(self) -> None:
        """Find out what happens to the state. Raises StateMismatch if the query cannot continue with it."""
        self.upgrade = self._checkpoint.agree(self._deployment.program.meaning) or self._taken

    def take(self, program: Program) -> None:
        """Make the checkpoint that of `program`."""
        changed = self.upgrade is not None and self.upgrade is not self._taken
        if changed or not self._checkpoint.taken():
            self._checkpoint.take(program.meaning, self._files())
        self._taken = None
        operators = [each.to_json() for each in kept_operators(program)]
        if self._checkpoint.read(OPERATORS) != operators:
            self._checkpoint.write(OPERATORS, operators)

    def _take_sources(self, upgrade: Upgrade) -> None:
        """Take the checkpoint over for a query with other sources. All later steps need the log in their order, so
        every check that may refuse the query comes first."""
        d = self._deployment
        if self._rolling is not None:
            raise StateMismatch(
                "the checkpoint is an older copy, and the query has other sources\n"
                "  hint:   run the old query until it has caught up with its markers, then change it"
            )
        agree_on_bounds(self._checkpoint, d.program, d.bounded, d.limits)
        agree_on_writers(self._checkpoint, d.writers, {output.id: output.table.name for output in d.program.outputs})
        self._checkpoint.take(d.program.meaning, self._files())
        self._taken = upgrade
