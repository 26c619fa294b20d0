"""The log of batches under a query that reads other tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.checkpoint.batch_log import ends, first
from service.checkpoint.copying import done_batches
from service.checkpoint.files import FolderFiles
from service.checkpoint.log_change import BackfilledSource, LogChange, backfilled_source
from service.checkpoint.small_files import QUERY, SmallFiles

TICKS = {"ticks": 9}


def offsets(topic: str, at: int) -> dict[str, dict[str, int]]:
    return {topic: {"0": at}}


def plan(files: FolderFiles, number: int, *lines: object, done: bool = True) -> None:
    stored = [json.dumps(each) if each else "-" for each in (*lines, TICKS)]
    files.put(f"offsets/{number}", ["\n".join(["v1", f'{{"batchTimestampMs":{number}}}', *stored]).encode()])
    if done:
        files.put(f"commits/{number}", [b"v1\n{}"])


def begin(files: FolderFiles, position: int, topic: str) -> None:
    files.put(f"sources/{position}/0", [b"\0v1\n" + json.dumps(offsets(topic, 1)).encode()])


@pytest.fixture
def files(tmp_path: Path) -> FolderFiles:
    """The log of a query that has read the tables a and b, of the ids 0 and 1, in three batches."""
    made = FolderFiles(str(tmp_path))
    for number in range(3):
        plan(made, number, offsets("a", 10 * number), offsets("b", 20 * number))
    for position, topic in enumerate("ab"):
        begin(made, position, topic)
    return made


def test_lines_move_with_their_sources_and_those_of_new_ones_are_empty(files: FolderFiles) -> None:
    LogChange.between(files, [0, 1], [1, 2]).put(files)
    assert ends(files, 2) == [offsets("b", 40), None, TICKS]
    assert ends(files, 1) == [offsets("b", 20), None, TICKS]
    assert ends(files, 0) == [offsets("a", 0), offsets("b", 0), TICKS], "Spark reads two batches at a start"
    assert (first(files, 0), first(files, 1)) == (offsets("b", 1), None)
    assert b'"batchTimestampMs":2' in (files.get("offsets/2") or b"")
    assert (files.get("sources/0/0") or b"")[:1] == b"\0", "byte for byte"


def test_a_source_that_was_backfilled_goes_on_from_where_the_backfill_has_read(
    files: FolderFiles, tmp_path: Path
) -> None:
    backfill = FolderFiles(str(tmp_path / "backfill"))
    plan(backfill, 0, offsets("a", 5), offsets("c", 70))
    begin(backfill, 1, "c")
    LogChange.between(files, [0, 1], [0, 1, 2], {2: backfilled_source(backfill, 1)}).put(files)
    assert ends(files, 2) == [offsets("a", 20), offsets("b", 40), offsets("c", 70), TICKS]
    assert ends(files, 1) == [offsets("a", 10), offsets("b", 20), None, TICKS]
    assert first(files, 2) == offsets("c", 1)


def test_it_is_done_again_by_whoever_starts_next_and_not_once_a_batch_is_planned(files: FolderFiles) -> None:
    stored = LogChange.between(files, [0, 1], [1, 2, 0]).to_json()
    change = LogChange.from_json(json.loads(json.dumps(stored)))
    for _ in range(2):
        change.put(files)
        assert ends(files, 2) == [offsets("b", 40), None, offsets("a", 20), TICKS]
        assert first(files, 2) == offsets("a", 1)
    plan(files, 3, offsets("b", 41), offsets("c", 1), offsets("a", 22), done=False)
    plan(files, 2, offsets("b", 40), offsets("c", 0), offsets("a", 20), done=False)
    change.put(files)
    assert ends(files, 2) == [offsets("b", 40), offsets("c", 0), offsets("a", 20), TICKS]


def test_one_that_is_killed_after_any_file_is_ended_by_the_next(files: FolderFiles, tmp_path: Path) -> None:
    change = LogChange.between(files, [0, 1], [1, 0])

    class Killed(FolderFiles):
        left = 0

        def put(self, name: str, parts: object) -> None:
            if not self.left:
                raise InterruptedError
            self.left -= 1
            super().put(name, parts)  # type: ignore[arg-type]

    killed = Killed(str(tmp_path))
    for steps in range(4):
        killed.left = steps
        with pytest.raises(InterruptedError):
            change.put(killed)
        LogChange.between(files, [0, 1], [0, 1]).put(files)
        change.put(files)
        assert [ends(files, 2)[0], ends(files, 1)[0]] == [offsets("b", 40), offsets("b", 20)]
        assert first(files, 0) == offsets("b", 1)
        for number in (1, 2):
            plan(files, number, offsets("a", 10 * number), offsets("b", 20 * number))
        for position, topic in enumerate("ab"):
            begin(files, position, topic)


def test_where_no_batch_was_done_the_sources_begin_again(tmp_path: Path) -> None:
    files = FolderFiles(str(tmp_path))
    begin(files, 0, "a")
    begin(files, 1, "b")
    LogChange.between(files, [0, 1], [1]).put(files)
    assert (first(files, 0), first(files, 1)) == (None, None)


@pytest.mark.parametrize(("after", "known"), [([0, 1], [2]), ([1, 2], [2])])
def test_what_the_query_before_has_done_can_be_gone_back_to_no_more(
    after: list[int], known: list[int], files: FolderFiles
) -> None:
    assert done_batches(files) == [0, 1, 2]
    SmallFiles(files).write(QUERY, {"change": LogChange.between(files, [0, 1], after).to_json()})
    assert done_batches(files) == known


def test_the_same_sources_change_nothing(files: FolderFiles) -> None:
    change = LogChange.between(files, [0, 1], [0, 1], {5: BackfilledSource("-", "")})
    assert change == LogChange(2)
    change.put(files)
    assert ends(files, 2) == [offsets("a", 20), offsets("b", 40), TICKS]
