"""Which files of a checkpoint count, and that those which do not are removed in the end."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from service.checkpoint.blocks import FOLDER, LARGE, BlockWriter, Manifest
from service.checkpoint.files import ALIGNED, Files, FolderFiles, StateMissing, StoredAt
from service.checkpoint.sweep import KEPT, sweep
from service.checkpoint.version import ShardState, Version
from service.runtime.layout import Layout


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return FolderFiles(str(tmp_path))


def shard(number: int, level: int = 1) -> ShardState:
    """What a task tells of its shard."""
    place = StoredAt(f"{FOLDER}/000000000-{level}", number * 100, 10)
    return ShardState(level, number, {"last": level} if number == 0 else None, place)


def test_a_version_is_what_the_tasks_of_its_batch_have_reported(files: Files) -> None:
    reports = [shard(number, level) for level in (2, 1) for number in (2, 3, 0, 1)]
    version = Version.of((ShardState.from_json(each.to_json()) for each in reports), levels=2, shards=4)
    version.write(files, 7)
    again = Version.before(files, 8)
    assert again == version
    assert again.levels[1].clocks == {"last": 1}
    assert [place.offset for place in again.levels[2].manifests] == [0, 100, 200, 300]


def test_a_batch_of_which_a_task_reported_nothing_is_not_done() -> None:
    with pytest.raises(ValueError, match="level 1 has reports of 3 of its 4 shards"):
        Version.of([shard(0), shard(1), shard(3)], levels=1, shards=4)


def test_the_first_batch_starts_from_nothing_and_any_other_from_the_one_before_it(files: Files) -> None:
    assert Version.before(files, 0).levels == {}
    with pytest.raises(StateMissing, match=r"000000041\.json is missing"):
        Version.before(files, 42)


def test_small_blocks_share_a_file_and_large_ones_have_their_own(files: Files) -> None:
    blocks = [b"a" * 5, b"b" * LARGE, b"c" * 100, b"d" * (LARGE + 1), b""]
    writer = BlockWriter(files, 3, 1, 0)
    places = [writer.add(pa.py_buffer(block)) for block in blocks]
    writer.close()
    assert [files.block(place).to_pybytes() for place in places] == blocks
    assert all(place.offset % ALIGNED == 0 for place in places)
    assert len(files.names(FOLDER)) == 3
    assert places[0].file == places[2].file


def test_a_task_that_writes_nothing_makes_no_file(files: Files) -> None:
    BlockWriter(files, 3, 1, 0).close()
    assert files.names(FOLDER) == []


def test_a_manifest_survives_its_file() -> None:
    manifest = Manifest(
        b'{"a": 1}', {"op:1": StoredAt("x", 0, 5), "op:0": StoredAt("y", 64, 7), "op:2": StoredAt("x", 64, 1)}
    )
    assert Manifest.from_bytes(manifest.to_bytes()) == manifest


class Job:
    """A job of one level that writes and drops blocks, some tries of whose tasks fail after they have written.

    Now and then it goes on with another number of shards: each takes the blocks of all that it overlaps, so that some
    blocks are in the manifests of several.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._chosen = Random(1)
        self._manifests: list[Manifest] = []
        self._places: list[StoredAt] = []
        self.data: dict[StoredAt, bytes] = {}

    def batch(self, number: int) -> None:
        """Run batch `number`: one lost try, then one that counts; some shards change."""
        lost = BlockWriter(self._files, number, 1, 0)
        lost.add(pa.py_buffer(b"lost"))
        lost.close()
        writer = BlockWriter(self._files, number, 1, 0)
        if number % 9 == 0:
            self._spread_over(1 + number // 9 % 5)
        for shard, manifest in enumerate(self._manifests):
            if number % 9 and self._chosen.random() >= 0.3:
                continue
            kept = {k: p for k, p in manifest.blocks.items() if self._chosen.random() >= 0.2}
            data = b"%d %d" % (shard, number)
            kept[f"op:{number}"] = place = writer.add(pa.py_buffer(data))
            self.data[place] = data
            self._manifests[shard] = Manifest(b"{}", kept)
            self._places[shard] = writer.add(pa.py_buffer(self._manifests[shard].to_bytes()))
        writer.close()
        reports = [ShardState(1, shard, {}, place) for shard, place in enumerate(self._places)]
        Version.of(reports, 1, len(reports)).write(self._files, number)

    def _spread_over(self, shards: int) -> None:
        before, after = Layout(max(1, len(self._manifests))), Layout(shards)
        known = self._manifests or [Manifest(b"{}", {})]
        self._manifests = [
            Manifest(
                b"{}",
                {
                    f"{key}.{part}": place
                    for part in before.sharing(after.slots_of(shard))
                    for key, place in known[part].blocks.items()
                },
            )
            for shard in range(shards)
        ]
        self._places = [StoredAt("", 0, 0)] * shards

    def held(self) -> list[dict[str, bytes]]:
        """The blocks of each shard, as they were written."""
        return [{key: self.data[place] for key, place in m.blocks.items()} for m in self._manifests]

    def needed(self) -> set[str]:
        """The files of the last version."""
        return {p.file for p in self._places} | {p.file for m in self._manifests for p in m.blocks.values()}


def read(files: Files, version: Version) -> list[dict[str, bytes]]:
    """All blocks of a version, by shard."""
    found = []
    for place in version.levels[1].manifests:
        manifest = Manifest.from_bytes(files.block(place).to_pybytes())
        found.append({key: files.block(block).to_pybytes() for key, block in manifest.blocks.items()})
    return found


def test_what_no_version_needs_is_removed_and_nothing_else(files: Files) -> None:
    job = Job(files)
    held = []
    for number in range(80):
        job.batch(number)
        held.append(job.held())
        if number % 7 == 0:
            sweep(files, number)
    sweep(files, 79)
    for number in range(79 - KEPT, 80):
        assert read(files, Version.before(files, number + 1)) == held[number]
    with pytest.raises(StateMissing):
        Version.before(files, 79 - KEPT)
    names = files.names(FOLDER)
    assert len(names) <= len(job.needed()) + 3 * KEPT + 10
    assert not any(files.get(f"{FOLDER}/{n}") == b"lost" + bytes(60) for n in names if int(n[:9]) < 79 - KEPT)


def test_a_young_checkpoint_is_left_alone(files: Files) -> None:
    job = Job(files)
    job.batch(0)
    before = files.names(FOLDER)
    sweep(files, 0)
    assert files.names(FOLDER) == before
