"""A driver that repeats a batch and wakes up late: another one has taken the batch over, and removes its files.

Either the version of the late driver counts, and all that it names is there, or the driver notices.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from service.checkpoint.blocks import FOLDER, BlockWriter, Manifest, of_repeat
from service.checkpoint.files import Files, FolderFiles, StateMissing, StoredAt
from service.checkpoint.small_files import PLAN_NUMBER, SmallFiles
from service.checkpoint.version import BatchTakenOver, ShardState, Version
from service.deployment.replanning import Replanning
from service.spark.query.batch_end import BatchEnd
from service.spark.query.job_spec import JobSpec, WorkerJob
from service.spark.query.stateful import LevelTask
from service.spark.query.task_batch import TaskBatch
from tests.spark.test_batch_end import BATCH, Batch, batch_end, report, spec

__all__ = ["spec"]

LATE, NEW = "the late driver", "the new process"

STEPS = {LATE: 3, NEW: 5}
"""Operations whose order matters: a look at the plan number, the version, another look; of the other one a list of the
files, the plan number read and taken, the version, and the removal."""


class Turns:
    """Lets each of two threads do one step at a time, in a given order."""

    def __init__(self, order: Iterable[str]) -> None:
        self._order = list(order)
        self._begun: set[str] = set()
        self._changed = threading.Condition()

    def take(self, who: str) -> None:
        """Wait for the turn, which ends with the next call of this thread, or with `end`."""
        with self._changed:
            if who in self._begun and self._order[:1] == [who]:
                del self._order[0]
                self._changed.notify_all()
            self._begun.add(who)
            assert self._changed.wait_for(lambda: who not in self._order or self._order[0] == who, 60)

    def end(self, who: str) -> None:
        """Leave all other turns to the other thread."""
        with self._changed:
            self._order = [each for each in self._order if each != who]
            self._changed.notify_all()


class InTurn(FolderFiles):
    """The checkpoint, as one of the two sees it."""

    def __init__(self, root: str, turns: Turns, who: str) -> None:
        super().__init__(root)
        self._step: Callable[[], None] = lambda: turns.take(who)

    def put(self, name: str, parts: Sequence[Any]) -> None:
        self._at(name)
        super().put(name, parts)

    def get(self, name: str) -> bytes | None:
        self._at(name)
        return super().get(name)

    def names(self, folder: str) -> list[str]:
        if folder == FOLDER:
            self._step()
        return super().names(folder)

    def remove(self, names: Iterable[str]) -> None:
        wanted = list(names)
        if any(name.startswith(FOLDER) for name in wanted):
            self._step()
        super().remove(wanted)

    def _at(self, name: str) -> None:
        if name == f"tailrace/{PLAN_NUMBER}.json" or name.endswith(f"{BATCH:09d}.json"):
            self._step()


def written(files: Files, shard: int, *, repeats: bool) -> StoredAt:
    """The files of a task that has ended; returns the place of its manifest."""
    writer = BlockWriter(files, BATCH, 1, shard, repeats=repeats)
    block = writer.add_at_once(pa.py_buffer(b"a block"))
    place = writer.add(pa.py_buffer(Manifest(b"{}", {"a": block}).to_bytes()))
    writer.close()
    return place


def reported(places: Sequence[StoredAt]) -> Batch:
    states = (ShardState(1, n, {} if n == 0 else None, place).to_json() for n, place in enumerate(places))
    return Batch(*(report(n, state=(state,)) for n, state in enumerate(states)))


def whole(files: Files) -> bool:
    """Whether all is there that the version of the batch names."""
    try:
        for place in Version.before(files, BATCH + 1).levels[1].manifests:
            for block in Manifest.from_bytes(files.block(place).to_pybytes()).blocks.values():
                files.block(block)
    except StateMissing:
        return False
    return True


def new_process(files: Files) -> Replanning:
    """A process that has noted that it begins the batch, of which every task has committed."""
    source = SimpleNamespace(id=0, table=SimpleNamespace(name="t", connector=SimpleNamespace(kind="kafka")))
    deployment = SimpleNamespace(
        program=SimpleNamespace(sources=[source], levels=1),
        writers=SimpleNamespace(addresses=[None]),
        checkpoint="s3a://bucket/job",
    )
    made: Any = Replanning(deployment, files, SmallFiles(files), NEW)  # type: ignore[arg-type]
    made._fence = lambda places, plan: None
    made._is_committed = lambda *_: True
    made.begun_in_vain()
    process: Replanning = made
    return process


def late_driver(spec: JobSpec, files: Files) -> BatchEnd:
    end = batch_end(replace(spec, replayed=BATCH))
    end._files = files
    return end


ORDERS = [
    [LATE if step in turns else NEW for step in range(sum(STEPS.values()))]
    for turns in combinations(range(sum(STEPS.values())), STEPS[LATE])
]


def test_in_any_order_of_their_steps_no_version_counts_whose_files_are_removed(spec: JobSpec, tmp_path: Path) -> None:
    outcomes: set[tuple[bool, bool]] = set()
    for number, order in enumerate(ORDERS):
        root = str(tmp_path / str(number))
        plain, turns = FolderFiles(root), Turns(order)
        plain.put(f"offsets/{BATCH}", [FolderFiles(spec.state.url).get(f"offsets/{BATCH}") or b""])
        SmallFiles(plain).write("shards", 2)
        places = [written(plain, shard, repeats=True) for shard in range(2)]
        ours, theirs = late_driver(spec, InTurn(root, turns, LATE)), new_process(plain)
        theirs._files = InTurn(root, turns, NEW)
        theirs._store = SmallFiles(theirs._files)
        noted: list[bool] = []

        def end(ours: BatchEnd, places: list[StoredAt], noted: list[bool], turns: Turns) -> None:
            with suppress(BatchTakenOver):
                reported(places).given_to(ours)
                noted.append(True)  # Spark would note it now
            turns.end(LATE)

        def remove(theirs: Replanning, turns: Turns) -> None:
            theirs.remove_leftovers()
            turns.end(NEW)

        threads = [
            threading.Thread(target=end, args=(ours, places, noted, turns)),
            threading.Thread(target=remove, args=(theirs, turns)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert not noted or whole(plain), order
        outcomes.add((bool(noted), bool(plain.names(FOLDER))))
    assert outcomes == {(True, True), (False, False), (False, True)}


@pytest.mark.parametrize(("replayed", "repeats"), [(0, True), (-1, False)])
def test_the_files_of_a_task_tell_whether_its_run_repeats_the_batch(
    spec: JobSpec, replayed: int, repeats: bool
) -> None:
    job = WorkerJob(replace(spec, replayed=replayed))
    at = TaskBatch(number=0, now=0, identifier=1, task=0, attempt=0)
    list(LevelTask(b"", 1)._advance(job, iter(()), at))
    names = spec.state.open().names(FOLDER)
    assert [of_repeat(name) for name in names] == [repeats]


def test_a_late_driver_leaves_the_version_of_the_one_that_took_over_alone(spec: JobSpec) -> None:
    files = FolderFiles(spec.state.url)
    late, new = ([written(files, shard, repeats=True) for shard in range(2)] for _ in range(2))
    ours = late_driver(spec, files)
    SmallFiles(files).write(PLAN_NUMBER, 1)
    reported(new).given_to(batch_end(replace(spec, replayed=BATCH, plan=1)))
    settled = Version.before(files, BATCH + 1)
    with pytest.raises(BatchTakenOver, match=f"another driver works on the checkpoint .* it repeats batch {BATCH}"):
        reported(late).given_to(ours)
    assert Version.before(files, BATCH + 1) == settled
    assert whole(files)


def test_the_run_that_planned_a_batch_asks_nothing_more(spec: JobSpec) -> None:
    """Its files stay, so its version may count; and a batch that is not repeated costs no request."""
    asked: list[str] = []

    class Counted(FolderFiles):
        def get(self, name: str) -> bytes | None:
            asked.append(name)
            return super().get(name)

    files = Counted(spec.state.url)
    SmallFiles(files).write(PLAN_NUMBER, 1)
    end = batch_end(replace(spec, replayed=BATCH - 1))
    end._files = files
    reported([written(files, shard, repeats=False) for shard in range(2)]).given_to(end)
    assert asked == [f"offsets/{BATCH}"]
    assert whole(files)
