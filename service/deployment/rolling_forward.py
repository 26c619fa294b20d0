"""Bringing an older copy of a checkpoint to where its job is now.

Law: what is committed to Kafka stays, and a checkpoint continues only from the state that belongs to it. So the batches
that a copy lacks are repeated, each with the records that it had, which the marker topic describes
(`kafka.writer.plan_records`). The state comes out as it was, and the writers find their output committed. The last of
these batches may be committed only in part; it is a replay like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.checkpoint.batch_log import COMMITS, OFFSETS, last, note_done, pass_nothing
from service.checkpoint.batch_plan import BatchPlan, end_lines
from service.checkpoint.files import Files
from service.checkpoint.small_files import PLAN_NUMBER, SmallFiles
from service.checkpoint.version import Version
from service.deployment.bounds import Store
from service.deployment.deployment import Deployment
from service.deployment.replanning import SKIPPED
from service.kafka.admin import Cluster
from service.kafka.writer.written import Written, written
from service.runtime.shard_operators import StateMismatch

SHARDS, READERS = "shards", "readers"
"""Small files of a checkpoint: the numbers of tasks."""

ENDS = "markers"
"""The small file with offsets of the marker topic, by writer and partition: the records before them describe no batch
after `batch`, and no plan number above `plan`."""


class TooOld(StateMismatch):
    """A copy lacks batches whose plans Kafka no longer has."""


@dataclass(frozen=True, slots=True)
class MissingBatches:
    """The batches from `first` to `last` are committed, and unknown to the checkpoint. `plans` are their plans,
    `digests` those of what their tasks read, in hex, by task; `plan` is the plan number of the newest marker."""

    first: int
    last: int
    plan: int
    plans: Mapping[int, BatchPlan]
    digests: Mapping[int, Mapping[int, str]]


class RollForward:
    """Repeats the missing batches of one job, between its batches, while its query is stopped."""

    def __init__(self, missing: MissingBatches, files: Files, store: Store, *, keeps_state: bool) -> None:
        self.missing = missing
        self._files = files
        self._store = store
        self._keeps_state = keeps_state

    def plan_next(self) -> int | None:
        """Plan the next missing batch, and return its number; None if there is none left. It may be called again until
        that batch is done."""
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
        """Take over the newest plan number, but only after skipped batches are skipped here, too: a plan number may be
        the only record of a skip."""
        if (self._store.read(PLAN_NUMBER) or 0) < self.missing.plan:
            self._store.write(PLAN_NUMBER, self.missing.plan)

    def _pass(self, number: int, plan: BatchPlan | None) -> None:
        """Mark a batch as done that was skipped by hand, or in which no task had anything to do."""
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
    """Return what must be repeated before the job continues with this checkpoint, None for nothing. Raises TooOld,
    KafkaFailure.

    Any task may be ahead, also one with a number that the copy does not know. So the part of the marker topic is read
    that is new to the checkpoint, and all of it if that shows an older copy.
    """
    identifier, planned = store.read("id"), last(files, OFFSETS)
    if identifier is None or planned < 0:
        return None
    plan = store.read(PLAN_NUMBER) or 0
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
    """Store the end of the marker topic in the checkpoint of a running job, so that the next start does not read what
    lies before it.

    Nothing is stored until batch `newest` is planned, the newest batch of the topic when the job was started: until
    then the topic has batches that the checkpoint lacks. Raises KafkaFailure.
    """
    topic, store = deployment.settings.topics.markers, SmallFiles(files)
    ends = [Cluster(address.librdkafka).end_offsets([topic])[topic] for address in deployment.writers.addresses]
    # All records before these ends belong to batches that are planned by then, so the last planned batch is read
    # afterwards.
    planned = last(files, OFFSETS)
    if planned >= newest:
        _keep_ends(store, planned, store.read(PLAN_NUMBER) or 0, ends)


def _keep_ends(store: Store, planned: int, plan: int, ends: Sequence[Mapping[int, int]]) -> None:
    store.write(ENDS, {"batch": planned, "plan": plan, "ends": ends})


def _known_ends(store: Store, planned: int, plan: int) -> dict[int, dict[int, int]]:
    """By writer and partition, where to start reading the marker topic: no batch after `planned` is described before
    it.

    Empty, which means the whole topic, if the stored offsets are newer than the checkpoint, whose files were copied one
    by one.
    """
    stored = store.read(ENDS)
    if stored is None or stored["batch"] > planned or stored["plan"] > plan:
        return {}
    return {n: {int(p): int(o) for p, o in each.items()} for n, each in enumerate(stored["ends"])}


def _check_lookups(deployment: Deployment) -> None:
    """Refuse to repeat batches of lookup joins: only the newest checkpoint has the answers that a batch got."""
    asked = sorted({o.lookup.table.name for o in deployment.program.operators if o.lookup is not None})
    if asked:
        raise TooOld(
            "the checkpoint is an older copy, and lacks the lookup results of the batches since\n"
            f"  detail: {', '.join(asked)} would be queried again, and may return other rows\n"
            "  hint:   use the newest copy, or start with a new checkpoint"
        )


def _check_sources(missing: MissingBatches, sources: tuple[int, ...]) -> None:
    """Check the offsets of a batch, by the position of the source."""
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
    """The plans of batches, by the number of the task that wrote them."""
    unpacked = ((place, BatchPlan.from_bytes(one)) for w in found for place, each in w.plans.items() for one in each)
    return [(place, plan) for place, plan in unpacked if plan is not None]


def _with_records(
    unknown: Sequence[int], plans: Mapping[int, BatchPlan], ends: Mapping[int, Sequence[str]]
) -> list[int]:
    """Those of these batches that may have had records.

    Without state, a batch leaves no plan if no task had any record; then the next batch begins where the previous one
    ended.
    """
    found = []
    for number in unknown:
        after = min((n for n in plans if n > number), default=None)
        before = max(n for n in ends if n < number)
        if after is None or not plans[after].begins_at(ends[before]):
            found.append(number)
    return found


def _rank(plan: BatchPlan, keeps_state: bool) -> tuple[int, int]:
    """The sort key of the plans found for one batch: the greatest is valid.

    With state, a plan that was carried out is greater than one that skips, since a batch that any task has committed
    cannot have been skipped. Without state the highest number wins, since the remaining tasks may have been skipped
    later; within one number the plan that was carried out wins, since the command that was to skip the batch was
    killed.
    """
    done = plan.skipped is None
    return (done, plan.plan) if keeps_state else (plan.plan, done)
