"""A checkpoint is opened by what it was made for, and refused by anything else."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from service.checkpoint.files import FolderFiles
from service.checkpoint.small_files import QUERY
from service.deployment.upgrading import remembered
from service.plan.meaning import Meaning, SourceMeaning
from service.runtime.shard_operators import FORMAT, StateMismatch
from service.spark.supervision.checkpoint import Checkpoint

NOW = Meaning("query", sources=(SourceMeaning("orders", "kafka", ("orders",), 0),))
SAVED = remembered(NOW)


class Kept(Checkpoint):
    """A checkpoint whose small files are in memory."""

    def __init__(self, fixed: dict[str, Any] | None) -> None:
        self.url = "/checkpoint"
        self.files: dict[str, Any] = {} if fixed is None else {"fixed": fixed}
        self.logs: dict[str, int] = {"offsets": 4, "commits": 4}

    def _last(self, log: str) -> int:
        return self.logs[log]

    def read(self, name: str) -> Any:
        return self.files.get(name)

    def write(self, name: str, value: Any) -> None:
        self.files[name] = value


def test_one_of_a_former_format_is_taken_again_by_the_same_query(tmp_path: Path) -> None:
    kept = Kept({**SAVED, "format": 6})
    assert kept.agree(NOW) is None, "it is the same query"
    assert not kept.taken()
    kept.take(NOW, FolderFiles(str(tmp_path)))
    assert kept.taken()
    assert kept.files[QUERY]["format"] == FORMAT
    assert kept.files[QUERY]["change"]["batch"] == 0, "copies of batches before it can still be made"


def test_a_new_checkpoint_is_made_for_what_is_wanted(tmp_path: Path) -> None:
    kept = Kept(None)
    assert not kept.taken()
    assert kept.agree(NOW) is None
    kept.take(NOW, FolderFiles(str(tmp_path)))
    assert kept.taken()
    assert kept.files == {QUERY: SAVED}
    assert kept.agree(NOW) is None


@pytest.mark.parametrize(
    ("known", "begun", "shards"),
    [(None, (-1, -1), 4), (2, (7, 7), 4), (2, (7, 6), 2), (2, (0, -1), 2), (None, (0, -1), 4)],
)
def test_a_batch_that_has_begun_is_done_by_as_many_tasks_as_it_began_with(
    known: int | None, begun: tuple[int, int], shards: int
) -> None:
    kept = Kept(None)
    kept.logs = dict(zip(("offsets", "commits"), begun, strict=True))
    if known is not None:
        kept.files["shards"] = known
    assert kept.shards(4) == shards
    assert kept.files["shards"] == shards


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 5}, f"another version of the service.*has format 5, this version reads formats 6 and {FORMAT}"),
        (
            {"meaning": Meaning("other", sources=(SourceMeaning("orders", "kafka", ("others",), 0),)).to_json()},
            "the state of another query.*orders is read from orders, and was from others",
        ),
    ],
)
def test_a_checkpoint_that_was_made_for_something_else_is_refused_and_says_what_differs(
    change: dict[str, Any], message: str
) -> None:
    kept = Kept({**SAVED, **change})
    with pytest.raises(StateMismatch, match=f"(?s){message}"):
        kept.agree(NOW)


def test_a_batch_that_the_query_before_has_planned_is_for_that_query_to_end() -> None:
    kept = Kept(SAVED)
    changed = replace(NOW, query="changed")
    upgrade = kept.agree(changed)
    assert upgrade is not None
    assert kept.files == {QUERY: SAVED}, "nothing is taken before all others have agreed"
    kept.logs = {"offsets": 5, "commits": 4}
    with pytest.raises(StateMismatch, match="batch 5 was planned by the query before"):
        kept.agree(changed)
    assert kept.agree(NOW) is None


class _Died(Exception):
    pass


class _Disk(Checkpoint):
    """A checkpoint on a disk in memory, whose process dies before its step number `last` on it."""

    def __init__(self, last: int) -> None:
        self.files: dict[str, bytes] = {}
        self.left = last

    @property
    def _files(self) -> Any:
        return self

    def _file(self, name: str) -> str:
        return name

    def _step(self) -> None:
        if self.left == 0:
            raise _Died
        self.left -= 1

    def exists(self, path: str) -> bool:
        return path in self.files

    def open(self, path: str) -> Any:
        stream: Any = BytesIO(self.files[path])
        stream.readAllBytes = stream.read
        return stream

    def create(self, path: str, overwrite: bool) -> Any:
        self._step()
        self.files[path] = b""
        return _Writing(self, path)

    def delete(self, path: str, recursive: bool) -> None:
        self._step()
        self.files.pop(path, None)

    def rename(self, path: str, to: str) -> None:
        self._step()
        self.files[to] = self.files.pop(path)


class _Writing:
    def __init__(self, disk: _Disk, path: str) -> None:
        self._disk, self._path = disk, path

    def write(self, content: bytes) -> None:
        self._disk.files[self._path] = content[:5]  # what has reached the disk when the process dies now
        self._disk._step()
        self._disk.files[self._path] = content

    def close(self) -> None:
        pass


@pytest.mark.parametrize("before", [None, {"writers": 1}])
def test_a_small_file_is_the_old_or_the_new_one_whenever_the_process_dies(before: Any) -> None:
    after = {"writers": 2}
    found = []
    for steps in range(5):
        disk = _Disk(4)
        if before is not None:
            disk.write("writers", before)
        disk.left = steps
        if steps < 4:
            with pytest.raises(_Died):
                disk.write("writers", after)
        else:
            disk.write("writers", after)
        found.append(disk.read("writers"))
        disk.left = 4
        disk.write("writers", after)
        assert disk.read("writers") == after
    assert found == [before, before, *[before if before is not None else after], after, after]


@pytest.mark.parametrize(
    ("offsets", "begun"), [([], False), ([".0.crc"], False), (["0"], True), (["101", "102", ".101.crc"], True)]
)
def test_a_query_has_begun_when_the_offsets_of_any_batch_are_kept(offsets: list[str], begun: bool) -> None:
    class Listed(Checkpoint):
        def __init__(self) -> None:
            pass

        def _names(self, folder: str) -> list[str]:
            return {"offsets": offsets}[folder]

    assert Listed().started() is begun
