"""The batch that is planned and not done, as Spark's logs in a checkpoint tell it."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.checkpoint.batch_log import Range, add_starts, last, note_done, ranges, remove_plan, unfinished
from service.checkpoint.files import FolderFiles

TICK = '{"now": 5, "channels": {"0": ["s0000/t/00000"]}, "ended": []}'


def written(folder: Path, name: str, *lines: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))
    (path.parent / f".{path.name}.crc").write_text("of Hadoop")


def planned(folder: Path, number: int, *sources: str) -> None:
    written(folder, f"offsets/{number}", "v1", '{"batchTimestampMs":1}', *sources)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    planned(tmp_path, 6, '{"t":{"0":10,"1":20}}', TICK)
    written(tmp_path, "commits/6", "v1", '{"nextBatchWatermarkMs":0}')
    planned(tmp_path, 7, '{"t":{"0":15,"1":20,"2":4}}', TICK)
    return tmp_path


def test_the_batch_that_is_planned_and_not_done_starts_where_the_one_before_ended(checkpoint: Path) -> None:
    batch = unfinished(FolderFiles(str(checkpoint)))
    assert batch is not None
    assert batch.number == 7
    assert [ranges(start, end) for start, end in zip(batch.starts, batch.ends, strict=True)] == [
        [Range("t", 0, 10, 15), Range("t", 2, None, 4)],
        [],
    ]


def test_the_first_batch_starts_where_each_source_began(tmp_path: Path) -> None:
    planned(tmp_path, 0, '{"t":{"0":15}}', "-", TICK)
    written(tmp_path, "sources/0/0", '\0v1\n{"t":{"0":12}}')
    batch = unfinished(FolderFiles(str(tmp_path)))
    assert batch is not None
    assert ranges(batch.starts[0], batch.ends[0]) == [Range("t", 0, 12, 15)]
    assert list(batch.starts[1:]) == [None, None]


def test_a_plan_that_is_forgotten_leaves_the_batch_before(checkpoint: Path) -> None:
    files = FolderFiles(str(checkpoint))
    remove_plan(files, 7)
    remove_plan(files, 7)
    assert unfinished(files) is None
    assert sorted(p.name for p in (checkpoint / "offsets").iterdir()) == [".6.crc", "6"]


def test_a_batch_that_is_noted_as_done_is_not_planned_any_more(checkpoint: Path) -> None:
    files = FolderFiles(str(checkpoint))
    note_done(files, 7)
    assert unfinished(files) is None
    assert last(files, "commits") == 7
    assert (checkpoint / "commits/7").read_text() == (checkpoint / "commits/6").read_text()
    assert not (checkpoint / "commits/.7.crc").exists()


def test_added_partitions_are_read_from_their_starts_by_the_batch_after_the_planned_one(
    checkpoint: Path,
) -> None:
    files = FolderFiles(str(checkpoint))
    for _ in range(2):  # as when a start is tried again
        add_starts(files, 0, {"t": {0: 3, 1: 3, 2: 0}, "u": {0: 5, 1: 0}})
    batch = unfinished(files)
    assert batch is not None
    assert ranges(batch.starts[0], batch.ends[0]) == [Range("t", 0, 10, 15), Range("t", 2, None, 4)]
    assert batch.ends == [{"t": {"0": 15, "1": 20, "2": 4}, "u": {"0": 5, "1": 0}}, batch.ends[1]]
    assert batch.starts[0] == {"t": {"0": 10, "1": 20}, "u": {"0": 5, "1": 0}}
    assert not list((checkpoint / "offsets").glob(".*.crc"))


def test_starts_that_were_added_to_one_file_only_are_the_same_in_the_other(checkpoint: Path) -> None:
    planned(checkpoint, 6, '{"t":{"0":10,"1":20},"u":{"0":5}}', TICK)
    add_starts(FolderFiles(str(checkpoint)), 0, {"t": {0: 3, 1: 3}, "u": {0: 7}})
    batch = unfinished(FolderFiles(str(checkpoint)))
    assert batch is not None
    assert batch.ends[0] == {"t": {"0": 15, "1": 20, "2": 4}, "u": {"0": 5}}


def test_starts_of_what_is_known_change_nothing(checkpoint: Path) -> None:
    before = (checkpoint / "offsets/7").read_text()
    add_starts(FolderFiles(str(checkpoint)), 0, {"t": {0: 3, 1: 3, 2: 3}})
    assert (checkpoint / "offsets/7").read_text() == before
