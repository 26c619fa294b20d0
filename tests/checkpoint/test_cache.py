"""Local copies of blocks: shared, private, and of a bounded size."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

from operators.state.mapped import MappedBytes
from service.checkpoint.cache import Cache

BLOCK = pa.py_buffer(bytes(1000))


def mapped(found: pa.Buffer | MappedBytes) -> pa.Buffer:
    assert isinstance(found, MappedBytes)
    return found.data


def never() -> pa.Buffer:
    raise AssertionError("the copy is here")


def test_a_block_is_fetched_once_for_all_workers_of_a_host(tmp_path: Path) -> None:
    folder = tmp_path / "blocks"
    assert mapped(Cache(folder, 1 << 20).fetch("one", lambda: BLOCK)) == BLOCK
    assert mapped(Cache(folder, 1 << 20).fetch("one", never)) == BLOCK


def test_nobody_else_may_read_the_copies(tmp_path: Path) -> None:
    folder = tmp_path / "scratch" / "blocks"
    Cache(folder, 1 << 20).put("one", BLOCK)
    assert [path.stat().st_mode & 0o777 for path in (folder, folder.parent)] == [0o700, 0o700]
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]


def test_the_copies_that_were_opened_longest_ago_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "blocks"
    cache = Cache(folder, 10 * BLOCK.size)
    opened = mapped(cache.fetch("0", lambda: BLOCK))
    for number in range(40):
        cache.put(str(number), BLOCK)
        os.utime(folder / str(number), (number, number))
        assert len(list(folder.iterdir())) <= 11
    assert not (folder / "0").exists()
    assert opened == BLOCK, "who has it mapped still reads it"
    assert mapped(cache.fetch("0", lambda: BLOCK)) == BLOCK


def test_a_disk_that_takes_no_copy_costs_time_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = Cache(tmp_path / "file" / "blocks", 1 << 20)
    assert cache.fetch("one", lambda: BLOCK) == BLOCK
