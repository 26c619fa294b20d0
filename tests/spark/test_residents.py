"""What a worker keeps of its buckets, and what it removes of those that have moved away."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from service.spark.query.block_cache import BlockCache
from service.spark.query.bucket_cache import BATCHES, Residents

HERE, AWAY = (1, 0), (2, 7)
BUCKET: Any = object()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a run, with other things than copies of blocks in it."""
    (tmp_path / "writer").mkdir()
    (tmp_path / "ended.json").write_text("[]")
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0))
    return tmp_path


def run(residents: Residents, folder: Path, batches: range) -> None:
    """Batches in which the bucket that is here runs, and the other one does not."""
    for number in batches:
        residents.begin(now=number)
        cache = BlockCache(folder / "l1b0")
        assert residents.take(HERE, b"%d" % (number - 1)) is (BUCKET if number else None)
        cache.put(f"block-{number}", pa.py_buffer(b"here"))
        residents.keep(HERE, BUCKET, b"%d" % number)


def test_a_bucket_that_has_moved_away_leaves_nothing_behind(folder: Path):
    residents = Residents(folder)
    cache = BlockCache(folder / "l2b7")
    cache.put("block", pa.py_buffer(b"away"))
    residents.begin(now=-5)
    residents.keep(AWAY, BUCKET, b"sealed")
    mapped = cache.fetch("block", lambda _: b"")
    os.utime(folder / "l2b7", (0, 0))
    run(residents, folder, range(BATCHES - 2))
    assert (folder / "l2b7").exists()
    run(residents, folder, range(BATCHES - 2, 3 * BATCHES))
    assert {path.name for path in folder.iterdir()} == {"l1b0", "writer", "ended.json"}
    assert len(list((folder / "l1b0").iterdir())) == 3 * BATCHES
    assert residents.take(AWAY, b"sealed") is None
    assert mapped.to_pybytes() == b"away", "who has it mapped still reads it"


def test_a_bucket_that_another_worker_of_the_host_runs_keeps_its_copies(folder: Path):
    residents = Residents(folder)
    for number in range(3 * BATCHES):
        run(residents, folder, range(number, number + 1))
        BlockCache(folder / "l2b7")
    assert (folder / "l2b7").exists()


def test_a_bucket_that_was_elsewhere_meanwhile_is_opened_anew(folder: Path):
    residents = Residents(folder)
    residents.begin(now=1)
    residents.keep(HERE, BUCKET, b"sealed here")
    assert residents.take(HERE, b"sealed elsewhere") is None
    assert residents.take(HERE, b"sealed here") is None


def test_copies_that_are_removed_under_a_bucket_are_fetched_from_the_state(folder: Path):
    cache = BlockCache(folder / "l1b0")
    cache.put("block", pa.py_buffer(b"state"))
    for path in (folder / "l1b0").iterdir():
        path.unlink()
    assert cache.fetch("block", lambda block: b"state").to_pybytes() == b"state"
    assert cache.fetch("block", lambda block: b"never asked").to_pybytes() == b"state"
    for path in (folder / "l1b0").iterdir():
        path.unlink()
    (folder / "l1b0").rmdir()
    cache.put("another", pa.py_buffer(b"more"))
    assert cache.fetch("another", lambda block: b"more").to_pybytes() == b"more"


def test_copies_of_state_are_for_nobody_else(tmp_path: Path):
    cache = BlockCache(tmp_path / "run" / "l1b0")
    cache.put("block", pa.py_buffer(b"state"))
    modes = [path.stat().st_mode & 0o777 for path in (tmp_path / "run", tmp_path / "run" / "l1b0")]
    assert (modes, (tmp_path / "run" / "l1b0" / "block").stat().st_mode & 0o777) == ([0o700, 0o700], 0o600)
