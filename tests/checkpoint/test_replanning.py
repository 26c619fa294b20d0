"""A batch that is planned may be given up, whole, as long as nothing of it is committed; whenever that dies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from service.checkpoint.batch_log import last, unfinished
from service.checkpoint.blocks import FOLDER as BLOCKS
from service.checkpoint.files import FolderFiles, StoredAt
from service.checkpoint.small_files import PLAN_NUMBER, SmallFiles
from service.checkpoint.version import LevelState, Version
from service.deployment.replanning import CUT, SKIPPED, PlanKept, Replanning
from tests.checkpoint.test_batch_log import TICK, planned, written

STATE = Version({1: LevelState({"time": 1}, (StoredAt("a", 0, 4),))})


class Killed(BaseException):
    """kill -9."""


class Dying(FolderFiles):
    """Files of a process that is killed ahead of its n-th change."""

    def __init__(self, root: str, alive: int) -> None:
        super().__init__(root)
        self.alive = alive

    def _live(self) -> None:
        self.alive -= 1
        if self.alive < 0:
            raise Killed

    def put(self, name: str, parts: Sequence[Any]) -> None:
        self._live()
        super().put(name, parts)

    def remove(self, names: Any) -> None:
        for name in names:
            self._live()
            super().remove([name])


def replanning(
    files: FolderFiles,
    monkeypatch: pytest.MonkeyPatch,
    committed: Mapping[int | tuple[int, int], int],
    levels: int = 1,
    clusters: int = 1,
    recorded: list[tuple[int, bool]] | None = None,
) -> Replanning:
    """Of a job with two tasks; `committed` is the batch of the marker of each (of one cluster, where that is named),
    which are read after the plan number was taken. `recorded` is filled with the task of each marker that is committed
    again, and whether it says that the batch is skipped."""
    source = SimpleNamespace(
        id=0, table=SimpleNamespace(name="orders", connector=SimpleNamespace(kind="kafka", topic_pattern=None))
    )
    deployment: Any = SimpleNamespace(
        program=SimpleNamespace(sources=[source], levels=levels), writers=SimpleNamespace(addresses=[None] * clusters)
    )
    memory = SmallFiles(files)
    made = Replanning(deployment, files, memory)

    def is_committed(_: Replanning, number: int, place: int, plan: int, batch: int, skipped: bytes) -> bool:
        assert memory.read(PLAN_NUMBER) == plan
        assert fenced == {(n, p) for n in range(clusters) for p in range(2)}, "no task hides the marker of another"
        if committed.get((number, place), committed.get(place, -1)) >= batch:
            return True
        if recorded is not None:
            recorded.append((place, bool(skipped)))
        return False

    fenced: set[tuple[int, int]] = set()
    monkeypatch.setattr(Replanning, "_fence", lambda _, places, plan: fenced.update(places))
    monkeypatch.setattr(Replanning, "_is_committed", is_committed)
    return made


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    planned(tmp_path, 6, '{"t":{"0":10,"1":20}}', TICK)
    written(tmp_path, "commits/6", "v1", '{"nextBatchWatermarkMs":0}')
    planned(tmp_path, 7, '{"t":{"0":1010,"1":21}}', TICK)
    files = FolderFiles(str(tmp_path))
    STATE.write(files, 6)
    for name, value in (("id", "c1"), ("shards", 2)):
        SmallFiles(files).write(name, value)
    return tmp_path


def test_a_batch_is_replanned_with_half_of_its_records(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = FolderFiles(str(checkpoint))
    assert replanning(files, monkeypatch, {}).cut() == (7, 1001, 500)
    assert unfinished(files) is None
    assert SmallFiles(files).read(CUT) == {"batch": 7, "rows": 500}
    planned(checkpoint, 7, '{"t":{"0":509,"1":21}}', TICK)
    assert replanning(files, monkeypatch, {}).cut().rows == 250


@pytest.mark.parametrize(
    ("clusters", "committed", "stays"),
    [(1, {}, False), (2, {}, False), (1, {0: 6, 1: 7}, True), (0, {}, True)],
    ids=["nothing is committed", "nor on two clusters", "a part is committed", "without a marker it cannot be known"],
)
def test_files_of_killed_attempts_go_with_the_plan_that_they_belong_to(
    clusters: int,
    committed: Mapping[int | tuple[int, int], int],
    stays: bool,
    checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = FolderFiles(str(checkpoint))
    for batch in (6, 7):
        files.put(f"{BLOCKS}/00000000{batch}-1-0-x.1", [b"a block"])
    job = replanning(files, monkeypatch, committed, clusters=clusters)
    with suppress(PlanKept):
        job.cut()
    assert files.names(BLOCKS) == ["000000006-1-0-x.1", *(["000000007-1-0-x.1"] if stays else [])]


@pytest.mark.parametrize("do", ["cut", "skip"])
def test_a_batch_of_which_a_part_is_committed_is_kept(
    do: str, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FolderFiles(str(checkpoint))
    job = replanning(files, monkeypatch, {0: 6, 1: 7})
    with pytest.raises(PlanKept, match="part of batch 7 is committed: 1 of its 2 transactions"):
        job.cut() if do == "cut" else job.skip("too large")
    assert unfinished(files) is not None
    assert last(files, "commits") == 6
    assert SmallFiles(files).read(SKIPPED) is None


@pytest.mark.parametrize(
    ("levels", "clusters", "committed"),
    [(1, 1, {0: 7, 1: 6}), (1, 1, {0: 6, 1: 7}), (0, 2, {0: 6, (0, 1): 7, (1, 1): 6})],
    ids=["the first task", "the last task", "without state, one of two clusters"],
)
def test_no_skip_that_is_refused_is_recorded_for_a_task(
    levels: int,
    clusters: int,
    committed: Mapping[int | tuple[int, int], int],
    checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files, recorded = FolderFiles(str(checkpoint)), list[tuple[int, bool]]()
    SmallFiles(files).write("readers", 2)
    with pytest.raises(PlanKept, match="part of batch 7 is committed"):
        replanning(files, monkeypatch, committed, levels, clusters, recorded).skip("too large")
    assert recorded
    assert not any(skipped for _, skipped in recorded)


def test_a_skip_is_recorded_once_no_task_can_commit_the_batch(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[tuple[int, bool]] = []
    replanning(FolderFiles(str(checkpoint)), monkeypatch, {}, recorded=recorded).skip("too large")
    assert recorded == [(0, False), (1, False), (0, True), (1, True)]


def test_without_state_the_tasks_that_have_not_written_are_skipped_alone(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FolderFiles(str(checkpoint))
    SmallFiles(files).write("readers", 2)
    with pytest.raises(PlanKept, match="part of batch 7 is committed: 1 of its 2 transactions"):
        replanning(files, monkeypatch, {0: 6, 1: 7}, levels=0).cut()
    passed = replanning(files, monkeypatch, {0: 6, 1: 7}, levels=0).skip("too large")
    assert {each.partly for each in passed} == {"1 of 2 tasks had written theirs: 1"}
    assert SmallFiles(files).read(SKIPPED) == [each._asdict() for each in passed]
    assert unfinished(files) is None


def test_a_batch_that_every_task_has_written_is_not_skipped(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = FolderFiles(str(checkpoint))
    SmallFiles(files).write("readers", 2)
    with pytest.raises(PlanKept, match="2 of its 2 transactions"):
        replanning(files, monkeypatch, {0: 7, 1: 7}, levels=0).skip("too large")


def test_one_record_a_partition_cannot_be_cut(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(checkpoint, 7, '{"t":{"0":11,"1":21}}', TICK)
    with pytest.raises(PlanKept, match="cannot be made smaller"):
        replanning(FolderFiles(str(checkpoint)), monkeypatch, {}).cut()


def test_what_is_skipped_is_written_down_and_the_state_stays_as_it_was(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FolderFiles(str(checkpoint))
    passed = replanning(files, monkeypatch, {}).skip("too large")
    assert [(p.batch, p.table, p.topic, p.partition, p.start, p.end, p.why) for p in passed] == [
        (7, "orders", "t", 0, 10, 1010, "too large"),
        (7, "orders", "t", 1, 20, 21, "too large"),
    ]
    assert SmallFiles(files).read(SKIPPED) == [each._asdict() for each in passed]
    assert Version.before(files, 8) == STATE
    assert last(files, "commits") == 7
    assert unfinished(files) is None


@pytest.mark.parametrize("do", ["cut", "skip"])
def test_killed_at_any_moment_it_leaves_the_batch_as_it_was_or_given_up(
    do: str, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment, before = 0, (checkpoint / "offsets/7").read_text()
    while True:
        job = replanning(Dying(str(checkpoint), moment), monkeypatch, {})
        try:
            job.cut() if do == "cut" else job.skip("too large")
            break
        except Killed:
            moment += 1
        batch = unfinished(FolderFiles(str(checkpoint)))
        given_up = batch is None
        assert given_up or (checkpoint / "offsets/7").read_text() == before
        if given_up and do == "cut":
            planned(checkpoint, 7, *before.splitlines()[2:])  # as the next run may plan it
    assert moment > 3
    files = FolderFiles(str(checkpoint))
    if do == "skip":
        assert len(SmallFiles(files).read(SKIPPED)) == 2
        assert Version.before(files, 8) == STATE
    else:
        assert SmallFiles(files).read(CUT)["rows"] <= 500
