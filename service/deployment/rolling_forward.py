"""Taking an older copy of a checkpoint to where its job has come since.

Law: what is committed to Kafka stays, and a checkpoint goes on only from the state that belongs to it. So the batches
that a copy lacks are done again, each as it was cut then, which the marker topic tells (`kafka.writer.plan_records`):
the state comes out as it was, and the writers find what they would write committed. A batch of which only a part is
committed is the last of them; it is a replay like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.checkpoint.batch_log import COMMITS, OFFSETS, last, note_done, pass_nothing
from service.checkpoint.batch_plan import BatchPlan, end_lines
from service.checkpoint.files import Files
from service.checkpoint.small_files import SmallFiles
from service.checkpoint.version import Version
from service.deployment.bounds import Store
from service.deployment.deployment import Deployment
from service.deployment.replanning import PLAN, SKIPPED
from service.kafka.admin import Cluster
from service.kafka.writer.written import Written, written
from service.runtime.shard_operators import StateMismatch

SHARDS, READERS = "shards", "readers"
"""Small files of a checkpoint: the numbers of tasks."""

ENDS = "markers"
"""The small file with offsets of the marker topic, by writer and partition: what lies before them describes no batch
after `batch`, and of no plan number above `plan`."""


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
        """Not before what was skipped is skipped here, too: a plan number may be the only record of that."""
        if (self._store.read(PLAN) or 0) < self.missing.plan:
            self._store.write(PLAN, self.missing.plan)

    def _pass(self, number: int, plan: BatchPlan | None) -> None:
        """Note a batch as done that was skipped by hand, or in which no task had anything to do."""
        if plan is None:
            pass_nothing(self._files, number)
        else:
            plan.put(self._files)
            earlier = [each for each in self._store.read(SKIPPED) or [] if each["batch"] != number]
            self._store.write(SKIPPED, [*earlier, *(plan.skipped or ())])
        if self._keeps_state:
            Version.before(self._files, number).write(self._files, number)
        note_done(self._files, number)


def roll_forward(deployment: Deployment, files: Files, store: Store) -> RollForward | None:
    """Return what has to be done before the job goes on with this checkpoint, None for nothing. Raises TooOld,
    KafkaFailure.

    Any task may be the one that is ahead, also one of a number that the copy never heard of. So the marker topic is
    read as far as the checkpoint does not know it yet; all of it, where that shows a copy.
    """
    identifier, planned = store.read("id"), last(files, OFFSETS)
    if identifier is None or planned < 0:
        return None
    plan = store.read(PLAN) or 0
    writers = [deployment.writer(n, str(identifier), plan) for n in range(len(deployment.writers.addresses))]
    known = _known_ends(store, planned, plan)
    found = [written(writer, known.get(n)) for n, writer in enumerate(writers)]
    if not _ahead(found, planned, plan):
        _keep_ends(store, planned, plan, [each.ends for each in found])
        return None
    if known:
        found = [written(writer) for writer in writers]
    _check_lookups(deployment)
    missing = _missing(found, files, deployment.settings.topics.markers, deployment.program.levels > 0)
    _check_sources(missing, tuple(source.id for source in deployment.program.sources))
    return RollForward(missing, files, store, keeps_state=deployment.program.levels > 0)


def note_ends(deployment: Deployment, files: Files, newest: int) -> None:
    """Keep in the checkpoint of a running job how long the marker topic is: the next start need not read what lies
    before. Nothing is kept before batch `newest` is planned, which was the newest of the topic when the job was
    started: until then the topic has batches that the checkpoint lacks. Raises KafkaFailure."""
    topic, store = deployment.settings.topics.markers, SmallFiles(files)
    ends = [Cluster(address.librdkafka).end_offsets([topic])[topic] for address in deployment.writers.addresses]
    # What lies before these ends belongs to batches that were planned by then, so it is looked for the last one later.
    planned = last(files, OFFSETS)
    if planned >= newest:
        _keep_ends(store, planned, store.read(PLAN) or 0, ends)


def _keep_ends(store: Store, planned: int, plan: int, ends: Sequence[Mapping[int, int]]) -> None:
    store.write(ENDS, {"batch": planned, "plan": plan, "ends": ends})


def _known_ends(store: Store, planned: int, plan: int) -> dict[int, dict[int, int]]:
    """By writer and partition, where to start reading the marker topic: no batch after `planned` is described before.

    Empty, which means everything, if the stored offsets are newer than the checkpoint, whose files were copied one by
    one."""
    stored = store.read(ENDS)
    if stored is None or stored["batch"] > planned or stored["plan"] > plan:
        return {}
    return {n: {int(p): int(o) for p, o in each.items()} for n, each in enumerate(stored["ends"])}


def _check_lookups(deployment: Deployment) -> None:
    """A batch is done again as it was with the answers that it had, and the newest checkpoint alone has them."""
    asked = sorted({o.lookup.table.name for o in deployment.program.operators if o.lookup is not None})
    if asked:
        raise TooOld(
            "the checkpoint is an older copy, and lacks the lookup results of the batches since\n"
            f"  detail: {', '.join(asked)} would be queried again, and may return other rows\n"
            "  hint:   use the newest copy, or start with a new checkpoint"
        )


def _check_sources(missing: MissingBatches, sources: tuple[int, ...]) -> None:
    """The offsets of a batch, by the position of the source."""
    others = [number for number, plan in missing.plans.items() if plan.sources not in ((), sources)]
    if others:
        raise TooOld(
            "the checkpoint is an older copy, and the query has other sources since\n"
            f"  detail: batch {min(others)} was done by a query that reads other tables\n"
            "  hint:   use a copy that was made since, or start with a new checkpoint"
        )


def _ahead(found: Sequence[Written], planned: int, plan: int) -> bool:
    return any(m.batch > planned or m.plan > plan for each in found for m in each.markers.values())


def _missing(found: Sequence[Written], files: Files, topic: str, keeps_state: bool) -> MissingBatches:
    markers = [marker for each in found for marker in each.markers.values()]
    plans: dict[int, BatchPlan] = {}
    digests: dict[int, dict[int, str]] = {}
    for place, plan in _plans(found):
        known = plans.get(plan.number)
        if known is None or _rank(plan, keeps_state) > _rank(known, keeps_state):
            plans[plan.number] = plan
        if plan.skipped is None:
            digests.setdefault(plan.number, {})[place] = plan.digest
    newest = max(marker.batch for marker in markers)
    while newest + 1 in plans and plans[newest + 1].skipped is not None:
        newest += 1
    done = last(files, COMMITS)
    unknown = [n for n in range(done + 1, newest + 1) if n not in plans]
    if done >= 0 and not keeps_state:
        unknown = _with_records(unknown, plans, {done: end_lines(files, done)} | {n: p.ends for n, p in plans.items()})
    if unknown or done < 0:
        raise TooOld(
            "the checkpoint is an older copy, and Kafka no longer has the offsets of the batches since\n"
            f"  detail: the copy ends with batch {done}, batches up to {newest} are committed; topic {topic} does not"
            f" have batch {(unknown or [0])[0]}\n"
            "  hint:   use a newer copy, or start with a new checkpoint"
        )
    wanted = {number: plan for number, plan in plans.items() if number > done}
    return MissingBatches(done + 1, newest, max(marker.plan for marker in markers), wanted, digests)


def _plans(found: Sequence[Written]) -> list[tuple[int, BatchPlan]]:
    """The descriptions of batches, by the number of the task that wrote them."""
    unpacked = ((place, BatchPlan.from_bytes(one)) for w in found for place, each in w.plans.items() for one in each)
    return [(place, plan) for place, plan in unpacked if plan is not None]


def _with_records(
    unknown: Sequence[int], plans: Mapping[int, BatchPlan], ends: Mapping[int, Sequence[str]]
) -> list[int]:
    """Those of these batches that may have had records. Without state, a batch in which no task had any leaves no plan;
    but then the batch after it begins where the one before it has ended."""
    found = []
    for number in unknown:
        after = min((n for n in plans if n > number), default=None)
        before = max(n for n in ends if n < number)
        if after is None or not plans[after].begins_at(ends[before]):
            found.append(number)
    return found


def _rank(plan: BatchPlan, keeps_state: bool) -> tuple[int, int]:
    """The sort key of the plans that were found for one batch, of which the greatest is valid.

    With state, a plan that was carried out is greater than one that skips: a batch that any task has committed cannot
    have been skipped. Without, the highest number wins, since the remaining tasks may have been skipped later; of one
    number the plan that was carried out, since the command that was to skip it was killed.
    """
    done = plan.skipped is None
    return (done, plan.plan) if keeps_state else (plan.plan, done)
