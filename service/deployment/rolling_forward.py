"""Taking an older copy of a checkpoint to where its job has come since.

Law: what is committed to Kafka stays, and a checkpoint goes on only from the state that belongs to it. So the batches
that a copy lacks are done again, each as it was cut then, which the marker topic tells (`kafka.writer.plan_records`):
the state comes out as it was, and the writers find what they would write committed. A batch of which only a part is
committed is the last of them; it is a replay like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.checkpoint.batch_log import COMMITS, OFFSETS, PlannedBatch, ends, last, note_done, pass_nothing
from service.checkpoint.batch_plan import BatchPlan
from service.checkpoint.files import Files
from service.checkpoint.version import Version
from service.deployment.bounds import Store
from service.deployment.planning import Deployment
from service.deployment.replanning import PLAN, SKIPPED, places_of
from service.kafka.writer.marker import Marker
from service.kafka.writer.plan_records import all_written, last_markers
from service.runtime.shard_operators import StateMismatch

SHARDS, READERS = "shards", "readers"
"""Small files of a checkpoint: the numbers of tasks."""

_MANY = 64
"""Places from which on the whole marker topic is read at once, instead of its end for each of them."""


class TooOld(StateMismatch):
    """A copy that lacks batches of which Kafka does not tell any more how they were cut."""


@dataclass(frozen=True, slots=True)
class MissingBatches:
    """The batches from `first` to `last` are committed, and unknown to the checkpoint. `plans` are theirs, `digests`
    those of what their tasks read, in hex, by task; `plan` is the plan number of the newest marker."""

    first: int
    last: int
    plan: int
    plans: Mapping[int, BatchPlan]
    digests: Mapping[int, Mapping[int, str]]


class RollForward:
    """Does what is to be done between the batches of one job, while its query is stopped."""

    def __init__(self, missing: MissingBatches, files: Files, store: Store, *, keeps_state: bool) -> None:
        self.missing = missing
        self._files = files
        self._store = store
        self._keeps_state = keeps_state

    def plan_next(self) -> int | None:
        """Plan the next batch that is missing, and return its number; None when there is none any more.

        It may be called again for as long as that batch is not done.
        """
        for number in range(last(self._files, COMMITS) + 1, self.missing.last + 1):
            plan = self.missing.plans.get(number)
            if plan is not None and plan.skipped is None:
                self._take_plan_number()
                self._store.write(SHARDS, plan.shards)
                self._store.write(READERS, plan.readers)
                plan.put(self._files)
                return number
            self._pass(number, plan)
        self._take_plan_number()
        return None

    def _take_plan_number(self) -> None:
        """Not before what was skipped is skipped here, too: a plan number may be all that tells of that."""
        if (self._store.read(PLAN) or 0) < self.missing.plan:
            self._store.write(PLAN, self.missing.plan)

    def _pass(self, number: int, plan: BatchPlan | None) -> None:
        """Note a batch as done that was skipped by hand, or in which no task had anything to do."""
        if plan is None:
            pass_nothing(self._files, number)
        else:
            plan.put(self._files)
            told = [each for each in self._store.read(SKIPPED) or [] if each["batch"] != number]
            self._store.write(SKIPPED, [*told, *(plan.skipped or ())])
        if self._keeps_state:
            Version.before(self._files, number).write(self._files, number)
        note_done(self._files, number)


def roll_forward(deployment: Deployment, files: Files, store: Store, shards: int) -> RollForward | None:
    """Return what has to be done before the job goes on with this checkpoint, None for nothing. Its next batches would
    run in so many `shards`. Raises TooOld, KafkaFailure."""
    identifier, planned = store.read("id"), last(files, OFFSETS)
    if identifier is None or planned < 0:
        return None
    plan = store.read(PLAN) or 0
    writers = [deployment.writer(n, str(identifier), plan) for n in range(len(deployment.writers.addresses))]
    every = ends(files, planned)
    known = PlannedBatch(planned, [None] * len(every), every)
    places = sorted(
        {*places_of(deployment.program, store, known), *(range(shards) if deployment.program.levels else ())}
    )
    if len(places) <= _MANY:
        found = [marker for writer in writers for marker in last_markers(writer, places).values()]
        if not _ahead(found, planned, plan):
            return None
    written = [all_written(writer) for writer in writers]
    markers = [marker for each in written for marker in each.markers.values()]
    if not _ahead(markers, planned, plan):
        return None
    _check_lookups(deployment)
    by_place = [(place, each) for w in written for place, packed in w.plans.items() for each in _unpacked(packed)]
    keeps_state = deployment.program.levels > 0
    missing = _missing(markers, by_place, last(files, COMMITS), deployment.settings.topics.markers, keeps_state)
    return RollForward(missing, files, store, keeps_state=keeps_state)


def _check_lookups(deployment: Deployment) -> None:
    """A batch is done again as it was with the answers that it had, and the newest checkpoint alone has them."""
    asked = sorted({o.lookup.table.name for o in deployment.program.operators if o.lookup is not None})
    if asked:
        raise TooOld(
            "the checkpoint is an older copy, and does not have what databases have answered since\n"
            f"  detail: {', '.join(asked)} would be asked anew, and may answer something else\n"
            "  hint:   use the newest copy, or start from a fresh checkpoint"
        )


def _ahead(markers: Sequence[Marker], planned: int, plan: int) -> bool:
    return any(marker.batch > planned or marker.plan > plan for marker in markers)


def _unpacked(packed: Sequence[bytes]) -> list[BatchPlan]:
    found = map(BatchPlan.from_bytes, packed)
    return [each for each in found if each is not None]


def _missing(
    markers: Sequence[Marker], by_place: Sequence[tuple[int, BatchPlan]], done: int, topic: str, keeps_state: bool
) -> MissingBatches:
    plans: dict[int, BatchPlan] = {}
    digests: dict[int, dict[int, str]] = {}
    for place, plan in by_place:
        known = plans.get(plan.number)
        if known is None or _rank(plan, keeps_state) > _rank(known, keeps_state):
            plans[plan.number] = plan
        if plan.skipped is None:
            digests.setdefault(plan.number, {})[place] = plan.digest
    newest = max(marker.batch for marker in markers)
    while newest + 1 in plans and plans[newest + 1].skipped is not None:
        newest += 1
    oldest = min(plans, default=newest + 1)
    # Without state, a batch in which no task had rows has left nothing.
    unknown = [n for n in range(done + 1, newest + 1) if n not in plans and (keeps_state or n < oldest)]
    if unknown or done < 0:
        raise TooOld(
            "the checkpoint is an older copy, and Kafka does not tell any more how the batches since were cut\n"
            f"  detail: the copy ends with batch {done}, batches up to {newest} are committed; topic {topic} does not"
            f" tell of batch {(unknown or [0])[0]}\n"
            "  hint:   use a newer copy, or start from a fresh checkpoint"
        )
    wanted = {number: plan for number, plan in plans.items() if number > done}
    return MissingBatches(done + 1, newest, max(marker.plan for marker in markers), wanted, digests)


def _rank(plan: BatchPlan, keeps_state: bool) -> tuple[int, int]:
    """With state, a batch that a task has committed was never skipped, whatever a command that was to skip it has told.
    Without, the newest plan counts: what a part of the tasks had done was skipped by the others later. Where a command
    that was to skip a batch was killed, the batch was done under the number that the command had taken."""
    done = plan.skipped is None
    return (done, plan.plan) if keeps_state else (plan.plan, done)
