"""A batch that cannot be replanned, and is killed again and again: what its attempts leave is bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from service.checkpoint.address import CheckpointAddress
from service.checkpoint.batch_log import note_done
from service.checkpoint.blocks import FOLDER, BlockWriter, Manifest
from service.checkpoint.files import Files, FolderFiles
from service.checkpoint.small_files import PLAN_NUMBER, SmallFiles
from service.checkpoint.sweep import KEPT, sweep
from service.checkpoint.version import LevelState, Version
from service.deployment.replanning import PROCESSES, PlanKept, Replanning
from tests.spark.fake_s3 import fake_s3, s3_settings
from tests.spark.store_requests import RequestLog

BATCH = 7

STORE, MOUNT = "s3a://bucket/job", "/mnt/of/several/machines/job"

A_FILE = 3
"""Requests that remove a file: Arrow looks whether it is one, removes it, and makes sure that the folder stays."""

Committed = Mapping[int, int]
"""The batch of the marker of each of two tasks."""


class Job:
    """A job with two tasks, whose batch of two records cannot be smaller, and its processes, one after another."""

    def __init__(self, files: Files, committed: Committed = {}, clusters: int = 1, place: str = STORE) -> None:  # noqa: B006
        self.files = files
        self.memory = SmallFiles(files)
        self.while_fencing: Callable[[], object] = lambda: None
        self._committed = committed
        source = SimpleNamespace(
            id=0, table=SimpleNamespace(name="t", connector=SimpleNamespace(kind="kafka", topic_pattern=None))
        )
        self._deployment: Any = SimpleNamespace(
            program=SimpleNamespace(sources=[source], levels=1),
            writers=SimpleNamespace(addresses=[None] * clusters),
            checkpoint=place,
        )

    def process(self, name: str) -> Replanning:
        """What a process of this name does before it begins the batch."""
        made: Any = Replanning(self._deployment, self.files, self.memory, name)
        made._fence = lambda places, plan: self.while_fencing()
        made._is_committed = lambda number, place, *_: self._committed.get(place, BATCH - 1) >= BATCH
        replanning: Replanning = made
        return replanning

    def starts(self, name: str) -> None:
        """A process starts, as `Jobs` does it."""
        process = self.process(name)
        if process.begun_in_vain():
            with suppress(PlanKept):
                process.cut()
            process.remove_leftovers()

    def names(self) -> set[str]:
        return set(self.files.names(FOLDER))


def in_a_checkpoint(files: Files) -> Files:
    """Batch 6 is done, and batch 7 is planned."""
    for number, end in ((BATCH - 1, 10), (BATCH, 11)):
        text = f'v1\n{{"batchTimestampMs":1}}\n{{"t":{{"0":{end},"1":{end}}}}}'
        files.put(f"offsets/{number}", [text.encode()])
    Version({1: LevelState({}, ())}).write(files, BATCH - 1)
    note_done(files, BATCH - 1)
    for name, value in (("id", "c1"), ("shards", 2)):
        SmallFiles(files).write(name, value)
    return files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return in_a_checkpoint(FolderFiles(str(tmp_path)))


@pytest.fixture
def requests() -> RequestLog:
    return RequestLog()


@pytest.fixture
def stored(tmp_path: Path, requests: RequestLog) -> Iterator[Files]:
    """The files in an object store."""
    with fake_s3(requests) as (address, _):
        hadoop = {name.removeprefix("spark.hadoop."): value for name, value in s3_settings(address).items()}
        yield in_a_checkpoint(CheckpointAddress(STORE, hadoop, str(tmp_path), 1 << 20).open())


def attempt(files: Files, *, repeats: bool, blocks: int = 1) -> Manifest:
    """What an attempt writes that is killed before its tasks end."""
    writer = BlockWriter(files, BATCH, 1, 0, repeats=repeats)
    return Manifest(b"{}", {str(n): writer.add_at_once(pa.py_buffer(b"block %d" % n)) for n in range(blocks)})


def version(files: Files, *, repeats: bool) -> set[str]:
    """An attempt whose driver has stored the version, and was killed. Returns the names of its files."""
    writer = BlockWriter(files, BATCH, 1, 0, repeats=repeats)
    block = writer.add_at_once(pa.py_buffer(b"block"))
    place = writer.add(pa.py_buffer(Manifest(b"{}", {"a": block}).to_bytes()))
    writer.close()
    Version({1: LevelState({}, (place,))}).write(files, BATCH)
    return {each.file.removeprefix(f"{FOLDER}/") for each in (block, place)}


CASES = {
    "nothing is committed, and it cannot be smaller": ({}, 1, STORE, 0, 1),
    "the first task has not committed": ({1: BATCH}, 1, STORE, 0, 1),
    "the first task has committed": ({0: BATCH}, 1, STORE, 1, 1),
    "all tasks have committed": ({0: BATCH, 1: BATCH}, 1, STORE, 1, 1),
    "nothing goes to Kafka": ({}, 0, STORE, 1, 1),
    "on a mount, where one task has committed": ({0: BATCH}, 1, MOUNT, 1, 1),
    "on a mount, where all tasks have committed": ({0: BATCH, 1: BATCH}, 1, MOUNT, 1, 20),
}
"""What is committed; the clusters that are written to; where the checkpoint is; how many files of the run that planned
the batch stay, and of twenty that repeat it."""


@pytest.mark.parametrize(("committed", "clusters", "place", "of_first", "of_repeats"), CASES.values(), ids=CASES.keys())
def test_attempts_that_are_killed_one_after_another_leave_no_more_than_the_first_and_the_last(
    committed: Committed, clusters: int, place: str, of_first: int, of_repeats: int, files: Files
) -> None:
    job = Job(files, committed, clusters, place)
    attempt(files, repeats=False)
    first = job.names()
    for number in range(20):
        job.starts(f"process {number}")
        attempt(files, repeats=True)
        if of_repeats == 1 and number > PROCESSES:
            assert len(job.names()) == of_first + 1
    assert len(job.names() & first) == of_first
    assert len(job.names() - first) == of_repeats


def test_what_stays_of_a_batch_goes_after_it_is_done(files: Files) -> None:
    job = Job(files, {0: BATCH, 1: BATCH})
    attempt(files, repeats=False)
    for number in range(PROCESSES + 2):
        job.starts(f"process {number}")
        attempt(files, repeats=True)
    needed = version(files, repeats=True)
    assert len(job.names() - needed) > 0
    stands = Version.before(files, BATCH + 1)
    for number in range(BATCH + 1, BATCH + KEPT + 1):
        stands.write(files, number)
    sweep(files, BATCH + KEPT)
    assert job.names() == needed


@pytest.mark.parametrize("committed", [{}, {0: BATCH}, {0: BATCH, 1: BATCH}], ids=["nothing", "a part", "all"])
@pytest.mark.parametrize("repeats", [False, True], ids=["of the first run", "of a repeat"])
def test_a_version_that_its_driver_had_no_time_to_note_keeps_its_files(
    repeats: bool, committed: Committed, files: Files
) -> None:
    job = Job(files, committed)
    needed = version(files, repeats=repeats)
    for number in range(PROCESSES + 3):
        job.starts(f"process {number}")
        attempt(files, repeats=True)
    assert needed <= job.names()
    assert len(job.names()) == len(needed) + 1


def test_a_process_that_wakes_up_leaves_one_that_has_begun_later_alone(files: Files) -> None:
    job = Job(files, {0: BATCH})
    older, newer = job.process("older"), job.process("newer")
    older.begun_in_vain()
    newer.begun_in_vain()
    attempt(files, repeats=True)
    before = job.names(), job.memory.read(PLAN_NUMBER)
    older.remove_leftovers()
    assert (job.names(), job.memory.read(PLAN_NUMBER)) == before, "nor does it fence the other's tasks"
    newer.remove_leftovers()
    assert not job.names()


def test_files_of_a_run_that_has_begun_since_the_plan_number_was_taken_stay(files: Files) -> None:
    job = Job(files, {0: BATCH})
    attempt(files, repeats=True)
    old = job.names()
    process = job.process("one")
    process.begun_in_vain()
    job.while_fencing = lambda: attempt(files, repeats=True)
    process.remove_leftovers()
    assert len(job.names()) == 1
    assert not job.names() & old


def test_the_plan_number_is_taken_before_anything_is_fenced(files: Files) -> None:
    job = Job(files, {0: BATCH})
    attempt(files, repeats=True)
    process, seen = job.process("one"), list[int]()
    process.begun_in_vain()
    job.while_fencing = lambda: seen.append(job.memory.read(PLAN_NUMBER))
    process.remove_leftovers()
    assert seen == [1]


def test_a_batch_without_files_costs_no_transaction(files: Files) -> None:
    job, fenced = Job(files), list[None]()
    job.while_fencing = lambda: fenced.append(None)
    process = job.process("one")
    process.begun_in_vain()
    process.remove_leftovers()
    assert not fenced
    assert job.memory.read(PLAN_NUMBER) is None


def test_the_requests_to_a_store_are_few_beside_those_that_remove(stored: Files, requests: RequestLog) -> None:
    job = Job(stored, {0: BATCH})
    for _ in range(2):
        attempt(stored, repeats=True)
    process = job.process("one")
    process.begun_in_vain()
    before = len(requests.all())
    process.remove_leftovers()
    asked = requests.all()[before:]
    assert not job.names()
    # The logs of batches, which batch is planned, the files, who has begun it, the plan number, the tasks, a version.
    assert len(asked) == 2 + 4 + 1 + 2 + 4 + 2 + 1 + 2 * A_FILE
