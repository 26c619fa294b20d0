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


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return FolderFiles(str(tmp_path))


def shard(*buckets: int, level: int = 1, clocks: bool = False) -> ShardState:
    """What a task tells of some buckets."""
    places = {bucket: StoredAt(f"{FOLDER}/000000000-{level}", bucket * 100, 10) for bucket in buckets}
    return ShardState(level, {"last": level} if clocks else None, places)


def test_a_version_is_what_the_tasks_of_its_batch_have_told(files: Files) -> None:
    told = [shard(2, 3), shard(0, 1, clocks=True), shard(0, 1, 2, 3, level=2, clocks=True)]
    version = Version.of((ShardState.from_json(each.to_json()) for each in told), levels=2, buckets=4)
    version.write(files, 7)
    again = Version.before(files, 8)
    assert again == version
    assert again.levels[1].clocks == {"last": 1}
    assert list(again.levels[2].manifests) == [0, 1, 2, 3]


def test_a_batch_of_which_a_task_told_nothing_is_not_done() -> None:
    with pytest.raises(ValueError, match="level 1 has told of 3 of its 4 buckets"):
        Version.of([shard(0, 1, 3)], levels=1, buckets=4)


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
    """A job of one level that writes and drops blocks, some tries of whose tasks fail after they have written."""

    def __init__(self, files: Files, buckets: int) -> None:
        self._files = files
        self._chosen = Random(1)
        self.held: list[dict[str, bytes]] = [{} for _ in range(buckets)]
        self._manifests: list[Manifest | None] = [None] * buckets
        self._places: dict[int, StoredAt] = {}

    def batch(self, number: int) -> None:
        """Run batch `number`: one lost try, then one that counts; some buckets change."""
        touched = [b for b in range(len(self.held)) if number == 0 or self._chosen.random() < 0.3]
        lost = BlockWriter(self._files, number, 1, 0)
        lost.add(pa.py_buffer(b"lost"))
        lost.close()
        writer = BlockWriter(self._files, number, 1, 0)
        for bucket in touched:
            known = self._manifests[bucket]
            blocks = dict(known.blocks) if known else {}
            for gone in [key for key in blocks if self._chosen.random() < 0.2]:
                del blocks[gone], self.held[bucket][gone]
            key, data = f"op:{number}", b"%d %d" % (bucket, number)
            blocks[key], self.held[bucket][key] = writer.add(pa.py_buffer(data)), data
            manifest = self._manifests[bucket] = Manifest(b"{}", blocks)
            self._places[bucket] = writer.add(pa.py_buffer(manifest.to_bytes()))
        writer.close()
        Version.of([ShardState(1, {}, self._places)], 1, len(self.held)).write(self._files, number)


def read(files: Files, version: Version) -> list[dict[str, bytes]]:
    """All blocks of a version, by bucket."""
    found = []
    for _, place in sorted(version.levels[1].manifests.items()):
        manifest = Manifest.from_bytes(files.block(place).to_pybytes())
        found.append({key: files.block(block).to_pybytes() for key, block in manifest.blocks.items()})
    return found


def test_what_no_version_needs_is_removed_and_nothing_else(files: Files) -> None:
    job = Job(files, buckets=5)
    held = []
    for number in range(80):
        job.batch(number)
        held.append([dict(each) for each in job.held])
        if number % 7 == 0:
            sweep(files, number)
    sweep(files, 79)
    for number in range(79 - KEPT, 80):
        assert read(files, Version.before(files, number + 1)) == held[number]
    with pytest.raises(StateMissing):
        Version.before(files, 79 - KEPT)
    needed = {p.file for p in job._places.values()} | {p.file for m in job._manifests if m for p in m.blocks.values()}
    names = files.names(FOLDER)
    assert len(names) <= len(needed) + 3 * KEPT + 10
    assert not any(files.get(f"{FOLDER}/{n}") == b"lost" + bytes(60) for n in names if int(n[:9]) < 79 - KEPT)


def test_a_young_checkpoint_is_left_alone(files: Files) -> None:
    job = Job(files, buckets=2)
    job.batch(0)
    before = files.names(FOLDER)
    sweep(files, 0)
    assert files.names(FOLDER) == before
